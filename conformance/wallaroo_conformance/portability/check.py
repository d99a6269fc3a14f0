"""Checks of one application: in fresh processes, with another clock, on other engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wallaroo.engine import load_engine
from wallaroo.keys import key_from_json, show_key
from wallaroo.loading import load_application
from wallaroo.trace import InputLog
from wallaroo_conformance.portability.engines import compared
from wallaroo_conformance.portability.finding import AppFinding
from wallaroo_conformance.portability.letters import Letters, found_letters, kinds
from wallaroo_conformance.portability.processes import LATER, Answer, Subject
from wallaroo_conformance.portability.reducing import (
    Smaller,
    reduced,
    reduced_together,
    reduction,
)

_MOST_CANDIDATES = 48  # in one step of a reduction
_MOST_REMEMBERING = 12  # the same, where each takes a process of its own
_MOST_MESSAGES = 2_000  # of one input; the rest is not looked at

_DEPENDS = ("random", "clock", "hash order")

_HASH_SEEDS = (1, 2)  # two words in a set stand in the same order with every second seed

_CIRCUMSTANCES: tuple[tuple[str, str, tuple[dict[str, Any], ...]], ...] = (
    ("random", "two equal runs differ: it depends on chance", ({"parent": 1},)),
    ("clock", "with another time on the clock it gives something else", ({"clock": LATER},)),
    (
        *("hash order", "with another PYTHONHASHSEED it gives something else"),
        tuple([{"hash_seed": one} for one in _HASH_SEEDS]),
    ),
)


@dataclass
class Look:
    """What was seen of an application.

    Args:
        findings: each kind once for each step.
        letters: the kinds of dead letter.
        inputs: how many inputs it was run on.
        messages: how many messages these had.
        called: names of the steps, decoders and encoders that were called.
    """

    findings: list[AppFinding] = field(default_factory=list)
    letters: list[Letters] = field(default_factory=list)
    inputs: int = 0
    messages: int = 0
    called: set[str] = field(default_factory=set)

    def add(self, other: Look) -> None:
        """Add what more inputs showed; a finding that is known stays as it was."""
        by_kind = {(one.kind, one.step): one for one in [*other.findings, *self.findings]}
        self.findings = list(by_kind.values())
        letters = {one.kind: one for one in self.letters}
        for one in other.letters:
            known = letters.get(one.kind)
            number = one.number + (known.number if known else 0)
            least = min([one, known] if known else [one], key=lambda it: len(it.log))
            letters[one.kind] = replace(least, number=number)
        self.letters = [letters[kind] for kind in sorted(letters)]
        self.inputs += other.inputs
        self.messages += other.messages
        self.called |= other.called


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
    findings, letters = _reduced_findings(subject, logs, first, smaller)
    findings += _depends(subject, logs, first, smaller, tell)
    tell("process-wide state")
    if not any(finding.kind in _DEPENDS for finding in findings):
        findings += _remembered(subject, logs, first, smaller)
    application = load_application(subject.app, subject.args, placeholders=True)
    for name in engines:
        tell(f"on {name}")
        engine = load_engine(name)
        findings += compared(application, engine, logs, smaller, clean=not findings)
    called = {str(call[0]) for answer in first for call in answer["calls"]}
    return Look(findings, letters, len(logs), sum(map(len, logs)), called)


def _depends(
    subject: Subject,
    logs: Sequence[InputLog],
    first: Sequence[Answer],
    smaller: Smaller,
    tell: Callable[[str], None],
) -> list[AppFinding]:
    """Return what results depend on: one, since chance seems to be a dependence on everything."""
    for kind, text, ways in _CIRCUMSTANCES:
        tell(kind)
        for differs in ways:
            found = _differing(first, subject.answers(logs, **differs))
            if any(found):
                log = logs[found.index(True)]
                return [_circumstance(subject, log, smaller, kind, text, differs)]
    return []


def _circumstance(
    subject: Subject, log: InputLog, smaller: Smaller, kind: str, text: str, differs: dict[str, Any]
) -> AppFinding:
    """Reduce an input whose result `differs` changes."""

    def differing(some: Sequence[InputLog]) -> Sequence[bool]:
        return _differing(subject.answers(some), subject.answers(some, **differs))

    log = reduced(log, differing, smaller)
    [one], [other] = subject.answers([log]), subject.answers([log], **differs)
    step, key = _first_difference(one, other)
    return AppFinding(kind, step, key, text, log)


def _differing(some: Sequence[Answer], others: Sequence[Answer]) -> list[bool]:
    """Return of each input whether its two results differ."""
    return [one["trace"] != other["trace"] for one, other in zip(some, others, strict=True)]


def _remembered(
    subject: Subject, logs: Sequence[InputLog], first: Sequence[Answer], smaller: Smaller
) -> list[AppFinding]:
    """Find out whether one run changes the next one in the same process."""

    def differing(some: Sequence[InputLog]) -> list[bool]:
        # Each in a process of its own: what one leaves behind would change the others.
        pairs = [subject.answers([log, log]) for log in some]
        return [one["trace"] != other["trace"] for one, other in pairs]

    # In another order, each run has other runs before it.
    backwards = subject.answers(logs[::-1])[::-1]
    others = _differing(first, backwards)[1:]
    suspects = [log for log, other in zip(logs[1:], others, strict=True) if other]
    for log in [logs[0], *suspects[:2]]:
        if differing([log])[0]:
            least = reduced(log, differing, smaller, most=_MOST_REMEMBERING)
            step, key = _first_difference(*subject.answers([least, least]))
            text = "a second run in the same process gives something else: something outlives it"
            return [AppFinding("process-wide state", step, key, text, least)]
    return []


def _reduced_findings(
    subject: Subject, logs: Sequence[InputLog], found: Sequence[Answer], smaller: Smaller
) -> tuple[list[AppFinding], list[Letters]]:
    """Return the findings of isolated mode and the kinds of dead letter, with reduced inputs.

    All are reduced together: a round takes one process, however many there are.
    """
    findings: dict[tuple[str, str], AppFinding] = {}
    for log, answer in zip(logs, found, strict=True):
        for finding in answer["findings"]:
            which = (finding["kind"], finding["step"])
            # A finding needs no message after the one that shows it.
            needed = log[: finding["lineage"][0] + 1]
            if which not in findings or len(needed) < len(findings[which].log):
                key = "" if finding["key"] is None else show_key(key_from_json(finding["key"]))
                findings[which] = AppFinding(*which, key, finding["text"], needed)
    letters = found_letters(logs, found)

    def noticed(which: tuple[str, str]) -> Callable[[Answer], bool]:
        return lambda answer: any((it["kind"], it["step"]) == which for it in answer["findings"])

    shows = [
        *[noticed(which) for which in findings],
        *[lambda answer, kind=one.kind: kind in kinds(answer) for one in letters],
    ]

    def showing(asked: Sequence[list[InputLog]]) -> list[list[bool]]:
        given = iter(subject.answers([log for some in asked for log in some]))
        return [[show(next(given)) for _ in some] for show, some in zip(shows, asked, strict=True)]

    starts = [*[one.log for one in findings.values()], *[one.log for one in letters]]
    least = reduced_together(
        [reduction(log, smaller, most=_MOST_CANDIDATES) for log in starts], showing
    )
    number = len(findings)
    told = found_letters(least[number:], subject.answers(least[number:])) if letters else []
    errors = {one.kind: one.error for one in told}
    return (
        [replace(one, log=log) for one, log in zip(findings.values(), least[:number], strict=True)],
        [
            replace(one, log=log, error=errors.get(one.kind, one.error))
            for one, log in zip(letters, least[number:], strict=True)
        ],
    )


def _first_difference(one: Answer, other: Answer) -> tuple[str, str]:
    """Return the step and key of the first call that gave something else."""
    for first, second in zip(one["calls"], other["calls"], strict=False):
        if first != second:
            key = first[1]
            return str(first[0]), "" if key is None else show_key(key_from_json(key))
    return "(a generator's items, or an encoder)", ""
