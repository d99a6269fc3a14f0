"""The kinds of dead letter that an application's inputs lead to, each with its smallest input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wallaroo.trace import InputLog
from wallaroo_conformance.portability.processes import Answer


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
    log: InputLog = field(compare=False)


def kinds(answer: Answer) -> list[LetterKind]:
    """Return the kind of each dead letter of an answer."""
    return [_kind(letter) for letter in answer["trace"]["dead_letters"]]


def found_letters(logs: Sequence[InputLog], found: Sequence[Answer]) -> list[Letters]:
    """Return the kinds of dead letter, each with an input that need not be the smallest."""
    letters: dict[LetterKind, Letters] = {}
    for log, answer in zip(logs, found, strict=True):
        told = zip(answer["trace"]["dead_letters"], answer["errors"], strict=True)
        for letter, error in told:
            kind = _kind(letter)
            known = letters.get(kind)
            needed = log[: letter["lineage"][0] + 1]
            if known is None or len(needed) < len(known.log):
                letters[kind] = Letters(kind, known.number + 1 if known else 1, error, needed)
            else:
                letters[kind] = Letters(kind, known.number + 1, known.error, known.log)
    return [letters[kind] for kind in sorted(letters)]


def _kind(letter: dict[str, Any]) -> LetterKind:
    where = "decoder" if letter["sink"] is None else f"encoder {letter['sink']}"
    return LetterKind(
        letter["pipeline"], letter["step"] or where, letter["reason"], letter["error_type"] or ""
    )
