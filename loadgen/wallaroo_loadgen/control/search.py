"""The highest rate that is still good enough: steps up until one fails, then bisection."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wallaroo_loadgen.common.config import RunConfig
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.verdict import sender_too_late

GROWTH = 0.02
"""Part of the rate of outputs by which the backlog may grow before a rate is not sustained."""

_SMALLEST_PART = 1 / 1024  # of the first rate; below it the search gives up
_LARGEST = 1e8
_MOST_UNMEASURED = 3


@dataclass
class Search:
    """A search's outcome.

    Attributes:
        label: what the reports call it.
        points: one for each run: rate, whether it was good, and if not, why.
        results: the runs in the same order.
        best: the highest good rate, or None.
    """

    label: str
    points: list[dict[str, Any]] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    best: float | None = None

    def add(self, result: Result) -> bool:
        """Take a run, and return whether its rate is sustained."""
        why = why_not_sustained(result)
        rate = float(result.config["rate"])
        self.results.append(result)
        self.points.append({"rate": rate, "good": why is None, "why": why})
        if why is None:
            self.best = max(rate, self.best or 0.0)
        return why is None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it, without the runs."""
        return {"label": self.label, "points": self.points, "best": self.best}


def why_not_sustained(result: Result) -> str | None:
    """Return why a run's rate is not sustained, or None when it is."""
    if result.invalid:
        return result.invalid[0]
    for slo in result.slos:
        if not slo["met"]:
            return f"{slo['text']} missed"
    growth = result.backlog_growth()
    if growth > GROWTH:
        return f"the backlog grew by {growth:.0%} of the rate"
    return None


def search(
    config: RunConfig,
    run: Callable[[RunConfig], Result],
    *,
    resolution: float = 0.05,
    progress: Callable[[Search], None] = lambda _: None,
) -> Search:
    """Search upwards from `config.rate`, or downwards if that is too much already.

    A rate fails when two runs in a row do: one disturbance on a busy machine is not the
    application's limit. An interrupted run ends the search.

    Args:
        config: of every run, but for the rate.
        run: makes one.
        resolution: the search ends when the best rate and the lowest that fails are this close.
        progress: called after each run.
    """
    found = Search(label=config.workload)
    unmeasured = 0  # rates in a row at which this machine was too late itself

    def good(rate: float) -> bool:
        for _ in range(2):
            result = run(dataclasses.replace(config, rate=rate))
            sustained = found.add(result)
            progress(found)
            if sustained or result.partial:
                return sustained
        return False

    def over() -> bool:
        return bool(found.results) and (
            found.results[-1].partial or found.results[-1].started is None
        )

    low, high = 0.0, math.inf
    rate = config.rate
    while not over() and config.rate * _SMALLEST_PART <= rate <= _LARGEST:
        if good(rate):
            low = rate
        else:
            high = rate
        unmeasured = unmeasured + 1 if sender_too_late(found.results[-1]) else 0
        if low == 0 and unmeasured == _MOST_UNMEASURED:
            break  # at a lower rate this machine would be too late as well
        if low == 0:
            rate /= 2
        elif high == math.inf:
            rate *= 2
        elif high / low <= 1 + resolution:
            break
        else:
            rate = (low + high) / 2
    return found
