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
from wallaroo_conformance.portability.reducing import MOST_CANDIDATES, Smaller, reduced
from wallaroo_conformance.portability.results import AppFinding, Letters, Look, letters_of

_MOST_REMEMBERING = 12  # inputs of a reduction's step, where each takes a process of its own
_MOST_MESSAGES = 2_000  # of one input; the rest is not looked at

_HASH_SEEDS = (1, 2)  # two words in a set stand in the same order with every second seed

_CIRCUMSTANCES: tuple[tuple[str, str, tuple[dict[str, Any], ...]], ...] = (
    ("random", "two equal runs differ: it depends on chance", ({"chance": 1}, {"parent": 1})),
    ("clock", "with another time on the clock it gives something else", ({"clock": LATER},)),
    (
        *("hash order", "with another PYTHONHASHSEED it gives something else"),
        tuple([{"hash_seed": seed} for seed in _HASH_SEEDS]),
    ),
)
"""What results may depend on. What depends on addresses comes first: it seems to depend on all that
needs other processes or a second run, too."""


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
    result.findings += _depends(subject, logs, first, smaller, tell)
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
    """Return what results depend on: each circumstance once for each component that shows it."""
    findings: list[AppFinding] = []
    by_address: set[str] = set()
    for kind, text, ways in _CIRCUMSTANCES:
        tell(kind)
        blamed = set(by_address)
        for differs in ways:

            def culprits(some: Sequence[InputLog], differs: Any = differs) -> list[dict[str, str]]:
                answers = zip(subject.answers(some), subject.answers(some, **differs), strict=True)
                return [_culprits(one, other) for one, other in answers]

            others = subject.answers(logs, **differs)
            of_each = [_culprits(one, other) for one, other in zip(first, others, strict=True)]
            if "parent" in differs:
                by_address = {name for found in of_each for name in found}
            findings += _blamed(kind, text, logs, of_each, culprits, smaller, blamed)
    tell("process-wide state")
    return findings + _remembered(subject, logs, first, smaller, by_address)


def _blamed(
    kind: str,
    text: str,
    logs: Sequence[InputLog],
    of_each: Sequence[dict[str, str]],
    culprits: Callable[[Sequence[InputLog]], list[dict[str, str]]],
    smaller: Smaller,
    blamed: set[str],
    most: int = MOST_CANDIDATES,
) -> list[AppFinding]:
    """Return a finding for each component that is to blame, with a reduced input.

    Args:
        kind: the findings'.
        text: what was seen.
        logs: inputs.
        of_each: the components to blame for a difference on each input.
        culprits: says that of other inputs.
        smaller: what may be tried in the place of a payload.
        blamed: components that are not looked at; those found are added.
        most: candidates in a step of a reduction.
    """
    findings: list[AppFinding] = []
    for log, found in zip(logs, of_each, strict=True):
        for name in found:
            if name in blamed:
                continue
            blamed.add(name)

            def failing(some: Sequence[InputLog], name: str = name) -> list[bool]:
                return [name in found for found in culprits(some)]

            least = reduced(log, failing, smaller, most=most)
            [key] = [found.get(name, "") for found in culprits([least])]
            findings.append(AppFinding(kind, name, key, text, least))
    return findings


def _remembered(
    subject: Subject,
    logs: Sequence[InputLog],
    first: Sequence[Answer],
    smaller: Smaller,
    by_address: set[str],
) -> list[AppFinding]:
    """Return whether one run changes the next one in the same process."""

    def culprits(some: Sequence[InputLog]) -> list[dict[str, str]]:
        # Each in a process of its own: what one leaves behind would change the others.
        return [_culprits(*subject.answers([log, log])) for log in some]

    # In another order, each run has other runs before it.
    backwards = subject.answers(logs[::-1])[::-1]
    others = [one["trace"] != other["trace"] for one, other in zip(first, backwards, strict=True)]
    suspects = [log for log, other in zip(logs[1:], others[1:], strict=True) if other]
    tried = [logs[0], *suspects[:2]]
    text = "a second run in the same process gives something else: something outlives it"
    return _blamed(
        *("process-wide state", text, tried, culprits(tried), culprits, smaller),
        *(set(by_address), _MOST_REMEMBERING),
    )


_ELSEWHERE = "(a generator's items, or a builder)"
"""To blame for a difference that no call shows."""


def _culprits(one: Answer, other: Answer) -> dict[str, str]:
    """Return the components to blame for a difference, each with the key of its first such call.

    They gave something else for the same arguments. What comes of it is not their followers' fault.
    """
    if one["trace"] == other["trace"]:
        return {}
    outcomes: dict[tuple[str, str], list[str]] = {}
    for name, _, given, outcome in reversed(other["calls"]):
        outcomes.setdefault((name, given), []).append(outcome)
    culprits: dict[str, str] = {}
    for name, key, given, outcome in one["calls"]:
        if (others := outcomes.get((name, given))) and others.pop() != outcome:
            culprits.setdefault(name, _key(key))
    return culprits or {_ELSEWHERE: ""}


def _key(form: Any) -> str:
    return "" if form is None else show_key(key_from_json(form))
