"""A law: one way to see that a rule is kept, which differences speak against it, what is known."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wallaroo_conformance.judge.differences import KINDS, Kind
from wallaroo_conformance.judge.rules import rule_id

CONTENT: frozenset[Kind] = KINDS - {"numbers", "letter fields", "lineage"}
"""What most laws speak of: what comes of a message or an entity, not how it is described."""

Status: TypeAlias = Literal["kept", "broken", "unsupported", "not exercised"]
STATUSES: tuple[Status, ...] = ("broken", "not exercised", "kept", "unsupported")
"""A rule with several laws has the first of these that one of its laws has."""


@dataclass(frozen=True)
class LawResult:
    """What is known of one law.

    Args:
        rule: the rule's id.
        name: the law's name within it.
        says: what must hold.
        status: what was found; `not exercised` also where all its cases failed by another law.
        exercised: cases that met its precondition and agreed with the reference.
        unsupported: cases that meet its precondition and need what the engine does not claim.
        note: why it is unsupported, or what it was hidden by.
    """

    rule: str
    name: str
    says: str
    status: Status
    exercised: int
    unsupported: int = 0
    note: str = ""


@dataclass(frozen=True)
class Law:
    """One way to see that a rule is kept.

    Args:
        rule: the rule's id.
        name: what is special here, unique within the rule.
        says: what must hold, in a sentence.
        shows: the kinds of difference that it speaks of; none where there are no traces.
    """

    rule: str
    name: str
    says: str
    shows: frozenset[Kind] = frozenset()

    def __post_init__(self) -> None:
        rule_id(self.rule)

    @property
    def id(self) -> str:
        """Rule and name."""
        return f"{self.rule}/{self.name}"

    def fits(self, exercised: Set[str], kinds: Set[Kind]) -> bool:
        """Whether a case may have broken it: exercises it, and differs in what it speaks of."""
        return self.id in exercised and bool(kinds & self.shows)

    def result(
        self, status: Status, exercised: int, unsupported: int = 0, note: str = ""
    ) -> LawResult:
        """Return what is known of it."""
        return LawResult(self.rule, self.name, self.says, status, exercised, unsupported, note)


def law(law_id: str, says: str, shows: Set[Kind] = CONTENT) -> Law:
    """Return the law `law_id`, which is ``rule/name``."""
    rule, _, name = law_id.partition("/")
    return Law(rule, name, says, frozenset(shows))
