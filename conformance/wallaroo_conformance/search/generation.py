"""Generation: chooses which cases are run next."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count as counting

from wallaroo.engine import Isolation
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.cases.operators import Tone
from wallaroo_conformance.cases.tour import tour

_OF_MANY, _OF_FEW = (256, 16, 1), (32, 2, 3)
"""How many cases the first chunk has, how many times as many each has as the one before, and the
number of the tour's chunk: some 250 cases have been drawn before."""
_SIMPLE = 2 / 5
"""The share of cases without time and windows."""

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
        few: begin with small chunks, for a search that stops at its first failure.
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
        self._seed = seed
        self._tame, self._tones = _TONES_OF[modes & _BOTH or _ISOLATED]
        self._most = most
        self._first, self._growth, self._tour = _OF_FEW if few else _OF_MANY
        self._kafka = kafka
        self._numbers = counting()  # of chunks

    def next_chunk(self, left: int | None, *, simple: bool = False) -> list[ConformanceCase]:
        """Return the next cases, at most `left`; all that are drawn may be `simple`.

        Most faults show in few random cases, so the first chunks are small. Every job costs
        something, so they grow until they are as large as a job may be, and do so at once in a
        search that does not stop at its first failure.
        """
        number = next(self._numbers)
        if number == self._tour:
            return [case for tone in self._tones for case in tour(tone)][:left]
        size = min(self._first * self._growth**number, self._most)
        count = size if left is None else min(size, left)
        share = 1.0 if simple else _SIMPLE
        seed, tame = self._seed * 1_000_003 + number, int(count * self._tame)
        return [
            *generate(count - tame, seed, "any", simple=share, kafka=self._kafka),
            *generate(tame, seed, "tame", simple=share, kafka=self._kafka),
        ]
