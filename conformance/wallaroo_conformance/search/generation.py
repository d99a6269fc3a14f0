"""Generation: chooses which cases are run next.

Two rare facts seldom meet in one random case: each is rare by itself, and most cases meet neither.
But a small case with one fact and a small case with the other are known, and crossing them often
gives a case with both. Such cases are *led*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import count as counting
from random import Random
from typing import TypeAlias

from wallaroo.engine import Isolation
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.crossing import crossed
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.cases.operators import Tone
from wallaroo_conformance.cases.timed_tour import timed_tour
from wallaroo_conformance.cases.tour import pairs, tour
from wallaroo_conformance.judge.coverage import Coverage, Kind, Origin, Pair, PairsMet, in_order
from wallaroo_conformance.judge.fact import Fact

Chunk: TypeAlias = dict[ConformanceCase, Origin]
"""Cases, and how each was chosen."""

_FIRST_CHUNK = 256
_FIRST_CHUNK_OF_FEW = 32
_STAGES = ("drawn", "led", "tours", "led", "pairs")
_LED = 1 / 2
"""The share of cases in later chunks that are led to rare pairs of facts."""
_TIMED_AT_FIRST, _TIMED = 1 / 3, 1 / 4
"""The share of timed cases in the first chunk, and in later ones."""
_FIRST_ADDED = 10_000  # number of the first chunk of `more`; seeds of the others stay below
_CONTENDERS = 16
"""Pairs that are looked at for each led case: the rarest is tried."""

_BOTH: frozenset[Isolation] = frozenset({"isolated", "trusting"})
_ISOLATED: frozenset[Isolation] = frozenset({"isolated"})
_TRUSTING: frozenset[Isolation] = frozenset({"trusting"})

_TAME = {_BOTH: 1 / 4, _ISOLATED: 0.0, _TRUSTING: 7 / 8}
"""By the modes that an engine has: the share of tame cases, whose applications have no findings, so
that `trusting` mode is promised to them. An engine that has no other mode also gets some of the
rest: a few of them have no findings either."""

_TONES: Mapping[Isolation, Tone] = {"isolated": "any", "trusting": "tame"}

_TOURS: Mapping[frozenset[Isolation], tuple[Tone, ...]] = {
    _BOTH: ("any", "tame"),
    _ISOLATED: ("any",),
    _TRUSTING: ("tame",),
}


class Generation:
    """The cases of one search, chunk by chunk; equal arguments give equal cases.

    Args:
        seed: of the generation.
        modes: isolation modes of the engine.
        most: most cases in a chunk that is drawn.
        coverage: what has been met so far, by which cases are led; it grows between the calls.
            `None`: all cases come by chance.
        few: begin with small chunks, for a search that stops at its first failure.
    """

    def __init__(
        self,
        seed: int,
        modes: frozenset[Isolation],
        most: int,
        coverage: Coverage | None = None,
        *,
        few: bool = False,
    ) -> None:
        self.spare_timed = False
        """Draw no more timed cases."""
        self._chunks = 0
        self._seed = seed
        self._modes = modes & _BOTH or _ISOLATED
        self._most = most
        self._coverage = coverage
        self._tried: Counter[Pair] = Counter()
        self._first = _FIRST_CHUNK_OF_FEW if few else _FIRST_CHUNK
        self._few = few
        self._fixed: list[ConformanceCase] = []  # those of a stage that are left
        self._added = counting(_FIRST_ADDED)

    def next_chunk(self, left: int | None) -> Chunk:
        """Return the next cases, at most `left`.

        Most faults show in few random cases, so the first chunk is small. Then come cases that are
        led to rare pairs of facts, the tours of all operators and of windows, led cases again,
        since the tours have met more facts, and all pairs of operators. From then on chunks are as
        large as a job may be, since every job costs something; if jobs have few cases at first,
        each has twice as many as the one before. Half of the cases are led.
        """
        number = self._chunks
        stage = _STAGES[number] if number < len(_STAGES) else "later"
        if stage in ("tours", "pairs"):
            self._fixed = self._fixed or _mixed(self._cases_of(stage))
            size = self._first << number if self._few else len(self._fixed)
            chunk, self._fixed = self._fixed[:size], self._fixed[size:]
            self._chunks += not self._fixed
            return dict.fromkeys(chunk[:left], "fixed")
        self._chunks += 1
        size = self._first if stage == "drawn" else _FIRST_CHUNK
        if stage == "later":
            size = self._first << number
        size = min(size, self._most, size if left is None else left)
        led = {"later": int(size * _LED), "led": size}.get(stage, 0)
        share = _TIMED_AT_FIRST if stage == "drawn" else 0.0 if self.spare_timed else _TIMED
        seed = self._seed_of(number)
        by_chance = self._drawn(size - led, share, seed)
        made: Chunk = dict.fromkeys(self._led(led, share, seed), "led")
        return {**dict.fromkeys(by_chance, "chance"), **made}

    def more(self, count: int = _FIRST_CHUNK) -> list[ConformanceCase]:
        """Return cases to look through for laws that no case has exercised yet.

        None is tame: the laws that random cases miss are mostly laws that tame cases cannot
        exercise.
        """
        size = min(self._most, count)
        seed = self._seed_of(next(self._added))
        return [*generate(size, seed, "any"), *generate(size, seed, "any", timed=True)]

    def _cases_of(self, stage: str) -> Iterable[ConformanceCase]:
        """Return the cases of a stage that is the same in every search."""
        tones = _TOURS[self._modes]
        if stage == "pairs":
            return pairs(tones[0])  # those of "any" have the tame ones too
        return [case for made in (tour, timed_tour) for tone in tones for case in made(tone)]

    def _drawn(self, count: int, share: float, seed: int) -> list[ConformanceCase]:
        """Return cases that are drawn by chance, a share of them timed."""
        cases: list[ConformanceCase] = []
        for timed, isolation, part in self._kinds(count, share):
            cases += generate(part, seed, _TONES[isolation], timed=timed)
        return cases

    def _led(self, count: int, share: float, seed: int) -> list[ConformanceCase]:
        """Return cases that are led to rare pairs of facts; fewer if little has been met yet."""
        cases: list[ConformanceCase] = []
        for timed, isolation, part in self._kinds(count, share) if self._coverage else ():
            cases += self.led(part, seed, (timed, isolation))
        return cases

    def led(self, count: int, seed: int, kind: Kind) -> list[ConformanceCase]:
        """Return at most `count` different cases of a kind that are led to rare pairs of facts."""
        met = None if self._coverage is None else self._coverage.kinds.get(kind)
        if met is None or len(met.of) < _CONTENDERS:
            return []
        rng = Random(seed)  # noqa: S311 - no secret
        facts = list(met.of)
        made: dict[ConformanceCase, None] = {}
        for _ in range(count):
            parents = [_case_with(met, fact, rng) for fact in self._rarest(met, facts, rng)]
            rng.shuffle(parents)
            made[crossed(parents[0], parents[1], rng)] = None
        return list(made)

    def _rarest(self, met: PairsMet, facts: list[Fact], rng: Random) -> Pair:
        """Return a pair that few cases have met, and that was not tried often without success."""
        contenders = [in_order(*rng.sample(facts, 2)) for _ in range(_CONTENDERS)]
        rarest = min(contenders, key=lambda pair: met.count[pair] + self._tried[pair])
        self._tried[rarest] += 1
        return rarest

    def _kinds(self, count: int, timed: float) -> list[tuple[bool, Isolation, int]]:
        """Return how many cases are timed or not, and tame ones in `trusting` mode or not."""
        found: list[tuple[bool, Isolation, int]] = []
        for is_timed, part in ((False, count - int(count * timed)), (True, int(count * timed))):
            tame = int(part * _TAME[self._modes])
            found += [(is_timed, "isolated", part - tame), (is_timed, "trusting", tame)]
        return [one for one in found if one[2]]

    def _seed_of(self, number: int) -> int:
        return self._seed * 1_000_003 + number


def _case_with(met: PairsMet, fact: Fact, rng: Random) -> ConformanceCase:
    """Return a case that has met a fact, together with any other one.

    Small cases leave room for a second fact; large ones have more messages.
    """
    cases = met.smallest if rng.random() < 1 / 2 else met.latest
    return cases[rng.choice(met.of[fact])]


def _mixed(cases: Iterable[ConformanceCase]) -> list[ConformanceCase]:
    """Return cases that every search has, in another order.

    Cases of a tour are like their neighbours. In this order they are not, so that one of each sort
    comes early, also with a small budget.
    """
    mixed = list(cases)
    Random(0).shuffle(mixed)  # noqa: S311 - no secret
    return mixed
