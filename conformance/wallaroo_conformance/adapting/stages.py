"""An application as operators of another engine: one for each node, one for each state partition.

Most engines keep an operator's state to itself. So steps that share a state partition (state-8)
have to be one operator there. An application in which this makes a cycle cannot be run.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from wallaroo.errors import UnsupportedTopology
from wallaroo.operations import Operation, Stateful, Windowed
from wallaroo.topology import Application, Node, Source, Step


def has_operation(node: Node, *kinds: type[Operation]) -> bool:
    """Whether a node is a step with one of these kinds of operations."""
    return isinstance(node, Step) and isinstance(node.operation, kinds)


def layers(application: Application) -> dict[str, int]:
    """Return for each state partition how many there are on the way to it, itself among them.

    So an engine can have one operator for all state partitions of a layer.

    Raises:
        UnsupportedTopology: see `stages`.
    """
    nodes = application.nodes
    layer_of: dict[str, int] = {}
    reached = {index: 0 for index, node in enumerate(nodes) if isinstance(node, Source)}
    for group in stages(application):
        behind = [node for index in group if not isinstance(node := nodes[index], Source)]
        layer = max(reached[origin] for node in behind for origin in node.inputs)
        first = behind[0]
        if isinstance(first, Step) and isinstance(first.operation, Stateful):
            layer += 1
            layer_of[first.operation.partition] = layer
        reached.update(dict.fromkeys(group, layer))
    return layer_of


def stages(application: Application) -> list[tuple[int, ...]]:
    """Return the indices of the nodes behind the sources, in an order in which data can flow.

    Steps over one state partition stand together in one tuple; every other node is alone.

    Raises:
        UnsupportedTopology: a message would meet a state partition twice, or two state partitions
            feed each other.
    """
    groups: dict[object, list[int]] = {}
    sorter = TopologicalSorter[object]()
    group_of = _group_of(application)
    for index, node in enumerate(application.nodes):
        groups.setdefault(group_of[index], []).append(index)
        origins = () if isinstance(node, Source) else node.inputs
        sorter.add(group_of[index], *[group_of[origin] for origin in origins])
    try:
        order = [tuple(groups[name]) for name in sorter.static_order()]
    except CycleError as error:
        names = [name for name in error.args[1] if isinstance(name, str)]
        reason = "an operator cannot get its own messages"
        raise UnsupportedTopology("state-8", names[0], reason) from None
    return [group for group in order if not isinstance(application.nodes[group[0]], Source)]


def refuse_branches_that_meet(application: Application, engine: str) -> None:
    """Refuse branches that bring one message to a state or a window twice (build-2).

    An adapter calls this if its engine takes all that comes over one branch before what comes over
    another: where a message became several, the state would see them in another order (order-2).

    Args:
        application: what is to be run.
        engine: who refuses, for the error.

    Raises:
        UnsupportedTopology: there are two ways from a node to one state partition or window.
    """
    nodes = application.nodes
    group_of = _group_of(application)
    for index, node in enumerate(nodes):
        if not (isinstance(node, Step) and has_operation(node, Stateful, Windowed)):
            continue
        # Consumers stand behind what they consume, so each is known before it is asked for.
        reaching: set[int] = set()
        for origin in reversed(range(len(nodes))):
            ways = [
                consumer
                for consumer in application.consumers[origin]
                if consumer in reaching or group_of[consumer] == group_of[index]
            ]
            if len(ways) > 1:
                reason = f"{engine} takes one of the branches before the other"
                raise UnsupportedTopology("order-2", node.name, reason)
            if ways:
                reaching.add(origin)


def _group_of(application: Application) -> dict[int, object]:
    """Return for each node the state partition of its step, or the node's own index."""
    return {
        index: node.operation.partition
        if isinstance(node, Step) and isinstance(node.operation, Stateful)
        else index
        for index, node in enumerate(application.nodes)
    }
