"""Checks of one application: in fresh processes, with another clock, on other engines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from wallaroo.engine import Case, Engine, load_engine
from wallaroo.errors import UnsupportedTopology, WallarooError
from wallaroo.keys import key_from_json, show_key
from wallaroo.loading import load_application
from wallaroo.topology import Application
from wallaroo.trace import InputLog, Trace
from wallaroo_conformance.judge.differences import Crash
from wallaroo_conformance.portability.worker import log_to_json
from wallaroo_conformance.report.showing import trace_lines
from wallaroo_conformance.search.running import crash

_NOON = 1_700_000_000.0  # what the clock shows
_LATER = _NOON + 40 * 86_400 + 3_723.5  # another day of another month, hour, minute and second
_TIMEOUT = 600.0  # seconds that a process may take
_MOST_CANDIDATES = 48  # in one step of a reduction
_MOST_MESSAGES = 2_000  # of an input that is looked at as a whole

Answer = dict[str, Any]


class PortabilityError(WallarooError):
    """The application could not be looked at."""


@dataclass(frozen=True)
class AppFinding:
    """Something about the application that makes its results differ.

    Args:
        kind: what its results depend on, or what is wrong.
        step: the step's, decoder's or encoder's name.
        key: the entity's key for people, empty without one.
        text: what was seen.
        log: the smallest input found that shows it.
    """

    kind: str
    step: str
    key: str
    text: str
    log: InputLog


@dataclass(frozen=True)
class Subject:
    """An application as fresh processes load it, with its input."""

    app: str
    args: Sequence[str]
    log: InputLog


def look(subject: Subject, engines: Sequence[str], tell: Callable[[str], None]) -> list[AppFinding]:
    """Return everything found about an application.

    Args:
        subject: the application and its input.
        engines: names of engines to compare with the reference, beside the compiled path.
        tell: is called with what is being done.

    Raises:
        PortabilityError: it cannot be run at all.
    """
    if not subject.log:
        raise PortabilityError("there is no input to run the application on")
    if len(subject.log) > _MOST_MESSAGES:
        tell(f"only the first {_MOST_MESSAGES} messages are looked at")
        subject = Subject(subject.app, subject.args, subject.log[:_MOST_MESSAGES])
    logs = [subject.log, *mutated(subject.log)]
    findings: list[AppFinding] = []
    tell("isolated, in a fresh process")
    first = answers(subject, logs)
    findings += _isolated_findings(subject, logs, first)
    for kind, text, differs in _CIRCUMSTANCES:
        tell(kind)
        found = _differing(first, answers(subject, logs, **differs))
        if found:
            findings.append(_circumstance(subject, logs[found[0]], kind, text, differs))
            break  # an application that depends on chance seems to depend on everything
    tell("process-wide state")
    if not any(finding.kind in _DEPENDS for finding in findings):
        findings += _remembered(subject)
    application = load_application(subject.app, subject.args, placeholders=True)
    for name in engines:
        tell(f"on {name}")
        findings += _compared(application, load_engine(name), logs, clean=not findings)
    return findings


def mutated(log: InputLog) -> list[InputLog]:
    """Return inputs like `log`: without messages, with some twice, cut short, empty, altered."""
    small = list(log[:24])
    return [
        small[::2],
        [entry for entry in small for _ in range(2)],
        [(source, payload[: len(payload) // 2]) for source, payload in small],
        [(source, b"") for source, _ in small[:2]] + small,
        [(source, payload[::-1]) for source, payload in small],
        [(source, bytes([byte ^ 128 for byte in payload[:3]])) for source, payload in small],
        small[::-1],
    ]


def answers(
    subject: Subject, logs: Sequence[InputLog], *, clock: float = _NOON, hash_seed: int = 0
) -> list[Answer]:
    """Return what the application gives for inputs in a fresh process.

    Raises:
        PortabilityError: it failed.
    """
    request = {
        "app": subject.app,
        "args": list(subject.args),
        "clock": clock,
        "logs": [log_to_json(log) for log in logs],
    }
    done = subprocess.run(
        [sys.executable, "-m", "wallaroo_conformance.portability.worker"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise PortabilityError(f"{subject.app} cannot be run: {last}")
    found: list[Answer] = json.loads(done.stdout)
    return found


_DEPENDS = ("random", "clock", "hash order")

_CIRCUMSTANCES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("random", "two equal runs differ: it depends on chance", {}),
    ("clock", "with another time on the clock it gives something else", {"clock": _LATER}),
    ("hash order", "with another PYTHONHASHSEED it gives something else", {"hash_seed": 1}),
)


def _circumstance(
    subject: Subject, log: InputLog, kind: str, text: str, differs: dict[str, Any]
) -> AppFinding:
    """Reduce an input whose result `differs` changes."""

    def differing(some: Sequence[InputLog]) -> list[int]:
        return _differing(answers(subject, some), answers(subject, some, **differs))

    log = reduced(log, differing)
    [one], [other] = answers(subject, [log]), answers(subject, [log], **differs)
    step, key = _first_difference(one, other)
    return AppFinding(kind, step, key, text, log)


def _differing(some: Sequence[Answer], others: Sequence[Answer]) -> list[int]:
    """Return the indices of inputs whose results differ."""
    both = enumerate(zip(some, others, strict=True))
    return [index for index, (one, other) in both if one["trace"] != other["trace"]]


def _remembered(subject: Subject) -> list[AppFinding]:
    """Find out whether one run changes the next one in the same process."""

    def differing(some: Sequence[InputLog]) -> list[int]:
        # Each in a process of its own: what one leaves behind would change the others.
        for index, log in enumerate(some):
            first, second = answers(subject, [log, log])
            if first["trace"] != second["trace"]:
                return [index]
        return []

    if not differing([subject.log]):
        return []
    log = reduced(subject.log, differing, most=12)
    step, key = _first_difference(*answers(subject, [log, log]))
    text = "a second run in the same process gives something else: something outlives the first"
    return [AppFinding("process-wide state", step, key, text, log)]


def _isolated_findings(
    subject: Subject, logs: Sequence[InputLog], found: Sequence[Answer]
) -> list[AppFinding]:
    """Return what isolated mode noticed, each kind once for each step."""
    findings: dict[tuple[str, str], AppFinding] = {}
    for log, answer in zip(logs, found, strict=True):
        for finding in answer["findings"]:
            which = (finding["kind"], finding["step"])
            if which in findings:
                continue

            def differing(some: Sequence[InputLog], which: tuple[str, str] = which) -> list[int]:
                return [
                    index
                    for index, one in enumerate(answers(subject, some))
                    if any((it["kind"], it["step"]) == which for it in one["findings"])
                ]

            # A finding needs no message after the one that shows it.
            needed = log[: finding["lineage"][0] + 1]
            least = reduced(needed, differing) if differing([needed]) else log
            key = "" if finding["key"] is None else show_key(key_from_json(finding["key"]))
            findings[which] = AppFinding(*which, key, finding["text"], least)
    return list(findings.values())


def reduced(
    log: InputLog,
    failing: Callable[[Sequence[InputLog]], list[int]],
    *,
    most: int = _MOST_CANDIDATES,
) -> InputLog:
    """Return a part of `log` that still fails, none of whose messages can be left out alone.

    Args:
        log: an input that fails.
        failing: of several inputs, the indices of those that fail.
        most: inputs tried at a time.
    """
    while len(log) > 1:
        candidates = _without(log)[:most]
        found = failing(candidates)
        if not found:
            return log
        log = candidates[found[0]]
    return log


def _without(log: InputLog) -> list[InputLog]:
    parts: list[InputLog] = []
    length = len(log) // 2
    while length:
        for start in range(0, len(log), length):
            part = [*log[:start], *log[start + length :]]
            if part:
                parts.append(part)
        length //= 2
    return sorted(parts, key=len)


def _first_difference(one: Answer, other: Answer) -> tuple[str, str]:
    """Return the step and key of the first call that gave something else."""
    for first, second in zip(one["calls"], other["calls"], strict=False):
        if first != second:
            key = first[1]
            return str(first[0]), "" if key is None else show_key(key_from_json(key))
    return "(a generator's items, or an encoder)", ""


def _compared(
    application: Application, engine: Engine, logs: Sequence[InputLog], *, clean: bool
) -> list[AppFinding]:
    """Return where an engine differs from the reference, over batches and partitions."""
    capabilities = engine.capabilities()
    if "isolated" not in capabilities.isolation and not clean:
        return []  # trusting mode is not promised to an application with findings
    try:
        engine.check(application)
    except UnsupportedTopology as refusal:
        return [AppFinding("unsupported", refusal.step, "", f"{engine.name}: {refusal}", [])]
    reference = load_engine("reference")
    isolation = "isolated" if "isolated" in capabilities.isolation else "trusting"
    cases = [
        Case(application, log, batches, partitions, isolation)  # type: ignore[arg-type]
        for log in logs
        for batches, partitions in ((None, None), ([1, 2], 3))
        if (batches is None or capabilities.batches) and log
    ]
    given: Sequence[Trace | Crash]
    try:
        answers = engine.run_many(cases)
        given = [crash(one) if isinstance(one, Exception) else one for one in answers]
    except Exception as error:  # noqa: BLE001 - it is the engine's answer
        given = [crash(error)] * len(cases)
    for case, actual in zip(cases, given, strict=True):
        expected = reference.run(Case(application, case.input_log, partitions=case.partitions))
        if actual.comparable() != expected.comparable():
            return [_engine_finding(engine, application, case, expected, actual)]
    return []


def _engine_finding(
    engine: Engine, application: Application, case: Case, expected: Trace, actual: Trace | Crash
) -> AppFinding:
    def differing(some: Sequence[InputLog]) -> list[int]:
        for index, log in enumerate(some):
            small = Case(application, log, case.batches, case.partitions, case.isolation)
            wanted = load_engine("reference").run(
                Case(application, log, partitions=case.partitions)
            )
            try:
                given: Trace | Crash = engine.run(small)
            except Exception as error:  # noqa: BLE001 - it is the engine's answer
                given = crash(error)
            if given.comparable() != wanted.comparable():
                return [index]
        return []

    log = reduced(list(case.input_log), differing, most=16)
    wanted, came = trace_lines(expected), trace_lines(actual)
    pairs = [(one, other) for one, other in zip(wanted, came, strict=False) if one != other]
    one, other = pairs[0] if pairs else (wanted[-1], came[-1])
    text = f"{engine.name} differs from the reference: {other}; it should be {one}"
    return AppFinding("engines differ", engine.name, "", text, log)
