"""Steering: makes cases for pairs of facts that are rare so far, from cases with one of the two.

Two rare facts seldom meet in one random case: each is rare by itself, and most cases meet neither.
But a small case with one fact and a small case with the other are known, and crossing them often
gives a case with both.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.crossing import crossed
from wallaroo_conformance.judge.coverage import Coverage, Kind, Pair, PairsMet, in_order
from wallaroo_conformance.judge.fact import Fact

_CONTENDERS = 16
"""Pairs that are looked at for each case: the rarest is tried."""


class Steering:
    """Makes cases that are led to rare pairs of facts.

    Args:
        coverage: what has been met so far; it grows between the calls.
    """

    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage
        self._tried: Counter[Pair] = Counter()

    def led(self, count: int, seed: int, kind: Kind) -> list[ConformanceCase]:
        """Return at most `count` different cases of a kind; none if few pairs have been met."""
        met = self._coverage.kinds.get(kind)
        if met is None or len(met.of) < _CONTENDERS:
            return []
        rng = Random(seed)  # noqa: S311 - no secret
        facts = list(met.of)
        made: dict[ConformanceCase, None] = {}
        for _ in range(count):
            parents = [_met(met, fact, rng) for fact in self._rarest(met, facts, rng)]
            rng.shuffle(parents)
            one, other = parents
            made[crossed(one, other, rng)] = None
        return list(made)

    def _rarest(self, met: PairsMet, facts: list[Fact], rng: Random) -> Pair:
        """Return a pair that few cases have met, and that was not tried often without success."""
        contenders = [in_order(*rng.sample(facts, 2)) for _ in range(_CONTENDERS)]
        rarest = min(contenders, key=lambda pair: met.count[pair] + self._tried[pair])
        self._tried[rarest] += 1
        return rarest


def _met(met: PairsMet, fact: Fact, rng: Random) -> ConformanceCase:
    """Return a case that has met a fact, together with any other one.

    Small cases leave room for a second fact; large ones have more messages.
    """
    known = met.smallest if rng.random() < 1 / 2 else met.latest
    return known[rng.choice(met.of[fact])]
