"""The application's own figures of a run, beside the measured ones: `wallaroo load --metrics`.

They show where the measured time was spent: in a queue, in a step, at a sink. The application
counts from the arrival of a read to the acknowledgement of its outputs; the load test from the
intended time of sending to the reading of the output. The difference is the sender's lateness, the
network and the receiver.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from wallaroo.metrics.sketches import Histogram
from wallaroo.monitor.client import NoFiguresError, figures_at
from wallaroo_loadgen.common.config import Address
from wallaroo_loadgen.common.measure import PERCENTILES

_LOOK = 1.0  # seconds between looks
_PATIENCE = 3.0  # seconds for the application to count what it has done when a run ends
_SOON = 0.05  # seconds between looks meanwhile
_NUMBER = re.compile(r"(?<![\w/.-])\d[\d,.]*")  # not one that is in a name, as in orders/0


class OwnFigures:
    """Asks an application for its figures while a run goes on.

    Args:
        address: the address that `--metrics` of the application names.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._before = self._ask() or {}  # none if the run starts the application
        self._said: list[str] = []
        self._backlog = self._waiting = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> dict[str, Any]:
        """Stop asking; return what the application did meanwhile.

        Returns:
            ``problem``, if it does not answer; else ``latency`` (µs, as `measure.summary`),
            ``verdict``: what it said most often, ``backlog`` and ``waiting``: the most there were,
            ``steps``: name, calls, mean (µs) and seconds of each node, ``dead_letters``.
        """
        self._over.set()
        self._thread.join()
        try:
            after = self._counted()
        except NoFiguresError as error:
            return {"problem": str(error)}
        return {
            "latency": _latencies(after, self._before),
            "verdict": said_most(self._said),
            "backlog": self._backlog,
            "waiting": self._waiting,
            "estimate": after["sampling"]["estimate"],
            "steps": _steps(after, self._before),
            "dead_letters": after["dead_letters"] - self._before.get("dead_letters", 0),
        }

    def _counted(self) -> dict[str, Any]:
        """Return the figures, once they count everything that was received.

        The load test has read the last output before the application knows that it is acknowledged.

        Raises:
            NoFiguresError: it does not answer.
        """
        end = time.monotonic() + _PATIENCE
        while _counts_lag(figures := figures_at(*self._address, histograms=True)):
            if time.monotonic() >= end:
                break  # others send messages too
            time.sleep(_SOON)
        return figures

    def _ask(self) -> dict[str, Any] | None:
        try:
            return figures_at(*self._address, histograms=True)
        except NoFiguresError:
            return None

    def _watch(self) -> None:
        while not self._over.wait(_LOOK):
            figures = self._ask()
            if figures is not None:
                self._said.append(figures["verdict"]["text"])
                self._backlog = max(self._backlog, figures["backlog"])
                waiting = sum([sink["waiting"] for sink in figures["sinks"]])
                self._waiting = max(self._waiting, waiting)


def said_most(sentences: Sequence[str]) -> str:
    """Return the sentence that came most often, whatever its numbers, as it was the last time."""
    kinds = [_NUMBER.sub("#", sentence) for sentence in sentences]
    newest = dict(zip(kinds, sentences, strict=True))
    return newest[Counter(kinds).most_common(1)[0][0]] if kinds else ""


def _counts_lag(figures: dict[str, Any]) -> bool:
    """Return whether something is on its way, or is processed and not yet counted at the steps."""
    sampling = figures["sampling"]
    counted = sampling["looked_at"] + sampling["left_out"]
    waits = any(sink["waiting_for"] is not None for sink in figures["sinks"])
    return bool(figures["backlog"]) or waits or counted < figures["processed"]


def _latencies(after: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return a summary in µs, named as `measure.summary`, of what came between two looks.

    The greatest value may be from before.
    """
    values = Histogram()
    for figures, sign in ((after, 1), (before, -1)):
        for source in figures.get("sources", ()):
            whole = source["latency"]["whole"]
            for bucket, count in whole["buckets"]:
                values.buckets[bucket] = values.buckets.get(bucket, 0) + sign * count
                values.total += sign * count * (whole["mean"] or 0.0) * 1e9
            values.greatest = max(values.greatest, round((whole["max"] or 0.0) * 1e9))
    values.buckets = {bucket: count for bucket, count in values.buckets.items() if count > 0}
    values.count = sum(values.buckets.values())
    names = ["min", *[f"p{percentile:g}" for percentile in PERCENTILES], "max"]
    shares = [1e-12, *[percentile / 100 for percentile in PERCENTILES], 1.0]
    latencies = [None if value is None else value / 1e3 for value in values.quantiles(shares)]
    mean = values.total / values.count / 1e3 if values.count else None
    return {"count": round(values.count), "mean": mean, **dict(zip(names, latencies, strict=True))}


def _steps(after: dict[str, Any], before: dict[str, Any]) -> list[dict[str, Any]]:
    steps = []
    for kind, role in (("sources", "decoder of "), ("steps", ""), ("sinks", "encoder of ")):
        earlier = {figures["node"]: figures for figures in before.get(kind, ())}
        for step in after[kind]:
            was = earlier.get(step["node"], {"calls": 0, "seconds": 0.0})
            calls, seconds = step["calls"] - was["calls"], step["seconds"] - was["seconds"]
            mean = 1e6 * seconds / calls if calls else None
            steps.append(
                {"name": role + step["name"], "calls": calls, "mean": mean, "seconds": seconds}
            )
    return steps
