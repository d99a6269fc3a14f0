"""The topology as Mermaid text, which many viewers of Markdown draw."""

from __future__ import annotations

import re

from wallaroo.drawing.labels import Label, ends_open, node_label, partition_label, users
from wallaroo.operations import Collect, KeyBy, Stateful, Windowed
from wallaroo.text import escaped
from wallaroo.topology import Application, Node, Sink, Source

# Characters that need escaping. A point before a space would make "1. name" a numbered list.
_UNSAFE = re.compile(r"[^\w ,:./()\u0080-\U0010ffff-]|\.(?= )", re.ASCII)


def mermaid(application: Application) -> str:
    """Return the application as a Mermaid flowchart, without a last newline."""
    lines = ["flowchart LR"]
    numbers = {id(node): index for index, node in enumerate(application.nodes)}
    ends = ends_open(application)
    for index, name in enumerate(application.sources):
        lines.append(f'  subgraph pipeline{index}["{_safe(name)}"]')
        for node in application.pipeline(name):
            shape = _shape(node, _text(node_label(application, node)))
            lines.append(f"    node{numbers[id(node)]}{shape}")
            if numbers[id(node)] in ends:
                lines.append(f'    done{numbers[id(node)]}(("done"))')
                lines.append(f"    node{numbers[id(node)]} --> done{numbers[id(node)]}")
        lines.append("  end")
    for index, node in enumerate(application.nodes):
        for origin in () if isinstance(node, Source) else node.inputs:
            lines.append(f"  node{origin} --> node{index}")
    for index, partition in enumerate(application.partitions):
        lines.append(f'  state{index}[("{_text(partition_label(application, partition))}")]')
        lines += [f"  node{user} -.- state{index}" for user in users(application, partition)]
    return "\n".join(lines)


def _shape(node: Node, text: str) -> str:
    if isinstance(node, Source | Sink):
        return f'(["{text}"])'
    if isinstance(node.operation, Stateful | Windowed):
        return f'[["{text}"]]'
    if isinstance(node.operation, KeyBy | Collect):
        return f'{{{{"{text}"}}}}'
    return f'["{text}"]'


def _text(label: Label) -> str:
    lines = [label.kind, f"<b>{_safe(label.name)}</b>", _safe(label.detail)]
    return "<br>".join(line for line in lines if line)


def _safe(text: str) -> str:
    """Return `text` with the characters that are markup in Mermaid or HTML as entity codes."""
    return _UNSAFE.sub(lambda match: f"#{ord(match[0])};", escaped(text))
