"""What a check is asked to do, and how much."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias

from wallaroo.engine import Engine
from wallaroo_conformance.cases.counterexamples import STORED
from wallaroo_conformance.judge.law import LawResult
from wallaroo_conformance.judge.results import Failure

MOST_CASES_A_JOB = 4_096
"""The default. On Spark the cost of a job depends little on the number of its cases."""

Outcome: TypeAlias = tuple[list[LawResult], list[Failure]]

LiveCheck: TypeAlias = Callable[[Engine, str, int], Outcome]
"""Checks an engine's live server: (engine, pattern of rules, seed) -> laws and failures."""

_FEWEST = 8  # cases in a chunk, even if time is short


@dataclass(frozen=True)
class Budget:
    """How much is to be done; ends with its cases or its seconds, whichever comes first.

    Args:
        cases: cases to generate; `None`: until the time is over.
        seconds: time for all that is done with cases: those that are stored, those that are
            generated, and reducing; `None`: as long as it takes.
        name: for reports; made of cases or seconds unless given.

    Raises:
        ValueError: it would never end.
    """

    cases: int | None = 1_000
    seconds: float | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if self.cases is None and self.seconds is None:
            raise ValueError("a budget without cases and seconds never ends: give one of them")
        if not self.name:
            parts = [] if self.cases is None else [f"{self.cases} cases"]
            parts += [] if self.seconds is None else [f"{self.seconds:g} seconds"]
            name = " or ".join(parts)
            object.__setattr__(self, "name", name)  # frozen: this is the only way to set it

    def left(self, generated: int, spent: float, rest: float = math.inf) -> int | None:
        """Return how many cases are left; of seconds, as many as go by at the rate so far.

        Args:
            generated: cases so far.
            spent: seconds that they took.
            rest: seconds that are left; infinite if only the cases count.
        """
        left = None if self.cases is None else self.cases - generated
        if math.isinf(rest) or not generated or not spent:
            return left
        in_time = max(int(generated / spent * rest), _FEWEST) if rest > 0 else 0
        return in_time if left is None else min(left, in_time)


PROFILES: Mapping[str, Budget] = {
    "dev": Budget(8_500, name="dev"),
    "ci": Budget(10_000, name="ci"),
    "nightly": Budget(None, 3_600.0, name="nightly"),
}


def chosen_budget(profile: str, cases: int | None = None, seconds: float | None = None) -> Budget:
    """Return a profile's budget, or one with the given number of cases or seconds.

    Where both are given, the search ends with whichever comes first.
    """
    if cases is None and seconds is None:
        return PROFILES[profile]
    return Budget(cases, seconds)


@dataclass(frozen=True)
class Check:
    """What is checked, for how long, and where results go; the defaults suit most engines.

    Args:
        budget: how much is to be done; `PROFILES` holds the usual ones.
        seed: of the generation; equal seeds give equal cases.
        rules: shell patterns of rule ids, separated by commas; others are not reported.
        fail_fast: stop at the first failure of these rules, reduce that one, and check nothing
            else.
        job: most cases in one engine job.
        options: the engine's own thresholds, such as batch or segment size, for every case.
        counterexamples: directory of stored cases, which are replayed first; `None`: none.
        live: checks the live server; `None` leaves those rules out.
        store: directory that gets a file for each failure; what is there already is run first.
            `None`: nothing is stored.
        stop: set from outside, it ends the check before the next cases. Then, and at Ctrl-C, the
            report has what was found so far. `None`: Ctrl-C is raised.
    """

    budget: Budget = PROFILES["dev"]
    seed: int = 0
    rules: str = "*"
    fail_fast: bool = False
    job: int = MOST_CASES_A_JOB
    options: Mapping[str, Any] = field(default_factory=dict)
    counterexamples: Path | None = STORED
    live: LiveCheck | None = None
    store: Path | None = None
    stop: Event | None = None
