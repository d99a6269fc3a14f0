"""A collector of OpenTelemetry: takes OTLP over HTTP, and decodes it by the protocol's schema."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Collector:
    """Takes what is sent.

    Args:
        port: where it listens; 0 takes a free one.
    """

    def __init__(self, port: int = 0) -> None:
        self.lock = threading.Lock()
        self.metrics: list[Any] = []  # requests
        self.spans: list[Any] = []
        self.refused: set[str] = set()  # paths at which nothing is taken
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["Content-Type"] == "application/x-protobuf"
                if self.path in outer.refused:
                    self.send_error(404)
                    return
                if self.path == "/v1/metrics":
                    with outer.lock:
                        outer.metrics.append(ExportMetricsServiceRequest.FromString(content))
                    answer = ExportMetricsServiceResponse()
                else:
                    assert self.path == "/v1/traces"
                    for resource in ExportTraceServiceRequest.FromString(content).resource_spans:
                        with outer.lock:
                            outer.spans += resource.scope_spans[0].spans
                    answer = ExportTraceServiceResponse()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.end_headers()
                self.wfile.write(answer.SerializeToString())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def values(self) -> dict[Any, Any]:
        """Return the last value of each metric, by (name, the labels' values)."""
        found = {}
        with self.lock:
            for metric in self.metrics[-1].resource_metrics[0].scope_metrics[0].metrics:
                for point in getattr(metric, metric.WhichOneof("data")).data_points:
                    labels = tuple([value for _, value in attributes(point).items()])
                    if metric.WhichOneof("data") == "histogram":
                        found[metric.name, labels] = (point.count, point.sum)
                    else:
                        found[metric.name, labels] = getattr(point, point.WhichOneof("value"))
        return found

    def traces(self) -> list[Any]:
        """Return each trace as a tree: (name, lineage, error, [children]), in order."""
        with self.lock:
            spans = sorted(self.spans, key=lambda span: span.start_time_unix_nano)
        children: dict[bytes, list[Any]] = {}
        for span in spans:
            children.setdefault(span.parent_span_id, []).append(span)

        def tree(span: Any) -> Any:
            below = [tree(one) for one in children.get(span.span_id, [])]
            lineage = attributes(span)["wallaroo.lineage"]
            return span.name, lineage, span.status.message, below

        return [tree(span) for span in children.get(b"", [])]


def attributes(of: Any) -> dict[str, Any]:
    """Return the attributes of a span or a point, or of a resource."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in of.attributes}
