"""Coverage: which facts and which pairs of facts cases have met, and how likely an unseen one is.

Many faults show only where two special things meet, for instance a key that looks like another, in
a second partition. So coverage does not count single facts, but pairs of facts in one case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

from wallaroo.engine import Isolation
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.judge.law import Facts
from wallaroo_conformance.judge.laws import FACTS

Pair: TypeAlias = tuple[str, str]
"""Two facts, in the order of the alphabet."""

_AT_THE_END = 1 / 4


@dataclass(frozen=True)
class CoverageResult:
    """What a report says about coverage.

    Args:
        facts: facts that a case has met.
        facts_never: facts that none has met.
        pairs: pairs of facts that a case has met.
        never: for each fact, the facts that have been met, but never in one case with it. Many such
            pairs are impossible: no run ends twice.
        cases: cases that were looked at.
        last_cases: those of them at the end.
        last_pairs: pairs that were first met by these.
        drawn: cases drawn by chance in the second half.
        alone: of these, cases that met a pair which no other case has met.
    """

    facts: int
    facts_never: tuple[str, ...]
    pairs: int
    never: Mapping[str, tuple[str, ...]]
    cases: int
    last_cases: int
    last_pairs: int
    drawn: int
    alone: int

    @property
    def pairs_never(self) -> int:
        """How many pairs of facts that have been met were never met in one case."""
        return sum(map(len, self.never.values()))

    @property
    def unseen(self) -> float | None:
        """The chance that one more case drawn by chance meets a pair that none has met.

        It is estimated as Good and Turing did: if f1 of the species in a sample of n were met once,
        the next one is new with a chance of about f1 / n (I. J. Good, The population frequencies of
        species and the estimation of population parameters, Biometrika 40, 1953, pages 237 to 264,
        section 2). A case shows many pairs at once, so what is counted here are cases: those with
        a pair of their own, of all that were drawn (A. Chao and R. K. Colwell, Thirty years of
        progeny from Chao's inequality, SORT 41, 2017, pages 3 to 54, on such samples).

        `None`: no case was drawn by chance.
        """
        return self.alone / self.drawn if self.drawn else None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        never = {fact: list(others) for fact, others in self.never.items()}
        return {
            **vars(self),
            "facts_never": list(self.facts_never),
            "never": never,
            "pairs_never": self.pairs_never,
            "unseen": self.unseen,
        }


class Coverage:
    """What the cases of a search have met.

    Both isolation modes are counted apart: engines have other code for each, so that two facts have
    met in one of them says nothing about the other.
    """

    def __init__(self) -> None:
        self._met: dict[Isolation, set[Pair]] = {}
        self._new: list[int] = []  # by case: the number of pairs that it was the first to meet
        self._drawn: list[int] = []  # the numbers of the cases drawn by chance
        self._own: dict[tuple[Isolation, Pair], int] = {}  # pairs of one such case alone, and which

    def add(self, case: ConformanceCase, facts: Facts, *, drawn: bool) -> None:
        """Note a case that the engine has answered, and whether it was drawn by chance."""
        mode = case.isolation
        pairs, met = set(combinations(sorted(facts), 2)), self._met.setdefault(mode, set())
        number, new = len(self._new), pairs - met
        self._new.append(len(new))
        met |= new
        for pair in pairs:
            self._own.pop((mode, pair), None)
        if drawn:
            self._drawn.append(number)
            self._own.update(((mode, pair), number) for pair in new)

    def result(self) -> CoverageResult:
        """Return what a report says about it."""
        facts = [{fact for pair in pairs for fact in pair} for pairs in self._met.values()]
        met, pairs = set[str]().union(*facts), set[Pair]().union(*self._met.values())
        never: dict[str, list[str]] = {}
        for one, other in combinations(sorted(met), 2):
            if (one, other) not in pairs and any({one, other} <= in_mode for in_mode in facts):
                never.setdefault(one, []).append(other)
        cases = len(self._new)
        last, half = round(cases * _AT_THE_END), cases // 2
        return CoverageResult(
            facts=len(met),
            facts_never=tuple(fact for fact in FACTS if fact not in met),
            pairs=len(pairs),
            never={fact: tuple(others) for fact, others in never.items()},
            cases=cases,
            last_cases=last,
            last_pairs=sum(self._new[cases - last :]),
            drawn=sum(number >= half for number in self._drawn),
            alone=len({number for number in self._own.values() if number >= half}),
        )
