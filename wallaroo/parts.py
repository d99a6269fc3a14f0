"""What an application uses of the rules' second part, for engines that run the first part only.

The second part are the rules whose ids begin with graph, key, time or window; the first part are
all others.
"""

from __future__ import annotations

from wallaroo.errors import UnsupportedTopology
from wallaroo.operations import Branch, Collect, KeyBy, Merge, Stateful, Stateless, Windowed
from wallaroo.topology import Application, Source, Step

_RULES = {
    Branch: "graph-2",
    Merge: "graph-3",
    KeyBy: "key-1",
    Collect: "key-2",
    Windowed: "window-1",
}


def second_part_of(application: Application) -> list[tuple[str, str]]:
    """Return (rule, step) for all that an application uses of graphs, keys, time and windows."""
    found: list[tuple[str, str]] = []
    for node in application.nodes:
        if isinstance(node, Step):
            operation = node.operation
            if isinstance(operation, Stateful):
                if not operation.computation.pair:
                    found.append(("key-3", node.name))
            elif not isinstance(operation, Stateless):
                found.append((_RULES[type(operation)], node.name))
        elif isinstance(node, Source):
            if node.config.decoder is None:
                found.append(("graph-4", node.pipeline))
            if node.config.event_time is not None:
                found.append(("time-2", node.pipeline))
    for partition in application.partitions:
        if partition.expire_after is not None:
            found.append(("key-4", partition.name))
    if application.codec is not None:
        found.append(("key-5", application.name))
    return found


def refuse_second_part(application: Application, engine: str) -> None:
    """Refuse an application that uses anything of the second part (build-2).

    Raises:
        UnsupportedTopology: it does; names the first rule and step.
    """
    for rule, step in second_part_of(application):
        raise UnsupportedTopology(
            rule, step, f"{engine} does not run this yet. Write: --engine reference"
        )
