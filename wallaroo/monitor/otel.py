"""`--otel ENDPOINT`: the figures of a run, and the records followed, sent by OTLP over HTTP.

The OpenTelemetry SDK makes the spans and sends both, from one thread of its own: the engine's
threads only add to a bounded list. Many backends take only one of the two, so each is sent whatever
becomes of the other. If one is not taken, that is said once. Figures are sent anew each time; of
the followed records, the last 256 are kept and sent again. What the environment says to the SDK
holds, such as OTEL_EXPORTER_OTLP_HEADERS or OTEL_RESOURCE_ATTRIBUTES.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from wallaroo.metrics.following import Followed, Visit
from wallaroo.metrics.process import ProcessWatch
from wallaroo.metrics.registry import Registry
from wallaroo.metrics.sketches import Histogram as Durations
from wallaroo.monitor.families import EDGES, NAMES, SECOND, values
from wallaroo.operations import Branch, Collect, Merge
from wallaroo.text import encodable, escaped, reason
from wallaroo.topology import Application, Node, Sink, Source, Step

EVERY = 10.0
"""Seconds between two times that figures and spans are sent."""

_TIMEOUT = 5.0  # seconds that one sending may take
_RECORDS = 256  # followed records that wait to be sent
_OF_THE_SDK = "opentelemetry.exporter"  # logger

_log = logging.getLogger("wallaroo.otel")


class Exporter:
    """Sends the figures of a run, and the records that are followed.

    Args:
        registry: the figures.
        endpoint: its URL, without a slash at its end; figures go to /v1/metrics there, spans to
            /v1/traces.
        every: seconds between two times.
    """

    def __init__(self, registry: Registry, endpoint: str, every: float = EVERY) -> None:
        self._registry = registry
        self._endpoint = endpoint
        self._every = every
        self._process = ProcessWatch()
        self._followed: deque[Followed] = deque(maxlen=_RECORDS)
        self._resource = Resource.create(_attributes(registry))
        self._spans: list[ReadableSpan] = []
        provider = TracerProvider(resource=self._resource, shutdown_on_exit=False)
        provider.add_span_processor(_Collecting(self._spans))
        self._tracer = provider.get_tracer("wallaroo")
        self._to_metrics = OTLPMetricExporter(f"{endpoint}/v1/metrics", timeout=_TIMEOUT)
        self._to_traces = OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=_TIMEOUT)
        self._away = {"figures": False, "traces": False}  # not taken the last time
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="wallaroo-otel", daemon=True)
        registry.on_followed = self._followed.append

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def close(self) -> None:
        """Send what was taken the last time, or was never sent, and end."""
        self._closed.set()
        self._thread.join(_TIMEOUT)
        self._to_metrics.shutdown()
        self._to_traces.shutdown()  # type: ignore[no-untyped-call]  # the SDK gives it no types
        self._thread.join(_TIMEOUT)
        self._process.close()

    def _go_on(self) -> None:
        with _Reasons() as reasons:
            while not self._closed.wait(self._every):
                for what in self._away:
                    self._send(what, reasons)
            for what, away in self._away.items():
                if not away:
                    self._send(what, reasons)

    def _send(self, what: str, reasons: _Reasons) -> None:
        reasons.first = ""
        try:
            good = self._send_figures() if what == "figures" else self._send_traces()
        except Exception as error:  # noqa: BLE001 - a bug, here or in the SDK, must not end the run
            good, reasons.first = False, f"{type(error).__name__}: {error}"
        if good is None or good is not self._away[what]:  # it has not changed
            return
        self._away[what] = not good
        if good:
            _log.warning("%s are taken at %s again", what, self._endpoint)
        else:
            _log.warning(
                "%s are not taken at %s: %s. It is tried again every %g s; nothing else is "
                "affected",
                what,
                self._endpoint,
                escaped(reasons.first or "no reason was given"),
                self._every,
            )

    def _send_figures(self) -> bool:
        """Return whether they were taken."""
        data = metrics_data(self._registry, self._process.look(), self._resource)
        return self._to_metrics.export(data) is MetricExportResult.SUCCESS

    def _send_traces(self) -> bool | None:
        """Return whether they were taken; `None`: there are none."""
        sent = [self._followed.popleft() for _ in range(len(self._followed))]
        if not sent:
            return None
        self._spans.clear()
        for followed in sent:
            make_spans(self._tracer, self._registry.application, followed)
        good = self._to_traces.export(self._spans[:]) is SpanExportResult.SUCCESS
        if not good:
            room = _RECORDS - len(self._followed)  # for the last of them: others have come since
            self._followed.extendleft(reversed(sent[max(0, len(sent) - room) :]))
        return good


class _Collecting(SpanProcessor):
    """Keeps the spans that have ended for the thread that sends them."""

    def __init__(self, spans: list[ReadableSpan]) -> None:
        self._spans = spans

    def on_end(self, span: ReadableSpan) -> None:
        self._spans.append(span)


class _Reasons(logging.Handler):
    """Takes what the SDK logs in this thread: it repeats itself with each attempt."""

    def __init__(self) -> None:
        super().__init__()
        self.first = ""
        self._thread = threading.get_ident()
        self._logger = logging.getLogger(_OF_THE_SDK)

    def __enter__(self) -> _Reasons:
        for handler in logging.getLogger().handlers:
            handler.addFilter(self._is_not_ours)
        self._logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        for handler in logging.getLogger().handlers:
            handler.removeFilter(self._is_not_ours)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first reason; later ones are the SDK's own words for it."""
        if record.thread == self._thread and not self.first:
            arguments = record.args if isinstance(record.args, tuple) else ()
            errors = [one for one in arguments if isinstance(one, BaseException)]
            self.first = reason(_origin(errors[0])) if errors else record.getMessage()

    def _is_not_ours(self, record: logging.LogRecord) -> bool:
        return record.thread != self._thread or not record.name.startswith(
            ("opentelemetry", "urllib3")
        )


def _origin(error: BaseException) -> OSError:
    """Return the error of the system that an error of the HTTP library was raised from."""
    found = error
    while (before := found.__cause__ or found.__context__) is not None:
        found = before
    return found if isinstance(found, OSError) else OSError(str(error))


def _attributes(registry: Registry) -> dict[str, str | int]:
    return {
        "service.name": encodable(registry.application.name),
        "service.instance.id": f"{socket.gethostname()}:{os.getpid()}:{int(time.time())}",
        "process.pid": os.getpid(),
        "wallaroo.engine": registry.engine,
    }


_UNITS = {"seconds": "s", "bytes": "By"}
_OF_THE_PROCESS = {  # names of OpenTelemetry's own conventions
    "cpu_seconds": ("process.cpu.time", "s", True, "Processor time."),
    "memory_bytes": ("process.memory.usage", "By", False, "Memory in use."),
    "threads": ("process.thread.count", "{thread}", False, "Threads."),
    "gc_runs": ("cpython.gc.collections", "{collection}", True, "Garbage collections."),
}

_SINCE_THE_START = AggregationTemporality.CUMULATIVE


def metrics_data(registry: Registry, process: dict[str, Any], resource: Resource) -> MetricsData:
    """Return the figures as of now.

    Args:
        registry: the run's.
        process: what `ProcessWatch` says.
        resource: the SDK's description of the process that they are about.
    """
    began, now = int(registry.began * SECOND), time.time_ns()
    by_name = values(registry)
    metrics = []
    for name, family in NAMES.items():
        points = [
            _point(dict(zip(family.labels, given, strict=True)), value, began, now)
            for given, value in by_name[name]
        ]
        if points:
            unit = _UNITS.get(name.rpartition("_")[2], "1")
            metrics.append(Metric(name, family.meaning, unit, _data(family.kind, points)))
    for key, (name, unit, grows, text) in _OF_THE_PROCESS.items():
        point = NumberDataPoint({}, began, now, process[key])
        kind = "counter" if grows else "gauge"
        metrics.append(Metric(name, text, unit, _data(kind, [point])))
    scope = InstrumentationScope("wallaroo")
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(scope, metrics, "")], "")])


def _data(kind: str, points: list[Any]) -> Sum | Gauge | Histogram:
    if kind == "histogram":
        return Histogram(points, _SINCE_THE_START)
    if kind == "counter":
        return Sum(points, _SINCE_THE_START, is_monotonic=True)
    return Gauge(points)


def _point(
    labels: dict[str, str], value: Any, began: int, now: int
) -> NumberDataPoint | HistogramDataPoint:
    if not isinstance(value, Durations):
        return NumberDataPoint(labels, began, now, value)
    # Estimates are not whole numbers, but whole numbers are asked for, and they must add up.
    below = [0, *map(round, value.at_most(EDGES)), round(value.count)]
    counts = [more - less for less, more in pairwise(below)]
    return HistogramDataPoint(
        labels,
        began,
        now,
        count=below[-1],
        sum=value.total / SECOND,
        bucket_counts=counts,
        explicit_bounds=[edge / SECOND for edge in EDGES],
        min=0.0 if not value.count else value.quantiles((0.0,))[0] / SECOND,  # type: ignore[operator]  # there are values
        max=value.greatest / SECOND,
    )


_Made = list[tuple[Visit, Span]]


def make_spans(tracer: Tracer, application: Application, followed: Followed) -> None:
    """Make the spans of a record: one for it, one for each step, one for each output.

    A record of Kafka belongs to the trace, and to the span, that its headers name.

    The parent of a message's span is the span of the message that it was made from: that of the
    nearest earlier step at which the message's lineage is the beginning of its own. A message that
    a window gave in a record's turn has the record as its parent.

    Args:
        tracer: makes them.
        application: what the record went through.
        followed: the record.
    """
    headers = {name: (value or b"").decode("latin-1") for name, value in followed.context}
    root = tracer.start_span(
        f"frame {encodable(followed.source)}",
        context=TraceContextTextMapPropagator().extract(headers),
        kind=SpanKind.CONSUMER,
        attributes={
            "wallaroo.source": encodable(followed.source),
            "wallaroo.lineage": str(followed.sequence),
            "wallaroo.calls_left_out": followed.visits.left_out,
        },
        start_time=followed.arrived,
    )
    made: dict[int, _Made] = {}
    ends = []
    for visit in followed.visits.kept:
        node = application.nodes[visit.node]
        parent = _parent(application, made, visit) or root
        span = tracer.start_span(
            _name(node),
            context=set_span_in_context(parent),
            kind=SpanKind.PRODUCER if isinstance(node, Sink) else SpanKind.INTERNAL,
            attributes={
                "wallaroo.pipeline": encodable(node.pipeline),
                "wallaroo.position": application.position(node),
                "wallaroo.lineage": ".".join(map(str, visit.lineage)),
            },
            start_time=visit.began,
        )
        made.setdefault(visit.node, []).append((visit, span))
        ended = visit.ended
        if visit.error is not None:
            kind, text = map(encodable, visit.error)
            details = {"exception.type": kind, "exception.message": text}
            span.add_event("exception", details, timestamp=visit.ended)
            span.set_status(Status(StatusCode.ERROR, f"{kind}: {text}"))
        elif isinstance(node, Sink) and node.id in followed.delivered:
            span.add_event("encoded", timestamp=visit.ended)
            ended = max(ended, followed.delivered[node.id])
        ends.append((span, ended))
    for span, ended in reversed(ends):
        span.end(ended)
    root.end(max([followed.ended, *[ended for _, ended in ends]]))


def _parent(application: Application, made: dict[int, _Made], visit: Visit) -> Span | None:
    """Return the span of the message that a message was made from."""
    for origin in _origins(application, visit.node):
        for before, span in reversed(made.get(origin, [])):
            if visit.lineage[: len(before.lineage)] == before.lineage:
                return span
    return None


def _origins(application: Application, index: int) -> Iterator[int]:
    """Yield the nodes whose messages come to a node; those that pass messages on have no calls."""
    node = application.nodes[index]
    for origin in () if isinstance(node, Source) else node.inputs:
        before = application.nodes[origin]
        if isinstance(before, Step) and isinstance(before.operation, (Branch, Collect, Merge)):
            yield from _origins(application, origin)
        else:
            yield origin


def _name(node: Node) -> str:
    if isinstance(node, Source):
        return f"decode {encodable(node.pipeline)}"
    if isinstance(node, Sink):
        return f"sink {encodable(node.pipeline)}/{node.index}"
    return f"step {encodable(node.name)}"
