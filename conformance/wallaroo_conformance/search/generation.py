"""Generation: chooses which cases are run next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count as counting
from random import Random

from wallaroo.engine import Isolation
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.cases.operators import Tone
from wallaroo_conformance.cases.tour import pairs, tour

_FIRST_CHUNK = 256
_FIRST_CHUNK_OF_FEW = 32
_FIXED = {1: tour, 2: pairs}
"""By the numbers of their chunks, cases that are the same in every search."""
_SIMPLE_AT_FIRST, _SIMPLE = 2 / 3, 1 / 4
"""The share of cases without time and windows in the first chunk, and in later ones: those that are
in every search have none."""

_BOTH: frozenset[Isolation] = frozenset({"isolated", "trusting"})
_ISOLATED: frozenset[Isolation] = frozenset({"isolated"})

_TONES_OF: Mapping[frozenset[Isolation], tuple[float, tuple[Tone, ...]]] = {
    _BOTH: (1 / 4, ("any", "tame")),
    _ISOLATED: (0.0, ("any",)),
    frozenset({"trusting"}): (7 / 8, ("tame",)),
}
"""By the modes that an engine has: the share of tame cases, whose applications have no findings, so
that `trusting` mode is promised to them; and the tones of the tour. An engine that has no other
mode also gets some of the rest: a few of them have no findings either."""


class Generation:
    """The cases of one search, chunk by chunk; equal arguments give equal cases.

    Args:
        seed: of the generation.
        modes: isolation modes of the engine.
        most: most cases in a chunk that is drawn.
        few: begin with small chunks, every other one drawn, for a search that stops at its first
            failure.
        kafka: the engine reads and writes Kafka.
    """

    def __init__(
        self,
        seed: int,
        modes: frozenset[Isolation],
        most: int,
        *,
        few: bool = False,
        kafka: bool = True,
    ) -> None:
        self._chunks = 0
        self._seed = seed
        self._tame, self._tones = _TONES_OF[modes & _BOTH or _ISOLATED]
        self._most = most
        self._first = _FIRST_CHUNK_OF_FEW if few else _FIRST_CHUNK
        self._few = few
        self._kafka = kafka
        self._fixed: list[ConformanceCase] = []  # those of a stage that are left
        self._between = False  # chunks of a stage
        self._numbers = counting()  # of chunks that are drawn

    def next_chunk(self, left: int | None, *, simple: bool = False) -> list[ConformanceCase]:
        """Return the next cases, at most `left`; all that are drawn may be `simple`.

        Most faults show in few random cases, so the first chunk is small. Then come the tour of all
        operators and all pairs of operators. From then on chunks are as large as a job may be,
        since every job costs something; if jobs have few cases at first, each has twice as many as
        the one before.
        """
        number = self._chunks
        if number in _FIXED and not self._between:
            self._fixed = self._fixed or _mixed(self._fixed_cases(number))
            size = self._first << number if self._few else len(self._fixed)
            chunk, self._fixed = self._fixed[:size], self._fixed[size:]
            self._chunks += not self._fixed
            self._between = self._few
            return chunk[:left]
        self._chunks += number not in _FIXED
        self._between = False
        size = min(self._first << number, self._most)
        count = size if left is None else min(size, left)
        share = 1.0 if simple else _SIMPLE if number else _SIMPLE_AT_FIRST
        seed, tame = self._seed_of(next(self._numbers)), int(count * self._tame)
        return [
            *generate(count - tame, seed, "any", simple=share, kafka=self._kafka),
            *generate(tame, seed, "tame", simple=share, kafka=self._kafka),
        ]

    def _fixed_cases(self, number: int) -> Iterable[ConformanceCase]:
        if _FIXED[number] is pairs:
            return pairs(self._tones[0])  # those of "any" have the tame ones too
        return [case for tone in self._tones for case in tour(tone)]

    def _seed_of(self, number: int) -> int:
        return self._seed * 1_000_003 + number


def _mixed(cases: Iterable[ConformanceCase]) -> list[ConformanceCase]:
    """Return cases that every search has, in another order.

    Cases of the tour are like their neighbours. In this order they are not, so that one of each
    sort comes early, also with a small budget.
    """
    mixed = list(cases)
    Random(0).shuffle(mixed)  # noqa: S311 - no secret
    return mixed
