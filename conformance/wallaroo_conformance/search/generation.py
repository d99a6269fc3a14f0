"""Generation: which cases are run next."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Literal, TypeAlias

from wallaroo.engine import Isolation
from wallaroo_conformance.cases.either import AnyCase
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.cases.pairs import pairs
from wallaroo_conformance.cases.strategies import Tone
from wallaroo_conformance.cases.timed.strategies import generate_timed
from wallaroo_conformance.cases.timed.tour import timed_tour
from wallaroo_conformance.cases.tour import tour

Part: TypeAlias = Literal["first", "second", "both"]
"""Cases of the rules' first part, timed cases, or both."""

_FIRST_CHUNK = 256
_FIRST_CHUNK_OF_FEW = 32
_STAGES = {
    "first": ("random", "tour", "pairs"),
    "second": ("timed", "timed tour"),
    "both": ("random", "timed", "tour", "pairs", "timed tour"),
}
"""What the first chunks are."""
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
        part: which cases.
    """

    def __init__(
        self,
        seed: int,
        modes: frozenset[Isolation],
        most: int,
        *,
        few: bool = False,
        part: Part = "both",
    ) -> None:
        self.chunks = 0
        """How many chunks `next_chunk` has given."""
        self.spare_timed = False
        """Draw no more timed cases where others can stand in their place."""
        self._part: Part = part
        self._seed = seed
        self._modes = modes & _BOTH or _ISOLATED
        self._most = most
        self._first = _FIRST_CHUNK_OF_FEW if few else _FIRST_CHUNK
        self._added = count(_FIRST_ADDED)

    def next_chunk(self, left: int | None) -> list[AnyCase]:
        """Return the next cases, at most `left`.

        Most faults show in few random cases, so the first chunk is small; so is that of the first
        timed cases. Then come the tours of all operators and all pairs of them. From then on each
        chunk has twice the cases of the one before, since every job has a price of its own.
        """
        number = self.chunks
        self.chunks += 1
        stage = (*_STAGES[self._part], *("later",) * (number + 1))[number]
        found: list[AnyCase] = []
        if stage == "tour":
            found += [case for tone in _TOURS[self._modes] for case in tour(tone)]
            return found[:left]
        if stage == "pairs":  # those of "any" have the tame ones too
            found += pairs(_TOURS[self._modes][0])
            return found[:left]
        if stage == "timed tour":
            found += [
                case for tone in _TOURS[self._modes] for case in timed_tour(tame=tone == "tame")
            ]
            return found[:left]
        size = self._first // 2 if stage == "timed" else min(self._most, self._first << number)
        size = size if left is None else min(size, left)
        seed = self._seed_of(number)
        if stage == "timed" or self._part == "second":
            return self._timed(size, seed)
        mixed = stage == "later" and self._part == "both" and not self.spare_timed
        timed = int(size * _TIMED) if mixed else 0
        return [*self._random(size - timed, seed), *self._timed(timed, seed)]

    def more(self, part: Part) -> list[AnyCase]:
        """Return cases to look through for laws that no case has exercised yet.

        None is tame: what random cases miss are mostly laws that tame cases cannot exercise.
        """
        size = min(self._most, _FIRST_CHUNK)
        seed = self._seed_of(next(self._added))
        cases: list[AnyCase] = []
        if part != "second":
            cases += generate(size, seed, "any")
        if part != "first":
            cases += self._timed(size, seed)
        return cases

    def _random(self, size: int, seed: int) -> list[AnyCase]:
        tame = int(size * _TAME[self._modes])
        cases: list[AnyCase] = []
        if tame < size:
            cases += generate(size - tame, seed, "any")
        if tame:
            cases += generate(tame, seed, "tame")
        return cases

    def _timed(self, size: int, seed: int) -> list[AnyCase]:
        tame = int(size * _TAME[self._modes])
        cases: list[AnyCase] = []
        if tame < size:
            cases += generate_timed(size - tame, seed, tame=False)
        if tame:
            cases += generate_timed(tame, seed, tame=True)
        return cases

    def _seed_of(self, number: int) -> int:
        return self._seed * 1_000_003 + number
