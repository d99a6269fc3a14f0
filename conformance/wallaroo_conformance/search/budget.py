"""How much a check does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

_FEWEST = 8  # cases in a chunk, even if time is short


@dataclass(frozen=True)
class Budget:
    """How much is to be done; ends with its cases or its seconds, whichever comes first.

    Args:
        cases: cases to generate; `None`: until the time is over.
        seconds: time for all that is done with cases: those that are stored, those that are
            generated, and reducing; `None`: as long as it takes.
        name: for reports; made of cases or seconds unless given.
        variant_every: one case in so many gets a second run for a metamorphic relation; 0: none.
        top_up: at most so many cases are looked through for laws that no case has exercised yet.

    Raises:
        ValueError: it would never end.
    """

    cases: int | None = 1_000
    seconds: float | None = None
    name: str = ""
    variant_every: int = 4
    top_up: int = 20_000

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


# The tour and the pairs of operators, which come early, are up to 4,000 cases.
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
