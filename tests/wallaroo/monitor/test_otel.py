"""What is sent to a collector of OpenTelemetry that goes away, and comes back."""

import logging

import pytest
from receiving import eventually

from wallaroo.metrics.following import Followed, Visit, Visits
from wallaroo.text import escaped

from .conftest import NASTY

pytest.importorskip("opentelemetry.sdk")

from collector import Collector, attributes
from ports import free_port

from wallaroo.monitor.otel import Exporter


def followed():
    failed = Visit(1, (7, 0), 20, 30, ("ValueError", NASTY))
    return Followed(NASTY, 7, Visits([Visit(0, (7,), 10, 20), failed]), arrived=5, ended=40)


def test_a_collector_that_comes_back_gets_what_was_kept(registry, caplog):
    port = free_port()
    exporter = Exporter(registry, f"http://127.0.0.1:{port}", every=0.01)
    exporter.start()
    try:
        eventually(lambda: "Connection refused" in caplog.text)
        for _ in range(1000):
            registry.on_followed(followed())
        with Collector(port) as collector:
            eventually(lambda: len(collector.spans) == 3 * 256)  # no more are kept
            eventually(lambda: "again" in caplog.text)
    finally:
        exporter.close()
    ours = [one for one in caplog.records if one.name == "wallaroo.otel"]
    assert [one.levelno for one in ours[:2]] == [logging.WARNING] * 2
    assert not [one for one in caplog.records if one.name.startswith("opentelemetry")]
    names = {f"frame {shown()}", f"decode {shown()}", f"step {shown()}"}
    assert {span.name for span in collector.spans} == names
    failed = next(span for span in collector.spans if span.name == "step " + shown())
    (event,) = failed.events
    assert attributes(event)["exception.message"] == shown()
    dead = [labels for name, labels in collector.values() if name == "wallaroo_dead_letters"]
    assert dead == [("step", escaped(NASTY), escaped(NASTY), "0", "raised")]


def test_a_backend_that_takes_no_figures_gets_the_traces(registry, caplog):
    with Collector() as collector:
        collector.refused.add("/v1/metrics")
        exporter = Exporter(registry, collector.url, every=0.01)
        exporter.start()
        eventually(lambda: "figures are not taken" in caplog.text)
        registry.on_followed(followed())
        eventually(lambda: len(collector.spans) == 3)
        exporter.close()
    assert "traces are not taken" not in caplog.text
    assert not collector.metrics


def test_traces_that_are_refused_are_sent_later_and_figures_all_the_same(registry, caplog):
    with Collector() as collector:
        collector.refused.add("/v1/traces")
        exporter = Exporter(registry, collector.url, every=0.01)
        exporter.start()
        registry.on_followed(followed())
        eventually(lambda: "traces are not taken" in caplog.text)
        eventually(lambda: len(collector.metrics) > 3)
        collector.refused.clear()
        registry.on_followed(followed())
        eventually(lambda: len(collector.spans) == 6)
        exporter.close()
    assert "figures are not taken" not in caplog.text
    assert caplog.text.count("are not taken") == 1


def shown():
    return NASTY.encode("utf-8", "backslashreplace").decode()


def test_a_record_belongs_to_the_trace_that_its_headers_name(registry):
    begun = followed()
    parent = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    begun.context = (("traceparent", parent), ("tracestate", None))
    damaged = followed()
    damaged.context = (("traceparent", b"\xff"),)
    with Collector() as collector:
        exporter = Exporter(registry, collector.url, every=0.01)
        exporter.start()
        registry.on_followed(begun)
        registry.on_followed(damaged)
        eventually(lambda: len(collector.spans) == 6)
        exporter.close()
    ours = [span for span in collector.spans if span.trace_id.hex() == parent[3:35].decode()]
    assert len(ours) == 3
    (root,) = [span for span in ours if span.name.startswith("frame")]
    assert root.parent_span_id.hex() == parent[36:52].decode()
