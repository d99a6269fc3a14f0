"""The highest rate that is still good enough: steps up until one fails, then bisection."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wallaroo_loadgen.common.config import RunConfig
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.verdict import SLO, sender_too_late, show

GROWTH = 0.02
"""Part of the rate of outputs by which the backlog may grow before a rate is not sustained."""

_SMALLEST_PART = 1 / 1024  # of the first rate; below it the search gives up
_LARGEST = 1e8
_MOST_UNMEASURED = 3


@dataclass
class Search:
    """A search's outcome.

    Attributes:
        label: its name in reports.
        results: the runs in their order.
    """

    label: str
    results: list[Result] = field(default_factory=list)

    @property
    def points(self) -> list[dict[str, Any]]:
        """One for each run: its rate, whether it is sustained, and if not, why."""
        whys = [why_not_sustained(result) for result in self.results]
        return [
            {"rate": float(result.config["rate"]), "good": why is None, "why": why}
            for result, why in zip(self.results, whys, strict=True)
        ]

    @property
    def best(self) -> float | None:
        """The highest sustained rate."""
        return max([point["rate"] for point in self.points if point["good"]], default=None)

    def by_rate(self) -> list[tuple[dict[str, Any], Result]]:
        """Return each point with its run, the lowest rate first."""
        pairs = zip(self.points, self.results, strict=True)
        return sorted(pairs, key=lambda pair: float(pair[0]["rate"]))

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, without the runs."""
        return {"label": self.label, "points": self.points, "best": self.best}

    def sentence(self) -> str:
        """Return where the knee is, in a sentence: the best rate, and what happened above it."""
        promise = self._promise()
        if self.best is None:
            text = f"the target did not {promise} at any rate that was tried"
        else:
            text = f"the target {promise.replace(' ', 's ', 1)} up to {self.best:,.0f} messages/s"
        for point, result in self.by_rate():
            if not point["good"] and point["rate"] > (self.best or 0.0):
                why = point["why"]
                if sender_too_late(result):
                    why = "this machine cannot send on time, so the target's limit may be higher"
                return f"{text}; at {point['rate']:,.0f} {why}"
        return f"{text}; its limit was not reached"

    def _promise(self) -> str:
        """Return what the target had to do, beginning with a verb."""
        slos = self.results[0].slos if self.results else []
        bounds = [SLO.parse(slo["text"]).words for slo in slos]
        return "keep " + " and ".join(bounds) if bounds else "keep pace"


def why_not_sustained(result: Result) -> str | None:
    """Return why a run's rate is not sustained, or None when it is."""
    if result.invalid:
        return result.invalid[0]
    for slo in result.slos:
        if not slo["met"]:
            return f"{SLO.parse(slo['text']).metric.name} is {show(slo['value'])}"
    growth = result.backlog_growth()
    if growth > GROWTH:
        return f"the backlog grew by {growth:.0%} of the rate"
    return None


def run_search(
    config: RunConfig,
    run: Callable[[RunConfig], Result],
    resolution: float = 0.05,
    progress: Callable[[Search], None] = lambda _: None,
) -> Search:
    """Search upwards from `config.rate`, or downwards if that is too much already.

    A rate fails when two runs in a row do: one disturbance on a busy machine is not the
    application's limit. An interrupted run ends the search, and so does a target that has ended.

    Args:
        config: of every run, but for the rate.
        run: makes one.
        resolution: the search ends when the best rate and the lowest that fails are this close.
        progress: called after each run.
    """
    search = Search(label=config.workload)
    unmeasured = 0  # rates in a row at which this machine was too late itself

    def over() -> bool:
        last = search.results[-1] if search.results else None
        return last is not None and bool(last.partial or last.started is None or last.ended)

    def good(rate: float) -> bool:
        for _ in range(2):
            result = run(dataclasses.replace(config, rate=rate))
            search.results.append(result)
            progress(search)
            sustained = bool(search.points[-1]["good"])
            if sustained or over():
                return sustained
        return False

    low, high = 0.0, math.inf
    rate = config.rate
    while not over() and config.rate * _SMALLEST_PART <= rate <= _LARGEST:
        if good(rate):
            low = rate
        else:
            high = rate
        unmeasured = unmeasured + 1 if sender_too_late(search.results[-1]) else 0
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
    return search
