"""Blaming: which law an engine breaks that fails on a case.

A failing case is reduced first; then everything in it is needed for the failure. Of the laws that
the reduced case exercises and that are about this kind of difference, the first in `LAWS` is meant:
the order is from special things, which a reduction removes if it can, to what every case has.

Other cases may know better. A law is passed over

- if a case that is about as plain fails too, and exercises no law of its rule: then the failure
  does not need what the law needs;
- if failing cases that it does not explain come down to cases which share a rule with this one, by
  particular laws that are no less likely: a single fault explains them all;
- if a particular law stands out more: more of the failing cases show its rule broken, or fewer of
  the other cases have kept it;
- if most of the other failing cases exercise neither it nor another particular law of its rule.

A law is *particular* if it needs a sign, or more than what the plainest cases have. Only such a law
can be shared or stand out, because all cases share the others. So two faults are not taken for one
fault in something general.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from wallaroo_conformance.judge.fact import Fact
from wallaroo_conformance.judge.law import Evidence, Law
from wallaroo_conformance.judge.laws import LAWS
from wallaroo_conformance.judge.laws.plain import PLAIN_LAWS
from wallaroo_conformance.judge.laws.timed import TIMED_LAWS

_EVERYDAY = frozenset(
    {
        *(Fact.DECODED, Fact.COMPUTED, Fact.ENTITY_BUILT, Fact.STATE_CHANGED),
        *(Fact.OUTPUT, Fact.OUTPUTS),
        *(Fact.TIMED, Fact.WINDOWED, Fact.FIRED, Fact.FIRED_RANGE, Fact.SOURCE_ENDED),
        *(Fact.ONE_KEY, Fact.ARRIVAL_TIME, Fact.EVENT_TIME),
    }
)
"""Facts that the plainest cases meet: a reduction does not remove them."""

_EVERYDAY_SIGNS = frozenset({"outputs lost"})
"""Signs of many faults."""

_MOST = 3 / 4  # of the cases that fail
_STANDS_OUT = 1.4  # times as much as the law before it, which then explains half as many
_BY_ID = {law.id: law for law in LAWS}
_FEWEST = 4  # failing cases; fewer do not say what stands out
_GENERAL = frozenset({*PLAIN_LAWS, _BY_ID["graph-1/topology"]})
"""Laws about what most cases have: it says nothing that failing cases exercise them."""
_FOR_NO_REASON = frozenset({_BY_ID["time-2/zero"], _BY_ID["time-1/arrival"], _BY_ID["time-4/own"]})
"""Laws that reduced cases often exercise for no reason."""
_OF_COMBINE = (_BY_ID["window-5/panes"], _BY_ID["window-7/merged"])
"""Laws about one call of user code: one fault breaks both."""
_EXACT = _BY_ID["order-2/exact"]
_ENDS = {"on-error": _BY_ID["dead-4/stop"], "exit": _BY_ID["dead-3/exit"]}


@dataclass(frozen=True)
class Seen:
    """What a search has seen besides the reduced case.

    Args:
        others: what other cases show that fail and that nothing explains yet.
        kept: cases that exercised a law and held, by the law's id.
        differed: cases that exercised a law and failed, by the law's id.
        reduced: what some of the others come down to.
        exchanged: what the reduced case shows if one thing in it has another's place, where it
            fails then too.
    """

    others: Sequence[Evidence] = ()
    kept: Mapping[str, int] = field(default_factory=dict)
    differed: Mapping[str, int] = field(default_factory=dict)
    reduced: Sequence[Evidence] = ()
    exchanged: Sequence[Evidence] = ()


def blame(found: Evidence, ended: str | None = None, seen: Seen | None = None) -> Law:
    """Return the law that a reduced case breaks.

    Args:
        found: what the case shows.
        ended: how the run ended early, of `end_of`. That is the failure: if the case failed
            without an early end, the reduction would have removed it.
        seen: what other cases say; `None`: nothing is known of others.
    """
    timed = Fact.TIMED in found.facts
    ends_differ = bool(found.kinds & {"ended", "crash"})
    # A generator of a timed case must end somehow, so it may exit for no reason.
    if ended is not None and (ends_differ or not (timed and ended == "exit")):
        return _ENDS[ended]
    seen = seen or Seen()
    laws = [law for law in LAWS if law.blamed_for(found)]
    if not laws:
        return _EXACT
    exchanged = [one for one in seen.exchanged if _fires_as(one, found)]
    needed = [
        law for law in laws if (law in _GENERAL and not timed) or all(_exercise(law, exchanged))
    ]
    if not (timed and _GENERAL.issuperset(needed)):
        laws = needed
    first = _standing_out(laws, found, seen)
    shared = _sharing(laws, seen.reduced)
    likely = _suspicion(first, found, seen, by_sign=True)
    for law in shared:
        if law == first or _suspicion(law, found, seen) >= likely:
            return law
    if first in shared or first not in TIMED_LAWS or _most_exercise(first, seen.others):
        return first
    common = [law for law in laws if law not in _GENERAL and _most_exercise(law, seen.others)]
    return max(common, key=lambda law: _suspicion(law, found, seen), default=first)


def _fires_as(one: Evidence, found: Evidence) -> bool:
    """Whether windows do not just stay open in a case, where they fire in the one that is found."""
    return Fact.FIRED in one.facts or not (
        Fact.FIRED in found.facts and Fact.WINDOWS_OPEN in one.facts
    )


def _is_particular(law: Law) -> bool:
    return bool(law.signs - _EVERYDAY_SIGNS) or not law.needs <= _EVERYDAY


def _sharing(laws: Sequence[Law], reduced: Sequence[Evidence]) -> Sequence[Law]:
    """Return those of a reduced case's laws whose rules all of these others come down to too."""
    rules = {law.rule for law in laws if law not in _GENERAL}
    for one in reduced:
        likely = [law for law in LAWS if _is_particular(law) and law.blamed_for(one)]
        rules &= {other.rule for law in likely for other in (law, *_alike(law))}
    return [law for law in laws if reduced and law.rule in rules]


def _standing_out(laws: Sequence[Law], found: Evidence, seen: Seen) -> Law:
    """Return the first law, or a particular one that stands out more."""
    first = laws[0]
    if len(seen.others) >= _FEWEST:
        for law in [law for law in laws[1:] if _is_particular(law) and law not in _GENERAL]:
            own = _suspicion(first, found, seen, by_sign=True)
            if _suspicion(law, found, seen) >= _STANDS_OUT * own:
                first = law
    return first


def _suspicion(law: Law, found: Evidence, seen: Seen, *, by_sign: bool = False) -> float:
    """Return how much a law stands out, from 0 to 1, as Ochiai's formula has it for lines of code.

    It is the geometric mean of two shares: of the failing cases those that show its rule broken,
    and of the cases that exercise it those that fail. No case that is kept shows a sign: `by_sign`
    says that all others do not count for a law that needs one. So much is granted to the law that
    stands first, not to those that would take its place.
    """
    failing = [found, *seen.others]
    laws = (law, *_alike(law))
    shown = sum(any(one.explains(case) for one in laws) for case in failing) / len(failing)
    differed, kept = seen.differed.get(law.id, 0), seen.kept.get(law.id, 0)
    if not differed or (by_sign and law.signs - _EVERYDAY_SIGNS):
        return math.sqrt(shown)
    return math.sqrt(shown * differed / (differed + kept))


def _most_exercise(law: Law, others: Sequence[Evidence]) -> bool:
    """Whether most cases exercise a law, or a particular one of the same rule."""
    return sum(_exercise(law, others)) >= _MOST * len(others)


def _exercise(law: Law, others: Sequence[Evidence]) -> list[bool]:
    """Return for each case whether it exercises a law, or a particular one of the same rule."""
    laws = (law, *_alike(law))
    return [any(one.exercised_by(case.facts) for one in laws) for case in others]


@cache
def _alike(law: Law) -> tuple[Law, ...]:
    """Return the particular laws of a law's rule, and those about the same call of user code."""
    own = [
        one
        for one in LAWS
        if one.rule == law.rule and _is_particular(one) and one not in _FOR_NO_REASON
    ]
    return (*own, *_OF_COMBINE) if law in _OF_COMBINE else tuple(own)
