"""Draws many cases at once from Hypothesis, without asserting anything while it draws."""

from __future__ import annotations

from functools import lru_cache

from hypothesis import HealthCheck, Phase, given, seed, settings

from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.strategies import Tone, cases


def generate(count: int, random_seed: int, tone: Tone = "any") -> list[ConformanceCase]:
    """Return `count` different cases, fewer only if there are no more; the same for equal seeds."""
    return list(_generated(count, random_seed, tone))


@lru_cache(maxsize=24)  # checks with one seed, as those of mutants, begin with the same cases
def _generated(count: int, random_seed: int, tone: Tone) -> tuple[ConformanceCase, ...]:
    found: dict[ConformanceCase, None] = {}

    @seed(random_seed)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(tone))
    def collect(case: ConformanceCase) -> None:
        found[case] = None

    collect()
    return tuple(found)
