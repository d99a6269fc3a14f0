"""A law: one way to see that a rule is kept, and which differences show that it is broken."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from wallaroo_conformance.judge.differences import KINDS, Kind, Sign
from wallaroo_conformance.judge.fact import Fact, Facts
from wallaroo_conformance.judge.rules import rule_id

CONTENT: frozenset[Kind] = KINDS - {"numbers", "letter fields", "lineage"}
"""The differences that show most laws broken."""

_SAID: frozenset[Kind] = KINDS - CONTENT | {"ended"}
"""The differences in what is said of a message or an entity, not in what came of it."""

STATE: frozenset[Kind] = CONTENT - {"existence", "keys"}
"""The differences that show laws broken which are about an existing entity."""


@dataclass(frozen=True)
class Evidence:
    """What a failing case says about its cause.

    Args:
        facts: what it has met on the reference.
        kinds: how the engine differs.
        signs: what is special about dead letters that differ.
    """

    facts: Facts
    kinds: frozenset[Kind]
    signs: frozenset[Sign] = frozenset()

    @property
    def of_content(self) -> bool:
        """Whether more differs than what dead letters and ends tell, or partition numbers."""
        return bool(self.kinds - _SAID)


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
        proves: kinds that are all needed to blame it.
        signs: one of these is needed too, unless there are none.
        unless: any of these shows that it is not broken.
    """

    rule: str
    name: str
    says: str
    cause: str
    needs: Facts
    shows: frozenset[Kind] = CONTENT
    proves: frozenset[Kind] = frozenset()
    signs: frozenset[Sign] = frozenset()
    unless: frozenset[Sign] = frozenset()

    @property
    def id(self) -> str:
        """Rule and name."""
        return f"{self.rule}/{self.name}"

    def exercised_by(self, facts: Facts) -> bool:
        """Whether a case with these facts has met the law's precondition."""
        return self.needs <= facts

    def explains(self, found: Evidence) -> bool:
        """Whether breaking this law can cause what a failing case shows."""
        return self.fits(found) and bool(found.kinds & self.shows)

    def blamed_for(self, found: Evidence) -> bool:
        """Whether this law may be blamed for what a reduced case shows.

        Where content differs, it does not matter what dead letters tell besides.
        """
        kinds = found.kinds & CONTENT or found.kinds
        shown = bool(kinds) and self.proves <= kinds <= self.shows
        return shown and self.fits(found) and not self.unless & found.signs

    def fits(self, found: Evidence) -> bool:
        """Whether a case exercises it, and shows one of its signs."""
        return self.needs <= found.facts and (not self.signs or bool(self.signs & found.signs))


def law(
    law_id: str,
    needs: Set[Fact],
    says: str,
    cause: str,
    shows: frozenset[Kind] = CONTENT,
    proves: Set[Kind] = frozenset(),
    signs: Set[Sign] = frozenset(),
    unless: Set[Sign] = frozenset(),
) -> Law:
    """Return the law `law_id`, which is ``rule/name``."""
    rule, _, name = law_id.partition("/")
    return Law(
        *(rule_id(rule), name, says, cause, frozenset(needs), shows),
        *(frozenset(proves), frozenset(signs), frozenset(unless)),
    )
