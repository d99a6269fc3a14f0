"""What a look at an application found: findings and kinds of dead letter, with smallest inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from wallaroo.trace import InputLog


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


@dataclass(frozen=True, order=True)
class LetterKind:
    """Dead letters that have a place and a reason in common.

    Args:
        pipeline: the pipeline's name.
        where: the step's name, ``decoder`` or ``encoder N``.
        reason: as dead-1 has it.
        error_type: the exception's class, empty where none was raised.
    """

    pipeline: str
    where: str
    reason: str
    error_type: str

    def __str__(self) -> str:
        error = f" {self.error_type}" if self.error_type else ""
        return f"{self.pipeline}, {self.where}: {self.reason}{error}"


@dataclass(frozen=True)
class Letters:
    """Dead letters of one kind.

    Args:
        kind: the kind.
        number: how many there were.
        error: the text of one.
        log: the smallest input found that leads to one.
    """

    kind: LetterKind
    number: int
    error: str
    log: InputLog


@dataclass
class Look:
    """What was seen of an application.

    Args:
        findings: each kind once for each step.
        letters: dead letters by kind.
        inputs: how many inputs it was run on.
        messages: how many messages these had.
        called: names of the steps, decoders and encoders that were called.
    """

    findings: list[AppFinding] = field(default_factory=list)
    letters: dict[LetterKind, Letters] = field(default_factory=dict)
    inputs: int = 0
    messages: int = 0
    called: set[str] = field(default_factory=set)

    def add(self, other: Look) -> None:
        """Add what more inputs showed; a finding that is known stays as it was."""
        known = {(finding.kind, finding.step) for finding in self.findings}
        self.findings += [it for it in other.findings if (it.kind, it.step) not in known]
        for letters in other.letters.values():
            self.add_letters(letters)
        self.inputs += other.inputs
        self.messages += other.messages
        self.called |= other.called

    def add_letters(self, more: Letters) -> None:
        """Add dead letters of a kind; the smaller input stays."""
        if (known := self.letters.get(more.kind)) is not None:
            smaller = min(known, more, key=lambda letters: len(letters.log))
            more = replace(smaller, number=known.number + more.number)
        self.letters[more.kind] = more


def letters_of(log: InputLog, answer: dict[str, Any]) -> Iterator[Letters]:
    """Yield each dead letter of an input's answer, with as much of the input as it needs."""
    for letter, error in zip(answer["trace"]["dead_letters"], answer["errors"], strict=True):
        where = "decoder" if letter["sink"] is None else f"encoder {letter['sink']}"
        kind = LetterKind(
            *(letter["pipeline"], letter["step"] or where),
            *(letter["reason"], letter["error_type"] or ""),
        )
        yield Letters(kind, 1, error, log[: letter["lineage"][0] + 1])
