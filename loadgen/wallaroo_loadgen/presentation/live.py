"""`wallaroo load --live`: the run that goes on, for browsers and for Prometheus.

    /          the page, which asks for
    /figures   what it shows, as JSON
    /metrics   figures as Prometheus reads them

Nothing can be set from it. It listens to this machine unless the user names another address, and
refuses requests that come by a name which is not its own (`wallaroo.monitor.pages`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from hdrh.histogram import HdrHistogram
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from wallaroo.monitor.pages import Answer, PageServer, Request, json_answer
from wallaroo.overriding import override
from wallaroo_loadgen.common.config import Address
from wallaroo_loadgen.common.measure import recorded
from wallaroo_loadgen.control.conductor import Conductor
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search
from wallaroo_loadgen.presentation.pages import live_figures, live_page

_REFRESH_SECONDS = 0.5
_MICROS = 1e6
_EDGES = [digit * 10**power for power in range(1, 8) for digit in (1, 2, 5)]
"""µs: 10 µs to 50 s, where the buckets of a histogram end."""

_COUNTS = {
    "messages_sent": ("sent", "Messages that the target's side of a connection has taken."),
    "outputs_expected": ("expected", "Outputs that the messages sent should cause."),
    "outputs_received": ("received", "Outputs that came."),
    "outputs_repeated": ("repeated", "Outputs that came more than once."),
    "outputs_unmatched": ("unmatched", "Outputs that match no message."),
}


class LiveServer(Collector):
    """Shows the newest figures that it was given, from threads of its own.

    Args:
        address: where to listen; port 0 takes a free one.

    Raises:
        OSError: when it cannot listen there.
    """

    def __init__(self, address: Address) -> None:
        self._result: Result | None = None  # replaced as a whole: threads read it without a lock
        self._search: Search | None = None
        self._again = 0.0  # the time from which on figures are taken again
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        pages = {"/": self._page, "/figures": self._figures, "/metrics": self._metrics}
        self._server = PageServer(*address, pages, "give it in --live HOST:PORT")
        self.url = self._server.url

    def start(self) -> None:
        """Begin to answer."""
        self._server.start()

    def close(self) -> None:
        """End; it must have been started."""
        self._server.close()

    def watch(self, conductor: Conductor) -> None:
        """Take the figures of a run that goes on, twice a second at most.

        It takes at most a tenth of the caller's time, because the caller has reports to read.
        """
        now = time.monotonic()
        if now >= self._again:
            self._result = Result.of(conductor)
            took = time.monotonic() - now
            self._again = now + max(_REFRESH_SECONDS, 10 * took)

    def show(self, result: Result, search: Search | None = None) -> None:
        """Take the figures of a run that is over, and of the search that it belongs to."""
        if search is not None:  # a copy: the search goes on while threads read this
            search = replace(search, results=list(search.results))
        self._result, self._search = result, search

    def _page(self, request: Request) -> Answer:
        return Answer(200, "text/html", live_page(request.nonce).encode())

    def _figures(self, _: Request) -> Answer:
        return json_answer(live_figures(self._result, self._search))

    def _metrics(self, request: Request) -> Answer:
        encode, kind = choose_encoder(request.accept)
        return Answer(200, kind, encode(self._registry))

    @override
    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, in the units of Prometheus: seconds, and totals of this run."""
        result = self._result
        if result is None:
            return
        about = ["workload", "schedule", "run"]
        run = GaugeMetricFamily("wallaroo_load_run_info", "The run that goes on.", labels=about)
        run.add_metric([str(result.config[name]) for name in about], 1)
        yield run
        for name, (count, text) in _COUNTS.items():
            yield CounterMetricFamily(f"wallaroo_load_{name}", text, value=result.counts[count])
        backlog = max(0, result.counts["expected"] - result.counts["received"])
        yield GaugeMetricFamily(
            "wallaroo_load_backlog", "Outputs expected and not received yet.", value=backlog
        )
        yield GaugeMetricFamily(
            "wallaroo_load_offered_rate",
            "Messages a second that the schedule asks for.",
            value=result.rates["offered"],
        )
        for name, summary, text in (
            ("latency", result.latency, "From a message's intended time until its output came."),
            ("lateness", result.lateness, "From a message's intended time until it was sent."),
        ):
            hist = result.histogram(name)
            yield HistogramMetricFamily(
                f"wallaroo_load_{name}_seconds",
                text,
                buckets=_buckets(hist),
                sum_value=(summary["mean"] or 0.0) * summary["count"] / _MICROS,
            )


def _buckets(hist: HdrHistogram) -> list[tuple[str, float]]:
    """Return, for each of `_EDGES`, how many values are no greater."""
    _, values, counts = recorded(hist)
    through = np.append(0, np.cumsum(counts))[np.searchsorted(values, _EDGES, side="right")]
    names = [str(edge / _MICROS) for edge in _EDGES]
    return [*zip(names, through.tolist(), strict=True), ("+Inf", float(counts.sum()))]
