"""Draws many cases at once: each is made of random bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from random import Random
from typing import TypeVar

from wallaroo_conformance.cases import strategies
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.operators import Tone
from wallaroo_conformance.cases.timed import strategies as timed_strategies
from wallaroo_conformance.cases.timed.case import TimedCase

T = TypeVar("T")


def generate(count: int, random_seed: int, tone: Tone = "any") -> list[ConformanceCase]:
    """Return `count` different cases, the same for equal seeds."""
    return list(_generated(count, random_seed, tone))


def generate_timed(count: int, random_seed: int, tone: Tone = "any") -> list[TimedCase]:
    """Return `count` different timed cases, the same for equal seeds."""
    return list(_generated_timed(count, random_seed, tone))


# Checks with one seed, as those of mutants, begin with the same cases.
@lru_cache(maxsize=24)
def _generated(count: int, random_seed: int, tone: Tone) -> list[ConformanceCase]:
    length = strategies.LENGTH
    return _made(count, random_seed, length, lambda drawn: strategies.case_from_bytes(drawn, tone))


@lru_cache(maxsize=24)
def _generated_timed(count: int, random_seed: int, tone: Tone) -> list[TimedCase]:
    length, made = timed_strategies.LENGTH, timed_strategies.timed_case_from_bytes
    return _made(count, random_seed, length, lambda drawn: made(drawn, tone))


def _made(count: int, random_seed: int, length: int, make: Callable[[bytes], T]) -> list[T]:
    """Return `count` different values that `make` gives for random bytes."""
    chance = Random(random_seed)  # noqa: S311 - no secret
    found: dict[T, None] = {}
    while len(found) < count:
        found[make(chance.randbytes(length))] = None
    return list(found)
