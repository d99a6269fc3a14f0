"""The figures of a run by name: what Prometheus reads, and what OpenTelemetry is sent.

Each name is in `NAMES`, with what it means; the dashboard and the alert rules in the documents use
no others. Keys are not labels: there may be any number of them. Labels are escaped: people read
them on terminals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wallaroo.metrics.registry import Registry
from wallaroo.metrics.snapshot import snapshot
from wallaroo.text import escaped
from wallaroo.topology import Sink, Source

SECOND = 1_000_000_000
"""Nanoseconds."""

EDGES = [digit * 10**power for power in range(3, 11) for digit in (1, 2, 5)]
"""Nanoseconds where the buckets of a histogram end: 1 µs to 50 s."""

_NODE = ("kind", "pipeline", "name", "position")
_EXECUTOR = ("executor", "host")
NAMES: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "wallaroo_run": ("info", ("application", "engine"), "The run."),
    "wallaroo_ready": ("gauge", (), "1 while sources are read; /ready says why not."),
    "wallaroo_uptime_seconds": ("gauge", (), "Since the start."),
    "wallaroo_busy_seconds": ("counter", (), "Time that the thread of the engine has worked."),
    "wallaroo_backlog": ("gauge", (), "Records received and not processed."),
    "wallaroo_processed": ("counter", (), "Records processed."),
    "wallaroo_records_measured": ("counter", (), "Records looked at one by one."),
    "wallaroo_records_represented": ("counter", (), "Records that others stand for."),
    "wallaroo_source_frames": ("counter", ("source",), "Frames, or values, received."),
    "wallaroo_source_bytes": ("counter", ("source",), "Bytes received."),
    "wallaroo_source_backlog": ("gauge", ("source",), "Frames received and not processed."),
    "wallaroo_source_connections": ("gauge", ("source",), "Connections of senders."),
    "wallaroo_source_refused_connections": ("counter", ("source",), "Connections refused."),
    "wallaroo_source_dropped_frames": ("counter", ("source",), "Frames incomplete or refused."),
    "wallaroo_delivery_seconds": (
        "histogram",
        ("source",),
        "From the arrival of a read to the delivery of its last output.",
    ),
    "wallaroo_sink_outputs": ("counter", ("sink",), "Outputs delivered."),
    "wallaroo_sink_bytes": ("counter", ("sink",), "Bytes of outputs."),
    "wallaroo_sink_waiting": ("gauge", ("sink",), "Outputs made and not delivered."),
    "wallaroo_sink_waiting_seconds": ("gauge", ("sink",), "How long the oldest output has waited."),
    "wallaroo_sink_full": ("gauge", ("sink",), "1 while it holds sources back."),
    "wallaroo_sink_connected": ("gauge", ("sink",), "1 while there is a connection."),
    "wallaroo_sink_reconnects": ("counter", ("sink",), "Connections made after the first."),
    "wallaroo_sink_delivery_seconds": (
        "histogram",
        ("sink",),
        "From the arrival of a read to the delivery of its outputs here.",
    ),
    "wallaroo_node_received": ("counter", _NODE, "Messages that came to a node (estimate)."),
    "wallaroo_node_sent": ("counter", _NODE, "Messages or outputs it made (estimate)."),
    "wallaroo_node_call_seconds": (
        "histogram",
        _NODE,
        "Calls of decoder, computation, update or encoder (estimate).",
    ),
    "wallaroo_node_user_code_seconds": (
        "counter",
        _NODE,
        "Time in all calls of user code there (estimate).",
    ),
    "wallaroo_dead_letters": ("counter", (*_NODE, "reason"), "Dead letters."),
    "wallaroo_partition_entities": ("gauge", ("partition",), "State entities."),
    "wallaroo_partition_visits": (
        "counter",
        ("partition", "number"),
        "Visits by partition number (estimate).",
    ),
    "wallaroo_partition_busiest_share": (
        "gauge",
        ("partition",),
        "Share of the busiest key in all visits (estimate).",
    ),
    "wallaroo_windows_open": ("gauge", _NODE, "Windows open, as of the last count."),
    "wallaroo_windows_fired": ("counter", _NODE, "Windows fired (estimate)."),
    "wallaroo_windows_late": (
        "counter",
        (*_NODE, "what"),
        "Late messages dropped, or partly late.",
    ),
    "wallaroo_watermark_lag_seconds": (
        "gauge",
        _NODE,
        "How far a window step's watermark is behind the last arrival.",
    ),
    "wallaroo_phase_seconds": ("gauge", ("phase",), "The last micro-batch by phase (Spark)."),
    "wallaroo_log_bytes": ("gauge", (), "Bytes of the input log."),
    "wallaroo_log_records": ("gauge", (), "Records in the input log."),
    "wallaroo_log_write_timestamp_seconds": ("gauge", (), "When it was last made durable."),
    "wallaroo_checkpoint_bytes": ("gauge", (), "Bytes of the engine's part of the checkpoint."),
    "wallaroo_checkpoint_write_timestamp_seconds": ("gauge", (), "When it was last written."),
    "wallaroo_checkpoint_restarts": ("gauge", (), "Earlier runs on the checkpoint."),
    "wallaroo_executor_running_tasks": ("gauge", _EXECUTOR, "Tasks that run now (Spark)."),
    "wallaroo_executor_tasks": ("counter", _EXECUTOR, "Tasks that have ended well (Spark)."),
    "wallaroo_executor_failed_tasks": ("counter", _EXECUTOR, "Tasks that have failed (Spark)."),
    "wallaroo_executor_seconds": ("counter", _EXECUTOR, "Time in tasks (Spark)."),
    "wallaroo_executor_gc_seconds": (
        "counter",
        _EXECUTOR,
        "Of this in Java's collections (Spark).",
    ),
    "wallaroo_host_records": (
        "counter",
        ("host",),
        "Records decoded, and messages taken to their entities, by tasks on a host (Spark).",
    ),
    "wallaroo_host_seconds": (
        "counter",
        ("host",),
        "Time of these in their Python workers (Spark).",
    ),
}
"""Kind, labels and meaning of each name; a counter gets the end `_total` where it is read."""


def values(registry: Registry) -> dict[str, list[tuple[list[str], Any]]]:
    """Return for each name its values: the labels of each, and a number or a `Histogram`.

    Histograms are in nanoseconds.
    """
    found: dict[str, list[tuple[list[str], Any]]] = {}

    def add(name: str, value: Any, *labels: object) -> None:
        if value is not None:
            found.setdefault(name, []).append(([escaped(str(one)) for one in labels], value))

    figures = snapshot(registry)
    add("wallaroo_run", 1, figures["application"], figures["engine"])
    add("wallaroo_ready", int(figures["ready"]))
    add("wallaroo_uptime_seconds", figures["uptime"])
    add("wallaroo_busy_seconds", registry.busy_seconds)
    add("wallaroo_backlog", figures["backlog"])
    add("wallaroo_processed", figures["processed"])
    add("wallaroo_records_measured", figures["sampling"]["looked_at"])
    add("wallaroo_records_represented", figures["sampling"]["left_out"])
    for source in figures["sources"]:
        add("wallaroo_source_frames", source["frames"], source["name"])
        add("wallaroo_source_bytes", source["bytes"], source["name"])
        add("wallaroo_source_backlog", source["backlog"], source["name"])
        add("wallaroo_source_connections", source["connections"], source["name"])
        add("wallaroo_source_refused_connections", source["refused_connections"], source["name"])
        add("wallaroo_source_dropped_frames", source["dropped_frames"], source["name"])
    for sink in figures["sinks"]:
        add("wallaroo_sink_outputs", sink["written"], sink["name"])
        add("wallaroo_sink_bytes", sink["bytes"], sink["name"])
        add("wallaroo_sink_waiting", sink["waiting"], sink["name"])
        add("wallaroo_sink_waiting_seconds", sink["waiting_for"] or 0.0, sink["name"])
        add("wallaroo_sink_full", int(sink["full"]), sink["name"])
        add("wallaroo_sink_connected", int(sink["connected"]), sink["name"])
        add("wallaroo_sink_reconnects", sink["reconnects"], sink["name"])
    for partition in figures["partitions"]:
        add("wallaroo_partition_entities", partition["entities"], partition["name"])
        for number, visits in partition["visits_by_number"].items():
            add("wallaroo_partition_visits", visits, partition["name"], number)
        for busiest in partition["busiest"][:1]:
            add("wallaroo_partition_busiest_share", busiest["share"], partition["name"])
    for phase, seconds in figures["phases"].items():
        add("wallaroo_phase_seconds", seconds, phase)
    if kept := figures["kept"]:
        add("wallaroo_log_bytes", kept["log_bytes"])
        add("wallaroo_log_records", kept["log_records"])
        add("wallaroo_log_write_timestamp_seconds", kept["log_written"])
        add("wallaroo_checkpoint_bytes", kept["checkpoint_bytes"])
        add("wallaroo_checkpoint_write_timestamp_seconds", kept["checkpoint_written"])
        add("wallaroo_checkpoint_restarts", kept["restarts"])
    for one in figures["executors"]:
        executor = (one["executor"], one["host"])
        add("wallaroo_executor_running_tasks", one["running"], *executor)
        add("wallaroo_executor_tasks", one["tasks"], *executor)
        add("wallaroo_executor_failed_tasks", one["failed"], *executor)
        add("wallaroo_executor_seconds", one["seconds"], *executor)
        add("wallaroo_executor_gc_seconds", one["gc_seconds"], *executor)
    for host in figures["hosts"]:
        add("wallaroo_host_records", host["records"], host["host"])
        add("wallaroo_host_seconds", host["seconds"], host["host"])
    for one in (*figures["sources"], *figures["steps"], *figures["sinks"]):
        node = (one["kind"], one["pipeline"], one["name"], one["position"])
        add("wallaroo_node_received", one["received"], *node)
        add("wallaroo_node_sent", one["sent"], *node)
        add("wallaroo_node_user_code_seconds", one["seconds"], *node)
        for why, number in one["dead_letters"].items():
            add("wallaroo_dead_letters", number, *node, why)
        if windows := one.get("windows"):
            add("wallaroo_windows_open", windows["open"], *node)
            add("wallaroo_windows_fired", windows["fired"], *node)
            add("wallaroo_watermark_lag_seconds", windows["watermark_lag"], *node)
            for what, number in windows["late"].items():
                add("wallaroo_windows_late", number, *node, what)
    _add_histograms(registry, add)
    return found


def _add_histograms(registry: Registry, add: Any) -> None:
    with registry.lock:
        for index, node in enumerate(registry.application.nodes):
            time = registry.nodes[index].time
            kind, name = "step", getattr(node, "name", "")
            if isinstance(node, Source):
                kind, name = "source", node.pipeline
                latency = registry.sources[node.pipeline].latency.whole()
                add("wallaroo_delivery_seconds", latency, node.pipeline)
            elif isinstance(node, Sink):
                kind, name = "sink", f"{node.pipeline}/{node.index}"
                latency = registry.sinks[node.id].latency.whole()
                add("wallaroo_sink_delivery_seconds", latency, name)
            if time.count:
                position = registry.application.position(node)
                labels = (kind, node.pipeline, name, position)
                add("wallaroo_node_call_seconds", time.copy(), *labels)
