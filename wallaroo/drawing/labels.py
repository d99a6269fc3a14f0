"""The labels of an application's parts in a drawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wallaroo.kafka import KafkaSourceConfig
from wallaroo.keys import SINGLE_KEY
from wallaroo.operations import Branch, Collect, KeyBy, Merge, Stateful, Stateless, Windowed
from wallaroo.text import escaped
from wallaroo.topology import AnySource, Application, Node, Sink, Source, StatePartition, Step
from wallaroo.windows import show_duration


@dataclass(frozen=True)
class Label:
    """Three short texts, each on one line.

    Args:
        kind: the kind of part, such as ``source``.
        name: its name.
        detail: further facts.
    """

    kind: str
    name: str
    detail: str


def node_label(application: Application, node: Node) -> Label:
    """Return the label of a source, step or sink."""
    if isinstance(node, Source):
        return _label("source", _place(node.config.address), _source_detail(node.config))
    if isinstance(node, Sink):
        several = sum(sink.pipeline == node.pipeline for sink in application.sinks.values()) > 1
        encoder = f"encoder {node.config.encoder.name}"
        kind = f"sink {node.index}" if several else "sink"
        return _label(kind, _place(node.config.address), encoder)
    operation = node.operation
    if not isinstance(operation, (Stateless, Stateful)):
        return _other_label(application, node, operation)
    many = "one to many" if operation.computation.multi else ""
    if isinstance(operation, Stateful):
        key = "" if operation.route is None else f"key {operation.route.name}"
        return _label("state computation", node.name, ", ".join(filter(None, (key, many))))
    kind = "computation, parallel" if operation.parallel else "computation"
    return _label(kind, node.name, many)


def _source_detail(config: AnySource[Any]) -> str:
    facts = []
    if config.decoder is not None:
        facts.append(f"decoder {config.decoder.name}")
    if config.event_time is not None:
        facts.append(f"event time {config.event_time.name}")
    if config.idle_after is not None:
        facts.append(f"idle after {show_duration(config.idle_after)}")
    if config.max_ahead is not None:
        facts.append(f"at most {show_duration(config.max_ahead)} ahead")
    if isinstance(config, KafkaSourceConfig):
        if config.partitions is not None:
            facts.append(f"partitions {', '.join(map(str, config.partitions))}")
        if config.until is not None:
            facts.append("to the end")
    return ", ".join(facts)


def _other_label(
    application: Application, node: Step, operation: Windowed | KeyBy | Collect | Merge | Branch
) -> Label:
    """Return the label of a step that passes messages on unchanged, or of a window step."""
    if isinstance(operation, Windowed):
        key = "" if operation.route is None else f"key {operation.route.name}"
        detail = ", ".join(filter(None, (operation.windows.described(), key)))
        return _label("window", node.name, detail)
    if isinstance(operation, KeyBy):
        return _label("key", node.name, "")
    if isinstance(operation, Collect):
        return _label("key", "()", "one key for all")
    if isinstance(operation, Merge):
        return _label("merge", " and ".join(_merged(application, node)), "")
    return _label("branch", str(operation.number), "")


def _merged(application: Application, merge: Step) -> list[str]:
    """Return what a merge unites: pipelines, or the branches of one pipeline."""
    inputs = [application.nodes[index] for index in merge.inputs]
    if len({node.pipeline for node in inputs}) > 1:
        return [node.pipeline for node in inputs]
    return [node.name if isinstance(node, Step) else node.pipeline for node in inputs]


def partition_label(application: Application, partition: StatePartition) -> Label:
    """Return the label of a state partition."""
    pipelines = len(sharing(application, partition))
    kind = f"state shared by {pipelines} pipelines" if pipelines > 1 else "state"
    number = "64-bit key" if partition.u64 else "key"
    if partition.keys is None:
        keys = f"any {number}"
    elif partition.keys == (SINGLE_KEY,):
        keys = "one entity"
    else:
        keys = f"{len(partition.keys)} {number}{'s' if len(partition.keys) > 1 else ''}"
    expires = ""
    if partition.expire_after is not None:
        expires = f", expires after {show_duration(partition.expire_after)}"
    return _label(kind, partition.name, f"{keys}, {partition.builder.name}{expires}")


def sharing(application: Application, partition: StatePartition) -> list[str]:
    """Return the names of the pipelines that use `partition`, in their order."""
    names = [application.nodes[index].pipeline for index in users(application, partition)]
    return list(dict.fromkeys(names))


def users(application: Application, partition: StatePartition) -> list[int]:
    """Return the indices of the steps that use `partition`."""
    return [
        index
        for index, node in enumerate(application.nodes)
        if isinstance(node, Step)
        and isinstance(node.operation, Stateful)
        and node.operation.partition == partition.name
    ]


def ends_open(application: Application) -> list[int]:
    """Return the indices of the nodes behind which a pipeline ends with `done()`."""
    return [
        index
        for index, node in enumerate(application.nodes)
        if not isinstance(node, Sink) and not application.consumers[index]
    ]


def _place(address: str) -> str:
    host, _, port = address.rpartition(":")
    return f"{host}, any port" if port == "0" else address


def _label(kind: str, name: str, detail: str) -> Label:
    return Label(kind, escaped(name), escaped(detail))
