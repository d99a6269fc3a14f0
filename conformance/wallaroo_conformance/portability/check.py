"""A look at one application: in fresh processes, with another clock, on other engines.

Whatever is looked for is a function that says what each of several inputs shows. So one reduction
finds the smallest input for everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from wallaroo.engine import Case, Engine, TaskFault, load_engine
from wallaroo.errors import UnsupportedTopology
from wallaroo.keys import key_from_json, show_key
from wallaroo.loading import load_application
from wallaroo.topology import Application
from wallaroo.trace import InputLog, Trace
from wallaroo_conformance.judge.differences import Crash
from wallaroo_conformance.judge.oracle import reference_oracle
from wallaroo_conformance.portability.processes import LATER, Answer, Subject
from wallaroo_conformance.portability.results import AppFinding, Letters, Look, Smaller, reduced
from wallaroo_conformance.report.showing import trace_lines

_MOST_REMEMBERING = 12  # inputs of a reduction's step, where each takes a process of its own
_MOST_ON_ENGINES = 16  # of those on another engine
_MOST_MESSAGES = 2_000  # of one input; the rest is not looked at
_WHOLE = 2  # inputs that are run in every way on an engine; each later one is run in one
_WITH_DEATHS = 1  # inputs on which workers die

_CIRCUMSTANCES: tuple[tuple[str, str, tuple[dict[str, Any], ...]], ...] = (
    ("random", "two equal runs differ: it depends on chance", ({"parent": 1}, {"chance": 1})),
    ("clock", "with another time on the clock it gives something else", ({"clock": LATER},)),
    (
        # Two words in a set stand in the same order with every second seed.
        *("hash order", "with another PYTHONHASHSEED it gives something else"),
        ({"hash_seed": 1}, {"hash_seed": 2}),
    ),
)
"""What results may depend on. What depends on addresses comes first: it seems to depend on all that
needs other processes or a second run, too. Children of one parent have equal addresses only mostly,
so what such a pair shows of it may not be seen again in a smaller input."""


def look(
    subject: Subject,
    logs: Sequence[InputLog],
    smaller: Smaller,
    engines: Sequence[str],
    tell: Callable[[str], None],
) -> Look:
    """Return everything found about an application.

    Args:
        subject: the application.
        logs: its inputs.
        smaller: payloads that a reduction may try instead of one.
        engines: names of engines to compare with the reference.
        tell: is called with what is being done.

    Raises:
        PortabilityError: it cannot be run at all.
    """
    if any(len(log) > _MOST_MESSAGES for log in logs):
        tell(f"only the first {_MOST_MESSAGES} messages are looked at")
        logs = [log[:_MOST_MESSAGES] for log in logs]
    tell("isolated, in a fresh process")
    first = subject.answers(logs)
    result = Look(inputs=len(logs), messages=sum(map(len, logs)))
    result.called = {str(call[0]) for answer in first for call in answer["calls"]}

    def findings(some: Sequence[InputLog]) -> list[list[AppFinding]]:
        return [[*_findings(*each)] for each in zip(some, answers(some), strict=True)]

    def letters(some: Sequence[InputLog]) -> list[list[Letters]]:
        return [[*_letters(*each)] for each in zip(some, answers(some), strict=True)]

    def answers(some: Sequence[InputLog]) -> Sequence[Answer]:
        return first if some is logs else subject.answers(some)

    result.findings = reduced(chain.from_iterable(findings(logs)), findings, smaller)
    met = [*chain.from_iterable(letters(logs))]
    numbers = Counter(each.subject for each in met)
    result.letters = [
        replace(each, number=numbers[each.subject]) for each in reduced(met, letters, smaller)
    ]
    result.letters.sort(key=lambda each: each.subject)
    result.findings += _depends(subject, logs, first, smaller, tell)
    application = load_application(subject.app, subject.args, placeholders=True)
    for name in engines:
        tell(f"on {name}")
        clean = not result.findings
        result.findings += _compared(application, load_engine(name), logs, smaller, clean=clean)
    return result


def _findings(log: InputLog, answer: Answer) -> Iterator[AppFinding]:
    """Yield the findings of isolated mode, each with as much of the input as it needs."""
    for finding in answer["findings"]:
        needed = log[: finding["lineage"][0] + 1]
        key = _key(finding["key"])
        yield AppFinding(finding["kind"], finding["step"], key, finding["text"], needed)


def _letters(log: InputLog, answer: Answer) -> Iterator[Letters]:
    """Yield each dead letter, with as much of the input as it needs."""
    for letter, error in zip(answer["trace"]["dead_letters"], answer["errors"], strict=True):
        where = "decoder" if letter["sink"] is None else f"encoder {letter['sink']}"
        yield Letters(
            *(letter["pipeline"], letter["step"] or where),
            *(letter["reason"], letter["error_type"] or ""),
            *(error, log[: letter["lineage"][0] + 1]),
        )


# -- what results depend on --------------------------------------------------------------------


def _depends(
    subject: Subject,
    logs: Sequence[InputLog],
    first: Sequence[Answer],
    smaller: Smaller,
    tell: Callable[[str], None],
) -> list[AppFinding]:
    """Return what results depend on: each circumstance once for each component that shows it."""
    findings: list[AppFinding] = []
    by_address: set[str] = set()
    for kind, text, ways in _CIRCUMSTANCES:
        tell(kind)
        blamed = set(by_address)
        for way in ways:

            def shows(
                some: Sequence[InputLog], kind: str = kind, text: str = text, way: Any = way
            ) -> list[list[AppFinding]]:
                answers = first if some is logs else subject.answers(some)
                others = subject.answers(some, **way)
                return [
                    _differing(kind, text, *each)
                    for each in zip(some, answers, others, strict=True)
                ]

            shown = list(chain.from_iterable(shows(logs)))
            names = {each.step for each in shown}
            if "parent" in way:
                by_address = names
            findings += reduced([each for each in shown if each.step not in blamed], shows, smaller)
            blamed |= names
    tell("process-wide state")
    return findings + _remembered(subject, logs, first, smaller, by_address)


def _remembered(
    subject: Subject,
    logs: Sequence[InputLog],
    first: Sequence[Answer],
    smaller: Smaller,
    by_address: set[str],
) -> list[AppFinding]:
    """Return whether one run changes the next one in the same process."""
    text = "a second run in the same process gives something else: something outlives it"

    def shows(some: Sequence[InputLog]) -> list[list[AppFinding]]:
        # Each in a process of its own: what one leaves behind would change the others.
        return [
            _differing("process-wide state", text, log, *subject.answers([log, log]))
            for log in some
        ]

    # In another order, each run has other runs before it.
    backwards = subject.answers(logs[::-1])[::-1]
    suspects = [
        log
        for log, answer, other in zip(logs[1:], first[1:], backwards[1:], strict=True)
        if answer["trace"] != other["trace"]
    ]
    shown = chain.from_iterable(shows([logs[0], *suspects[:2]]))
    wanted = [each for each in shown if each.step not in by_address]
    return reduced(wanted, shows, smaller, _MOST_REMEMBERING)


def _differing(
    kind: str, text: str, log: InputLog, answer: Answer, other: Answer
) -> list[AppFinding]:
    """Return a finding for each component to blame for a difference, with its first such call.

    It gave something else for the same arguments. What comes of it is not its followers' fault.
    """
    if answer["trace"] == other["trace"]:
        return []
    outcomes: dict[tuple[str, str], list[str]] = {}
    for name, _, given, outcome in reversed(other["calls"]):
        outcomes.setdefault((name, given), []).append(outcome)
    keys: dict[str, str] = {}
    for name, key, given, outcome in answer["calls"]:
        if (others := outcomes.get((name, given))) and others.pop() != outcome:
            keys.setdefault(name, _key(key))
    keys = keys or {"(a generator's items, or a builder)": ""}  # no call shows the difference
    return [AppFinding(kind, name, key, text, log) for name, key in keys.items()]


def _key(form: Any) -> str:
    return "" if form is None else show_key(key_from_json(form))


# -- other engines: in batches, on partitions, with workers that die ---------------------------


def _compared(
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
    if "isolated" not in engine.capabilities().isolation and not clean:
        return []
    try:
        engine.check(application)
    except UnsupportedTopology as refusal:
        return [AppFinding("unsupported", refusal.step, "", f"{engine.name}: {refusal}", [])]
    cases = _cases(application, engine, logs)
    for case, actual in zip(cases, _answers(engine, cases), strict=True):
        if shown := _shown(engine, case, actual):

            def shows(some: Sequence[InputLog], failing: Case = case) -> list[list[AppFinding]]:
                tried = [replace(failing, input_log=log) for log in some]
                answers = zip(tried, _answers(engine, tried), strict=True)
                return [_shown(engine, each, answer) for each, answer in answers]

            return reduced(shown, shows, smaller, _MOST_ON_ENGINES)
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
            stages = range(min(2, len(application.partitions) + 1))
            cases += [replace(whole, faults=[TaskFault(0, stage)]) for stage in stages]
    return cases


def _answers(engine: Engine, cases: Sequence[Case]) -> Sequence[Trace | Crash]:
    try:
        answers = engine.run_many(cases)
        return [Crash.of(it) if isinstance(it, Exception) else it for it in answers]
    except Exception as error:  # noqa: BLE001 - it is the engine's answer
        return [Crash.of(error)] * len(cases)


def _shown(engine: Engine, case: Case, actual: Trace | Crash) -> list[AppFinding]:
    """Return how an engine's answer differs from the reference's, if it does."""
    expected = reference_oracle().reference.run(
        Case(case.application, case.input_log, partitions=case.partitions)
    )
    if actual.comparable() == expected.comparable():
        return []
    wanted, came = trace_lines(expected), trace_lines(actual)
    pairs = [lines for lines in zip(wanted, came, strict=False) if lines[0] != lines[1]]
    right, wrong = pairs[0] if pairs else (wanted[-1], came[-1])
    ways = [
        *([f"batches {list(case.batches)}"] if case.batches is not None else []),
        *([f"{case.partitions} partitions"] if case.partitions is not None else []),
        *(["a worker that dies"] if case.faults else []),
    ]
    how = f" with {', '.join(ways)}" if ways else ""
    text = f"{engine.name} differs from the reference{how}: {wrong}; it should be {right}"
    return [AppFinding("engines differ", engine.name, "", text, list(case.input_log))]
