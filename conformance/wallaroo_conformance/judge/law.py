"""A law: one way to see that a rule is kept, and which differences show that it is broken."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from wallaroo_conformance.judge.differences import KINDS, Kind
from wallaroo_conformance.judge.fact import Fact, Facts
from wallaroo_conformance.judge.rules import rule_id

CONTENT: frozenset[Kind] = KINDS - {"numbers", "letter fields", "lineage"}
"""The differences that show most laws broken."""

STATE: frozenset[Kind] = CONTENT - {"existence", "keys"}
"""The differences that show laws broken which are about an existing entity."""


@dataclass(frozen=True)
class PlainLaw:
    """A law that is not about cases: about a live server, or about the language.

    Args:
        rule: the rule's id.
        name: what is special here, unique within the rule.
        says: what must hold, in a sentence.
        cause: what an engine that breaks it probably does.
    """

    rule: str
    name: str
    says: str
    cause: str

    def __post_init__(self) -> None:
        rule_id(self.rule)


@dataclass(frozen=True)
class Law:
    """One way to see that a rule is kept.

    Args:
        rule: the rule's id.
        name: what is special here, unique within the rule.
        says: what must hold, in a sentence.
        cause: what an engine that breaks it probably does.
        needs: facts a case must have met.
        shows: kinds of difference that show it broken.
        proves: kinds of which one is needed to blame it.
    """

    rule: str
    name: str
    says: str
    cause: str
    needs: Facts
    shows: frozenset[Kind] = CONTENT
    proves: frozenset[Kind] = frozenset()

    @property
    def id(self) -> str:
        """Rule and name."""
        return f"{self.rule}/{self.name}"

    def exercised_by(self, facts: Facts) -> bool:
        """Whether a case with these facts has met the law's precondition."""
        return self.needs <= facts

    def explains(self, facts: Facts, kinds: frozenset[Kind]) -> bool:
        """Whether breaking this law can cause these differences on a case with these facts."""
        return self.needs <= facts and bool(kinds & self.shows)

    def blamed_for(self, facts: Facts, kinds: frozenset[Kind]) -> bool:
        """Whether this law may be blamed for a reduced case with these facts and differences."""
        return bool(kinds) and self.proves <= kinds <= self.shows and self.needs <= facts


def law(
    law_id: str,
    needs: Set[Fact],
    says: str,
    cause: str,
    shows: frozenset[Kind] = CONTENT,
    proves: Set[Kind] = frozenset(),
) -> Law:
    """Return the law `law_id`, which is ``rule/name``."""
    rule, _, name = law_id.partition("/")
    return Law(rule_id(rule), name, says, cause, frozenset(needs), shows, frozenset(proves))
