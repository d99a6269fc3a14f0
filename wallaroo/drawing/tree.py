"""The topology as lines of text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wallaroo.drawing.labels import node_label, partition_label, sharing
from wallaroo.operations import Merge, Stateful, Windowed
from wallaroo.text import escaped
from wallaroo.topology import Application, Node, Sink, StatePartition, Step


@dataclass(frozen=True)
class _Row:
    """One line, and what stands below it, further in."""

    kind: str
    text: str
    below: tuple[_Row, ...] = ()


def tree(application: Application) -> str:
    """Return the application as an indented tree, a line for each part, without a last newline.

    The branches of a pipeline stand below it, each with its own steps. The steps after a merge
    stand once, in the pipeline on which `merge` was called.
    """
    heads = [
        (f"pipeline {escaped(node.pipeline)}", tuple(_rows(application, index)))
        for index, node in enumerate(application.nodes)
        if node.pipeline in application.sources and application.sources[node.pipeline] is node
    ]
    if application.partitions:
        about = [_about(application, partition) for partition in application.partitions]
        heads.append(("state partitions", tuple(about)))
    lines = [f"application {escaped(application.name)}"]
    for head, rows in heads:
        last = head is heads[-1][0]
        lines.append(f"{'└' if last else '├'}─ {head}")
        lines += _lines(rows, "   " if last else "│  ")
    return "\n".join(lines)


def _rows(application: Application, index: int) -> Iterator[_Row]:
    """Yield a line for a node and for each that follows it."""
    while True:
        node = application.nodes[index]
        consumers = application.consumers[index]
        label = node_label(application, node)
        text = f"{label.name} ({label.detail})" if label.detail else label.name
        yield _Row(label.kind, text + _state(node))
        following = [application.nodes[consumer] for consumer in consumers]
        if not consumers:
            yield _Row("done", "no sink")
            return
        if isinstance(following[0], Sink):  # those of one call
            for sink in following:
                of_sink = node_label(application, sink)
                yield _Row(of_sink.kind, f"{of_sink.name} ({of_sink.detail})")
            return
        if len(consumers) > 1:
            for number, branch in enumerate(consumers):
                _, *rows = _rows(application, branch)
                yield _Row("branch", str(number), tuple(rows))
            return
        if _is_merged_away(application, index, following[0]):
            merge = node_label(application, following[0])
            yield _Row("merge", f"{merge.name}, in pipeline {escaped(following[0].pipeline)}")
            return
        index = consumers[0]


def _is_merged_away(application: Application, index: int, following: Node) -> bool:
    """Return whether a merge follows that is shown in the other pipeline."""
    if not isinstance(following, Step) or not isinstance(following.operation, Merge):
        return False
    return following.inputs[0] != index


def _state(node: Node) -> str:
    """Return where a step keeps its state."""
    operation = node.operation if isinstance(node, Step) else None
    if isinstance(operation, Stateful):
        return f" → {escaped(operation.partition)}"
    if isinstance(operation, Windowed) and operation.state_name != operation.name:
        return f" → {escaped(operation.state_name)}"
    return ""


def _about(application: Application, partition: StatePartition) -> _Row:
    label = partition_label(application, partition)
    pipelines = [escaped(name) for name in sharing(application, partition)]
    shared = f", shared by {' and '.join(pipelines)}" if len(pipelines) > 1 else ""
    return _Row(label.name, label.detail + shared)


def _lines(rows: tuple[_Row, ...], before: str) -> Iterator[str]:
    width = max([len(row.kind) for row in rows])
    for row in rows:
        last = row is rows[-1]
        yield f"{before}{'└' if last else '├'}─ {row.kind:{width}}  {row.text}"
        if row.below:
            yield from _lines(row.below, before + ("   " if last else "│  "))
