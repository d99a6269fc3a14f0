"""Messages and outputs in columns: the messages on their way to one step, the outputs of one sink.

An object for each message would cost more, to make and to pickle, than all other work on the
message. So a *run* holds lists of equal length, and when it is pickled its lineages are one array
of numbers. A run is in order of lineage: a flow processes messages in that order, depth first, and
appends their results. Several runs have to be merged, because Spark keeps no order among rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, pairwise, repeat
from operator import itemgetter
from typing import Any

from wallaroo.trace import Lineage

Arrival = tuple[Lineage, int, bytes, Any]
"""(lineage, the state step's node, encoded key, frozen message)."""


@dataclass(slots=True)
class Messages:
    """Messages on their way to one state step.

    Args:
        node: the state step's index in the topology.
        lineages: the messages' lineages.
        keys: the encoded keys that the partition function returned.
        messages: frozen (`wallaroo_spark.worker.portable`).
    """

    node: int
    lineages: list[Lineage] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)

    def __reduce__(self) -> tuple[Any, ...]:
        return _messages, (self.node, *_packed(self.lineages), self.keys, self.messages)


@dataclass(slots=True)
class Outputs:
    """Encoded outputs of one sink.

    Args:
        node: the sink's index in the topology.
        lineages: the lineages of the outputs' messages.
        outputs: encoded.
    """

    node: int
    lineages: list[Lineage] = field(default_factory=list)
    outputs: list[bytes] = field(default_factory=list)

    def __reduce__(self) -> tuple[Any, ...]:
        return _outputs, (self.node, *_packed(self.lineages), self.outputs)


def arrivals(runs: Iterable[Messages]) -> list[Arrival]:
    """Return the messages of all runs in the order in which an entity meets them (order-1)."""
    ordered = sorted([run for run in runs if run.lineages], key=_first)
    found = list(
        chain.from_iterable(
            [zip(run.lineages, repeat(run.node), run.keys, run.messages) for run in ordered]
        )
    )
    if _overlap(ordered):
        # Nodes stand in topological order: an index orders the steps of one pipeline.
        found.sort(key=itemgetter(0, 1))
    return found


def outputs_in_order(runs: Iterable[Outputs]) -> list[tuple[Lineage, bytes]]:
    """Return one sink's outputs from all runs, in their order (order-1), with their lineages."""
    ordered = sorted([run for run in runs if run.lineages], key=_first)
    found = list(
        chain.from_iterable([zip(run.lineages, run.outputs, strict=True) for run in ordered])
    )
    if _overlap(ordered):
        found.sort(key=itemgetter(0))
    return found


def _first(run: Messages | Outputs) -> Lineage:
    return run.lineages[0]


def _overlap(ordered: list[Any]) -> bool:
    return any(one.lineages[-1] >= other.lineages[0] for one, other in pairwise(ordered))


def _packed(lineages: list[Lineage]) -> tuple[int, array[int]]:
    """Return lineages as one array, and how many numbers each lineage has.

    All have the same number, since a node's messages have gone through the same multi steps.
    """
    return len(lineages[0]) if lineages else 1, array("q", chain.from_iterable(lineages))


def _unpacked(width: int, numbers: array[int]) -> list[Lineage]:
    return list(zip(*[iter(numbers)] * width, strict=True))


def _messages(
    node: int, width: int, numbers: array[int], keys: list[bytes], messages: list[Any]
) -> Messages:
    return Messages(node, _unpacked(width, numbers), keys, messages)


def _outputs(node: int, width: int, numbers: array[int], outputs: list[bytes]) -> Outputs:
    return Outputs(node, _unpacked(width, numbers), outputs)
