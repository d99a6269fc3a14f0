"""What a look at an application shows, each with the smallest input that was found for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from wallaroo.trace import InputLog

MOST_CANDIDATES = 48
"""Inputs that a step of a reduction tries, by default."""
_MOST_ROUNDS = 40

Smaller: TypeAlias = Callable[[bytes], Sequence[bytes]]
"""Payloads that a reduction may put in the place of one, the smallest first."""


@dataclass(frozen=True)
class AppFinding:
    """Something about the application that makes its results differ.

    Args:
        kind: what its results depend on, or what is wrong.
        step: the step's, decoder's or encoder's name.
        key: the entity's key for people, empty without one.
        text: what was seen.
        log: the input that shows it.
    """

    kind: str
    step: str
    key: str
    text: str
    log: InputLog

    @property
    def subject(self) -> tuple[str, ...]:
        """What it is about; of several with one subject, one is reported."""
        return self.kind, self.step

    def __str__(self) -> str:
        return f"{self.kind}: step {self.step!r}" + f", key {self.key}" * bool(self.key)


@dataclass(frozen=True)
class Letters:
    """Dead letters of one kind: they have a place and a reason in common.

    Args:
        pipeline: the pipeline's name.
        where: the step's name, ``decoder`` or ``encoder N``.
        reason: as dead-1 has it.
        error_type: the exception's class, empty where none was raised.
        text: the error of one.
        log: the input that leads to it.
        number: how many there were.
    """

    pipeline: str
    where: str
    reason: str
    error_type: str
    text: str
    log: InputLog
    number: int = 1

    @property
    def subject(self) -> tuple[str, ...]:
        """Their kind."""
        return self.pipeline, self.where, self.reason, self.error_type

    def __str__(self) -> str:
        error = f" {self.error_type}" if self.error_type else ""
        kind = f"{self.pipeline}, {self.where}: {self.reason}{error}"
        return f"dead letters ({self.number}): {kind}"


@dataclass
class Look:
    """What was seen of an application.

    Args:
        findings: each kind once for each step.
        letters: each kind of dead letter once.
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
        """Add what more inputs showed."""
        self.findings = _smallest([*self.findings, *other.findings])
        letters = [*self.letters, *other.letters]
        numbers = Counter[tuple[str, ...]]()
        for each in letters:
            numbers[each.subject] += each.number
        self.letters = [
            replace(each, number=numbers[each.subject])
            for each in sorted(_smallest(letters), key=lambda each: each.subject)
        ]
        self.inputs += other.inputs
        self.messages += other.messages
        self.called |= other.called


_Shown = TypeVar("_Shown", AppFinding, Letters)


def _smallest(shown: Iterable[_Shown]) -> list[_Shown]:
    """Return for each subject the one with the smallest input, in the order of the first."""
    smallest: dict[tuple[str, ...], _Shown] = {}
    for each in shown:
        if each.subject not in smallest or len(each.log) < len(smallest[each.subject].log):
            smallest[each.subject] = each
    return list(smallest.values())


def reduced(
    shown: Iterable[_Shown],
    shows: Callable[[Sequence[InputLog]], Sequence[Sequence[_Shown]]],
    smaller: Smaller,
    most: int = MOST_CANDIDATES,
) -> list[_Shown]:
    """Return for each subject what a reduced input shows of it.

    Args:
        shown: what inputs have shown.
        shows: says what other inputs show.
        smaller: what may be tried in the place of a payload.
        most: inputs that are tried at a time.
    """
    return [_reduced(each, shows, smaller, most) for each in _smallest(shown)]


def _reduced(
    whole: _Shown,
    shows: Callable[[Sequence[InputLog]], Sequence[Sequence[_Shown]]],
    smaller: Smaller,
    most: int,
) -> _Shown:
    """Return what an input shows that no single step can make smaller."""
    least = whole
    for steps in (_without_messages, lambda log: _with_smaller_payloads(log, smaller)):
        for _ in range(_MOST_ROUNDS):
            candidates = steps(least.log)[:most]
            again = [
                replace(each, log=log)
                for log, some in zip(
                    candidates, shows(candidates) if candidates else [], strict=False
                )
                for each in some
                if each.subject == whole.subject
            ]
            if not again:
                break
            least = again[0]
    return least


def _without_messages(log: InputLog) -> list[InputLog]:
    """Return the input without a part of its messages, the shortest first; never empty."""
    parts: list[InputLog] = []
    length = len(log) // 2
    while length:
        parts += [[*log[:at], *log[at + length :]] for at in range(0, len(log), length)]
        length //= 2
    return sorted(filter(None, parts), key=len)


def _with_smaller_payloads(log: InputLog, smaller: Smaller) -> list[InputLog]:
    logs = [
        [*log[:place], (source, payload), *log[place + 1 :]]
        for place, (source, whole) in enumerate(log)
        for payload in smaller(whole)
    ]
    return sorted(logs, key=lambda log: sum(len(payload) for _, payload in log))
