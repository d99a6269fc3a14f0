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
        self._before = self._ask()  # none if the run starts the application
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
        before = self._before or {}
        return {
            "latency": _summary(_since(_latencies(after), _latencies(before))),
            "verdict": said_most(self._said),
            "backlog": self._backlog,
            "waiting": self._waiting,
            "estimate": after["sampling"]["estimate"],
            "steps": _steps(after, before),
            "dead_letters": after["dead_letters"] - before.get("dead_letters", 0),
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
    if not kinds:
        return ""
    kind, _ = Counter(kinds).most_common(1)[0]
    return next(sentence for sentence in reversed(sentences) if _NUMBER.sub("#", sentence) == kind)


def _counts_lag(figures: dict[str, Any]) -> bool:
    """Return whether something is on its way, or is processed and not yet counted at the steps."""
    sampling = figures["sampling"]
    counted = sampling["looked_at"] + sampling["left_out"]
    waits = any(sink["waiting_for"] is not None for sink in figures["sinks"])
    return bool(figures["backlog"]) or waits or counted < figures["processed"]


def _latencies(figures: dict[str, Any]) -> Histogram:
    """Return the latencies of all sources."""
    found = Histogram()
    for source in figures.get("sources", ()):
        whole = source["latency"]["whole"]
        one = Histogram()
        one.buckets = dict(whole["buckets"])
        one.count = sum(one.buckets.values())
        one.total = (whole["mean"] or 0.0) * 1e9 * one.count
        one.greatest = round((whole["max"] or 0.0) * 1e9)
        found.merge(one)
    return found


def _since(after: Histogram, before: Histogram) -> Histogram:
    """Return what came in between. If its greatest value may be from before, that is not known."""
    found = Histogram()
    for bucket, count in after.buckets.items():
        if (new := count - before.buckets.get(bucket, 0)) > 0:
            found.buckets[bucket] = new
    found.count = sum(found.buckets.values())
    found.total = after.total - before.total
    found.greatest = after.greatest
    return found


def _summary(values: Histogram) -> dict[str, Any]:
    """Return a summary in µs with the names of `measure.summary`."""
    shares = [percentile / 100 for percentile in PERCENTILES]
    names = ["min", *[f"p{percentile:g}" for percentile in PERCENTILES], "max"]
    found = values.quantiles([1e-12, *shares, 1.0])
    figures = [None if one is None else one / 1e3 for one in found]
    mean = values.total / values.count / 1e3 if values.count else None
    return {"count": round(values.count), "mean": mean, **dict(zip(names, figures, strict=True))}


def _steps(after: dict[str, Any], before: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for kind in ("sources", "steps", "sinks"):
        known = {one["node"]: one for one in before.get(kind, ())}
        for one in after[kind]:
            was = known.get(one["node"], {"calls": 0, "seconds": 0.0})
            calls, seconds = one["calls"] - was["calls"], one["seconds"] - was["seconds"]
            mean = 1e6 * seconds / calls if calls else None
            what = {"sources": "decoder of ", "sinks": "encoder of "}.get(kind, "")
            found.append(
                {"name": what + one["name"], "calls": calls, "mean": mean, "seconds": seconds}
            )
    return found
