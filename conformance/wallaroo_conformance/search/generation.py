"""Generation: which cases are run next."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from wallaroo.engine import Isolation
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.cases.pairs import pairs
from wallaroo_conformance.cases.strategies import Tone
from wallaroo_conformance.cases.tour import tour

_FIRST_CHUNK = 256
_FIRST_CHUNK_OF_FEW = 32
_TOUR = 1  # the chunk that is the tour
_PAIRS = 2  # the chunk of all pairs of operators
_FIRST_ADDED = 10_000  # number of the first chunk of `more`; seeds of the others stay below

_BOTH: frozenset[Isolation] = frozenset({"isolated", "trusting"})
_ISOLATED: frozenset[Isolation] = frozenset({"isolated"})
_TRUSTING: frozenset[Isolation] = frozenset({"trusting"})

_TAME = {_BOTH: 1 / 4, _ISOLATED: 0.0, _TRUSTING: 7 / 8}
"""By the modes that an engine has: the share of tame cases, whose applications have no findings, so
that `trusting` mode is promised to them. An engine that has no other mode also gets some of the
rest: a few of them have no findings either."""

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
        most: most cases in a chunk.
        few: begin with very small chunks, for a search that stops at its first failure.
    """

    def __init__(
        self, seed: int, modes: frozenset[Isolation], most: int, *, few: bool = False
    ) -> None:
        self.chunks = 0
        """How many chunks `next_chunk` has given."""
        self._seed = seed
        self._modes = modes & _BOTH or _ISOLATED
        self._most = most
        self._first = _FIRST_CHUNK_OF_FEW if few else _FIRST_CHUNK
        self._added = count(_FIRST_ADDED)

    def next_chunk(self, left: int | None) -> list[ConformanceCase]:
        """Return the next cases, at most `left`.

        Most faults show in few random cases, so the first chunk is small. Then come the tour of
        all operators and all pairs of them. From then on each chunk has twice the cases of the one
        before, since every job has a price of its own.
        """
        number = self.chunks
        self.chunks += 1
        if number == _TOUR:
            return [case for tone in _TOURS[self._modes] for case in tour(tone)][:left]
        if number == _PAIRS:
            return pairs(_TOURS[self._modes][0])[:left]  # those of "any" have the tame ones too
        size = min(self._most, self._first << number)
        return self._random(size if left is None else min(size, left), self._seed_of(number))

    def more(self) -> list[ConformanceCase]:
        """Return cases to look through for laws that no case has exercised yet.

        None is tame: what random cases miss are mostly laws that tame cases cannot exercise.
        """
        size = min(self._most, _FIRST_CHUNK)
        return generate(size, self._seed_of(next(self._added)), "any")

    def _random(self, size: int, seed: int) -> list[ConformanceCase]:
        tame = int(size * _TAME[self._modes])
        cases = generate(size - tame, seed, "any") if tame < size else []
        return cases + (generate(tame, seed, "tame") if tame else [])

    def _seed_of(self, number: int) -> int:
        return self._seed * 1_000_003 + number
