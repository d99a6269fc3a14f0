"""One application on other engines: in batches, on partitions, with workers that die."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wallaroo.engine import Case, Engine, TaskFault
from wallaroo.errors import UnsupportedTopology
from wallaroo.topology import Application
from wallaroo.trace import InputLog, Trace
from wallaroo_conformance.judge.differences import Crash
from wallaroo_conformance.judge.oracle import reference_oracle
from wallaroo_conformance.portability.reducing import Smaller, reduced
from wallaroo_conformance.portability.results import AppFinding
from wallaroo_conformance.report.showing import trace_lines
from wallaroo_conformance.search.running import crash

_MOST_CANDIDATES = 16  # in one step of a reduction
_WHOLE = 2  # inputs that are run in every way; each later one is run in one
_WITH_DEATHS = 1  # inputs on which workers die


def compared(
    application: Application,
    engine: Engine,
    logs: Sequence[InputLog],
    smaller: Smaller,
    *,
    clean: bool,
) -> list[AppFinding]:
    """Return where an engine differs from the reference.

    Args:
        application: the application.
        engine: the engine.
        logs: the inputs.
        smaller: what may be tried in the place of a payload.
        clean: the application has no findings; trusting mode is not promised to others.
    """
    capabilities = engine.capabilities()
    if "isolated" not in capabilities.isolation and not clean:
        return []
    try:
        engine.check(application)
    except UnsupportedTopology as refusal:
        return [AppFinding("unsupported", refusal.step, "", f"{engine.name}: {refusal}", [])]
    cases = _cases(application, engine, logs)
    for case, actual in zip(cases, _answers(engine, cases), strict=True):
        expected = _expected(case)
        if actual.comparable() != expected.comparable():
            return [_finding(engine, case, smaller)]
    return []


def _cases(application: Application, engine: Engine, logs: Sequence[InputLog]) -> list[Case]:
    capabilities = engine.capabilities()
    isolation = "isolated" if "isolated" in capabilities.isolation else "trusting"
    cases: list[Case] = []
    for number, log in enumerate(filter(None, logs)):
        whole = Case(application, log, isolation=isolation)  # type: ignore[arg-type]
        divided = replace(whole, batches=[1, 2], partitions=3)
        halves = replace(whole, batches=[len(log) // 2], partitions=2) if len(log) > 1 else divided
        ways = [whole, *([divided, halves] if capabilities.batches else [])]
        cases += ways if number < _WHOLE else [ways[number % len(ways)]]
        if "task" in capabilities.faults and number < _WITH_DEATHS:
            deaths = [
                TaskFault(0, stage) for stage in range(min(2, len(application.partitions) + 1))
            ]
            cases += [replace(whole, faults=[death]) for death in deaths]
    return cases


def _answers(engine: Engine, cases: Sequence[Case]) -> Sequence[Trace | Crash]:
    try:
        answers = engine.run_many(cases)
        return [crash(it) if isinstance(it, Exception) else it for it in answers]
    except Exception as error:  # noqa: BLE001 - it is the engine's answer
        return [crash(error)] * len(cases)


def _expected(case: Case) -> Trace:
    return reference_oracle().reference.run(
        Case(case.application, case.input_log, partitions=case.partitions)
    )


def _finding(engine: Engine, failing: Case, smaller: Smaller) -> AppFinding:
    def differing(logs: Sequence[InputLog]) -> list[bool]:
        cases = [replace(failing, input_log=log) for log in logs]
        return [
            answer.comparable() != _expected(case).comparable()
            for case, answer in zip(cases, _answers(engine, cases), strict=True)
        ]

    log = reduced(list(failing.input_log), differing, smaller, most=_MOST_CANDIDATES)
    least = replace(failing, input_log=log)
    wanted, came = trace_lines(_expected(least)), trace_lines(_answers(engine, [least])[0])
    pairs = [(one, other) for one, other in zip(wanted, came, strict=False) if one != other]
    one, other = pairs[0] if pairs else (wanted[-1], came[-1])
    ways = [
        *([f"batches {list(failing.batches)}"] if failing.batches is not None else []),
        *([f"{failing.partitions} partitions"] if failing.partitions is not None else []),
        *(["a worker that dies"] if failing.faults else []),
    ]
    how = f" with {', '.join(ways)}" if ways else ""
    text = f"{engine.name} differs from the reference{how}: {other}; it should be {one}"
    return AppFinding("engines differ", engine.name, "", text, log)
