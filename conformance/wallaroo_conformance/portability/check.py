"""Checks of one application: in fresh processes, with another clock, on other engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wallaroo.engine import load_engine
from wallaroo.keys import key_from_json, show_key
from wallaroo.loading import load_application
from wallaroo.trace import InputLog
from wallaroo_conformance.portability.engines import compared
from wallaroo_conformance.portability.processes import LATER, Answer, Subject
from wallaroo_conformance.portability.reducing import Smaller, reduced
from wallaroo_conformance.portability.results import AppFinding, Letters, Look, letters_of

_MOST_REMEMBERING = 12  # inputs of a reduction's step, where each takes a process of its own
_MOST_MESSAGES = 2_000  # of one input; the rest is not looked at

_HASH_SEEDS = (1, 2)  # two words in a set stand in the same order with every second seed

# What results may depend on, in this order: chance seems to be a dependence on everything.
_CIRCUMSTANCES: tuple[tuple[str, str, tuple[dict[str, Any], ...]], ...] = (
    ("random", "two equal runs differ: it depends on chance", ({"parent": 1},)),
    ("clock", "with another time on the clock it gives something else", ({"clock": LATER},)),
    (
        *("hash order", "with another PYTHONHASHSEED it gives something else"),
        tuple([{"hash_seed": seed} for seed in _HASH_SEEDS]),
    ),
)


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
    result.findings = _own_findings(subject, logs, first, smaller)
    for log, answer in zip(logs, first, strict=True):
        for letters in letters_of(log, answer):
            result.add_letters(letters)
    result.letters = {
        kind: _reduced_letters(subject, letters, smaller)
        for kind, letters in sorted(result.letters.items())
    }
    depends = _depends(subject, logs, first, smaller, tell)
    result.findings += depends
    tell("process-wide state")
    if not depends:
        result.findings += _remembered(subject, logs, first, smaller)
    application = load_application(subject.app, subject.args, placeholders=True)
    for name in engines:
        tell(f"on {name}")
        clean = not result.findings
        result.findings += compared(application, load_engine(name), logs, smaller, clean=clean)
    return result


def _own_findings(
    subject: Subject, logs: Sequence[InputLog], first: Sequence[Answer], smaller: Smaller
) -> list[AppFinding]:
    """Return the findings of isolated mode, each kind once for each step, with reduced inputs."""
    findings: dict[tuple[str, str], AppFinding] = {}
    for log, answer in zip(logs, first, strict=True):
        for finding in answer["findings"]:
            which = (finding["kind"], finding["step"])
            # A finding needs no message after the one that shows it.
            needed = log[: finding["lineage"][0] + 1]
            if which not in findings or len(needed) < len(findings[which].log):
                findings[which] = AppFinding(*which, _key(finding["key"]), finding["text"], needed)

    def least(which: tuple[str, str], log: InputLog) -> InputLog:
        def failing(some: Sequence[InputLog]) -> list[bool]:
            return [
                which in [(finding["kind"], finding["step"]) for finding in answer["findings"]]
                for answer in subject.answers(some)
            ]

        return reduced(log, failing, smaller)

    return [
        AppFinding(*which, finding.key, finding.text, least(which, finding.log))
        for which, finding in findings.items()
    ]


def _reduced_letters(subject: Subject, letters: Letters, smaller: Smaller) -> Letters:
    """Return dead letters of a kind with a reduced input, and the error of that input."""

    def same(log: InputLog, answer: Answer) -> list[Letters]:
        return [one for one in letters_of(log, answer) if one.kind == letters.kind]

    def failing(some: Sequence[InputLog]) -> list[bool]:
        answers = zip(some, subject.answers(some), strict=True)
        return [bool(same(log, answer)) for log, answer in answers]

    log = reduced(letters.log, failing, smaller)
    [answer] = subject.answers([log])
    errors = [one.error for one in same(log, answer)]
    return Letters(letters.kind, letters.number, [*errors, letters.error][0], log)


def _depends(
    subject: Subject,
    logs: Sequence[InputLog],
    first: Sequence[Answer],
    smaller: Smaller,
    tell: Callable[[str], None],
) -> list[AppFinding]:
    """Return the first circumstance that results depend on, if there is one."""
    for kind, text, ways in _CIRCUMSTANCES:
        tell(kind)
        for differs in ways:

            def differing(some: Sequence[InputLog], differs: Any = differs) -> list[bool]:
                return _differing(subject.answers(some), subject.answers(some, **differs))

            different = _differing(first, subject.answers(logs, **differs))
            if any(different):
                log = reduced(logs[different.index(True)], differing, smaller)
                [one], [other] = subject.answers([log]), subject.answers([log], **differs)
                return [AppFinding(kind, *_first_difference(one, other), text, log)]
    return []


def _differing(some: Sequence[Answer], others: Sequence[Answer]) -> list[bool]:
    """Return of each input whether its two results differ."""
    return [one["trace"] != other["trace"] for one, other in zip(some, others, strict=True)]


def _remembered(
    subject: Subject, logs: Sequence[InputLog], first: Sequence[Answer], smaller: Smaller
) -> list[AppFinding]:
    """Return whether one run changes the next one in the same process."""

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
            place = _first_difference(*subject.answers([least, least]))
            text = "a second run in the same process gives something else: something outlives it"
            return [AppFinding("process-wide state", *place, text, least)]
    return []


def _first_difference(one: Answer, other: Answer) -> tuple[str, str]:
    """Return the step and key of the first call that gave something else."""
    for first, second in zip(one["calls"], other["calls"], strict=False):
        if first != second:
            return str(first[0]), _key(first[1])
    return "(a generator's items, or an encoder)", ""


def _key(form: Any) -> str:
    return "" if form is None else show_key(key_from_json(form))
