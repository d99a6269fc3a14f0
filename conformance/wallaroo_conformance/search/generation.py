"""Generation: chooses which cases are run next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from itertools import count as counting
from random import Random
from typing import Literal, TypeAlias

from wallaroo.engine import Isolation
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.cases.operators import Tone
from wallaroo_conformance.cases.timed_tour import timed_tour
from wallaroo_conformance.cases.tour import pairs, tour
from wallaroo_conformance.judge.coverage import Origin
from wallaroo_conformance.search.steering import Steering

Chunk: TypeAlias = dict[ConformanceCase, Origin]
"""Cases, and how each was chosen."""

Part: TypeAlias = Literal["first", "second", "both"]
"""Cases of the rules' first part, timed cases, or both."""

_FIRST_CHUNK = 256
_FIRST_CHUNK_OF_FEW = 32
_STAGES = {
    "first": ("random", "led", "tour", "led again", "pairs"),
    "second": ("random", "led", "timed tour", "led again"),
    "both": ("random of both", "led", "both tours", "led again", "pairs"),
    "few": ("random", "timed", "led", "tour", "timed tour", "led again", "pairs"),
}
"""What the first chunks are, for each part; a search for the first failure alone has more and
smaller ones."""
_LED = 1 / 2
"""The share of cases in later chunks that are led to rare pairs of facts."""
_TIMED_AT_FIRST = 1 / 3
"""The share of timed cases in the first chunk."""
_TIMED = 1 / 4
"""The share of timed cases in later chunks."""
_FIRST_ADDED = 10_000  # number of the first chunk of `more`; seeds of the others stay below

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


def _tours(tones: Sequence[Tone]) -> Iterable[ConformanceCase]:
    return chain.from_iterable(map(tour, tones))


def _timed_tours(tones: Sequence[Tone]) -> Iterable[ConformanceCase]:
    return chain.from_iterable(map(timed_tour, tones))


def _both_tours(tones: Sequence[Tone]) -> Iterable[ConformanceCase]:
    return chain(_tours(tones), _timed_tours(tones))


def _pairs(tones: Sequence[Tone]) -> Iterable[ConformanceCase]:
    return pairs(tones[0])  # those of "any" have the tame ones too


_FIXED: Mapping[str, Callable[[Sequence[Tone]], Iterable[ConformanceCase]]] = {
    "tour": _tours,
    "timed tour": _timed_tours,
    "both tours": _both_tours,
    "pairs": _pairs,
}
"""The cases of each stage that is the same in every search."""


class Generation:
    """The cases of one search, chunk by chunk; equal arguments give equal cases.

    Args:
        seed: of the generation.
        modes: isolation modes of the engine.
        steering: makes the cases that are led to rare pairs of facts; `None`: all come by chance.
        most: most cases in a chunk.
        few: begin with very small chunks, for a search that stops at its first failure.
        part: which cases.
    """

    def __init__(
        self,
        seed: int,
        modes: frozenset[Isolation],
        most: int,
        steering: Steering | None = None,
        *,
        few: bool = False,
        part: Part = "both",
    ) -> None:
        self.chunks = 0
        """How many chunks `next_chunk` has given."""
        self.spare_timed = False
        """Draw no more timed cases if other cases can replace them."""
        self._part: Part = part
        self._seed = seed
        self._modes = modes & _BOTH or _ISOLATED
        self._most = most
        self._steering = steering
        self._first = _FIRST_CHUNK_OF_FEW if few else _FIRST_CHUNK
        self._stages = _STAGES["few" if few and part == "both" else part]
        self._added = counting(_FIRST_ADDED)

    def next_chunk(self, left: int | None) -> Chunk:
        """Return the next cases, at most `left`.

        Most faults show in few random cases, so the first chunk is small. Then come cases that are
        led to rare pairs of facts, the tours of all operators and of windows, led cases again,
        since the tours have met more facts, and all pairs of operators. From then on chunks are as
        large as a job may be, since every job costs something; if jobs have few cases at first,
        each has twice as many as the one before. Half of the cases are led.
        """
        number = self.chunks
        self.chunks += 1
        stage = (*self._stages, *("later",) * (number + 1))[number]
        if stage in _FIXED:
            return _chosen(_FIXED[stage](_TOURS[self._modes]), left)
        sizes = {
            "random of both": self._first + self._first // 2,
            "timed": self._first // 2,
            "led": self._first,
            "led again": _FIRST_CHUNK,
        }
        size = sizes.get(stage, self._first << number)
        size = min(size, self._most, size if left is None else left)
        led = {"later": int(size * _LED), "led": size, "led again": size}.get(stage, 0)
        seed = self._seed_of(number)
        timed = self._timed_share(stage)
        drawn = size - led
        by_chance = self._drawn(drawn - int(drawn * timed), int(drawn * timed), seed)
        chunk: Chunk = {}
        for case in self._led(led - int(led * timed), int(led * timed), seed):
            chunk[case] = "led"
        for case in by_chance:
            chunk.setdefault(case, "chance")
        return chunk

    def _timed_share(self, stage: str) -> float:
        """Return the share of timed cases."""
        if self._part == "second" or stage == "timed":
            return 1.0
        if stage == "random of both":
            return _TIMED_AT_FIRST
        mixed = self._part == "both" and stage != "random" and not self.spare_timed
        return _TIMED if mixed else 0.0

    def more(self, part: Part, count: int = _FIRST_CHUNK) -> list[ConformanceCase]:
        """Return cases to look through for laws that no case has exercised yet.

        None is tame: the laws that random cases miss are mostly laws that tame cases cannot
        exercise.
        """
        size = min(self._most, count)
        seed = self._seed_of(next(self._added))
        cases: list[ConformanceCase] = []
        if part != "second":
            cases += generate(size, seed, "any")
        if part != "first":
            cases += self._drawn(0, size, seed)
        return cases

    def _drawn(self, plain: int, timed: int, seed: int) -> list[ConformanceCase]:
        """Return cases that are drawn by chance."""
        cases: list[ConformanceCase] = []
        for isolation, count in self._by_mode(plain):
            cases += generate(count, seed, _TONES[isolation])
        for isolation, count in self._by_mode(timed):
            cases += generate(count, seed, _TONES[isolation], timed=True)
        return cases

    def _led(self, plain: int, timed: int, seed: int) -> list[ConformanceCase]:
        """Return cases that are led to rare pairs of facts; fewer if little has been met yet."""
        cases: list[ConformanceCase] = []
        if self._steering is not None:
            for is_timed, whole in ((False, plain), (True, timed)):
                for isolation, count in self._by_mode(whole):
                    cases += self._steering.led(count, seed, (is_timed, isolation))
        return cases

    def _by_mode(self, count: int) -> list[tuple[Isolation, int]]:
        """Return how many cases are tame ones, in `trusting` mode, and how many are not."""
        tame = int(count * _TAME[self._modes])
        shares: list[tuple[Isolation, int]] = [("isolated", count - tame), ("trusting", tame)]
        return [one for one in shares if one[1]]

    def _seed_of(self, number: int) -> int:
        return self._seed * 1_000_003 + number


def _chosen(cases: Iterable[ConformanceCase], left: int | None) -> Chunk:
    """Return a chunk of cases that every search has.

    Cases of a tour are like their neighbours. In this order they are not, so that one of each sort
    comes early, also with a small budget.
    """
    mixed = list(cases)
    Random(0).shuffle(mixed)  # noqa: S311 - no secret
    return dict.fromkeys(mixed[:left], "fixed")
