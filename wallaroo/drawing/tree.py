"""The topology as lines of text, for a terminal."""

from __future__ import annotations

from wallaroo.drawing.labels import Label, node_label, partition_label, sharing
from wallaroo.operations import Stateful
from wallaroo.text import escaped
from wallaroo.topology import Application, Source, StatePartition, Step


def tree(application: Application) -> str:
    """Return the application as an indented tree, a line for each part, without a last newline."""
    branches: list[tuple[str, list[str]]] = []
    for name in application.sources:
        rows: list[tuple[str, str]] = []
        for node in application.pipeline(name):
            label = node_label(application, node)
            text = _text(label)
            if isinstance(node, Step) and isinstance(node.operation, Stateful):
                text = f"{text} → {escaped(node.operation.partition)}"
            rows.append((label.kind, text))
        if isinstance(node, Step | Source):
            rows.append(("done", "no sink"))
        branches.append((f"pipeline {escaped(name)}", _aligned(rows)))
    if application.partitions:
        about = [_about(application, partition) for partition in application.partitions]
        branches.append(("state partitions", _aligned(about)))
    lines = [f"application {escaped(application.name)}"]
    for head, leaves in branches:
        last = head is branches[-1][0]
        lines.append(f"{'└' if last else '├'}─ {head}")
        for leaf in leaves:
            lines.append(f"{' ' if last else '│'}  {'└' if leaf is leaves[-1] else '├'}─ {leaf}")
    return "\n".join(lines)


def _text(label: Label) -> str:
    return f"{label.name} ({label.detail})" if label.detail else label.name


def _about(application: Application, partition: StatePartition) -> tuple[str, str]:
    label = partition_label(application, partition)
    pipelines = [escaped(name) for name in sharing(application, partition)]
    shared = f", shared by {' and '.join(pipelines)}" if len(pipelines) > 1 else ""
    return label.name, label.detail + shared


def _aligned(rows: list[tuple[str, str]]) -> list[str]:
    width = max(len(head) for head, _ in rows)
    return [f"{head:{width}}  {text}" for head, text in rows]
