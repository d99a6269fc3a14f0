"""A law: one way to see that a rule is kept, and which differences speak against it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from wallaroo_conformance.judge.differences import KINDS, Kind
from wallaroo_conformance.judge.fact import Fact, Facts
from wallaroo_conformance.judge.rules import rule_id

CONTENT: frozenset[Kind] = KINDS - {"numbers", "letter fields", "lineage"}
"""What most laws speak of: what comes of a message or an entity, not how it is described."""


@dataclass(frozen=True)
class Law:
    """One way to see that a rule is kept.

    Args:
        rule: the rule's id.
        name: what is special here, unique within the rule.
        says: what must hold, in a sentence.
        needs: facts that a case must have met. Laws of a live server and of the language need none.
        shows: the kinds of difference that it speaks of.
    """

    rule: str
    name: str
    says: str
    needs: Facts = frozenset()
    shows: frozenset[Kind] = frozenset()

    def __post_init__(self) -> None:
        rule_id(self.rule)

    @property
    def id(self) -> str:
        """Rule and name."""
        return f"{self.rule}/{self.name}"

    def fits(self, facts: Facts, kinds: frozenset[Kind]) -> bool:
        """Whether a case exercises it and differs in something that it speaks of."""
        return self.needs <= facts and bool(kinds & self.shows)


def law(law_id: str, needs: Set[Fact], says: str, shows: Set[Kind] = CONTENT) -> Law:
    """Return the law `law_id`, which is ``rule/name``."""
    rule, _, name = law_id.partition("/")
    return Law(rule, name, says, frozenset(needs), frozenset(shows))
