"""What can be computed from an application before the first message: made once per process."""

from __future__ import annotations

import functools
import pickle
from typing import TYPE_CHECKING, NamedTuple

from wallaroo.copying import copies_by
from wallaroo.operations import Branch, Collect, KeyBy, Merge, Operation, Stateful, Windowed
from wallaroo.topology import Application, Node, Sink, Source, Step
from wallaroo_spark.wire.job import CaseSpec
from wallaroo_spark.wire.lineages import NO_SINK
from wallaroo_spark.worker.plan import plan
from wallaroo_spark.worker.routing import Keys

if TYPE_CHECKING:
    from wallaroo.metrics.probes import Probes

_PROGRAMS = 1024  # applications a process remembers; a job of `run_many` has hundreds


class Place(NamedTuple):
    """Where a call is made.

    Args:
        name: its name for people.
        node: its index in the topology.
        sink: the sink's index, or `NO_SINK`.
    """

    name: str
    node: int
    sink: int = NO_SINK


class Program:
    """An application, prepared to run.

    Args:
        application: the application.
        partitions: number of partitions of each group that is not fused.

    Attributes:
        plan: where its state is held.
        places: the place of each node.
        holder: the group that holds a step's entities or windows, by the step's node.
        feeds_state: for each node, whether its messages go to a step with entities or windows.
            Such messages are frozen when they are made, because these may be in another process.
        sources: the sources' nodes by name.
        keys: the keys at each step that finds keys or needs them, by its node.
        copies: how its values are copied.
        timed: whether messages carry their times.
        probes: note what is seen of the application, which is measured; `None`: it is not.
    """

    def __init__(self, application: Application, partitions: int) -> None:
        self.application = application
        self.plan = plan(application)
        nodes = application.nodes
        self.holder = self.plan.holder
        self.places = [_place(node, index) for index, node in enumerate(nodes)]
        self.feeds_state = self._feeds_state()
        self.copies = copies_by(application.codec)
        self.timed = application.time_decides
        self.probes: Probes | None = None
        self.sources = {
            node.pipeline: index for index, node in enumerate(nodes) if isinstance(node, Source)
        }
        of_partition = {
            partition.name: Keys(partition, self.plan.group[partition.name].divided(partitions))
            for partition in application.partitions
        }
        self.keys = {}
        for index, node in enumerate(nodes):
            operation = _operation(node)
            if isinstance(operation, Stateful):
                self.keys[index] = of_partition[operation.partition]
            elif isinstance(operation, Windowed):
                self.keys[index] = Keys(None, self.holder[index].divided(partitions))
            elif isinstance(operation, KeyBy):
                self.keys[index] = Keys(None, 1)

    def _feeds_state(self) -> list[bool]:
        nodes, consumers = self.application.nodes, self.application.consumers
        feeds = [False] * len(nodes)
        for index in reversed(range(len(nodes))):
            feeds[index] = any(
                consumer in self.holder
                or (feeds[consumer] and isinstance(_operation(nodes[consumer]), _PASSING_ON))
                for consumer in consumers[index]
            )
        return feeds


_PASSING_ON = (Branch, Collect, KeyBy, Merge)
"""Operations that pass messages on unchanged."""


_instead: Program | None = None


def run_instead(measured: Program | None) -> None:
    """Let a measured case run this program from now on; `None`: its own."""
    global _instead  # noqa: PLW0603 - a process runs one task at a time
    _instead = measured


def program_for(case: CaseSpec) -> Program:
    """Return the program of a case's application; made once per process."""
    if _instead is not None and case.measured:
        return _instead
    return program_of(case.application, case.partitions)


@functools.lru_cache(maxsize=_PROGRAMS)
def program_of(application: bytes, partitions: int) -> Program:
    """Return the program of a pickled application; made once per process."""
    return Program(pickle.loads(application), partitions)  # noqa: S301 - the driver's, over Spark's own channels


def _place(node: Node, index: int) -> Place:
    if isinstance(node, Sink):
        return Place(node.config.encoder.name, index, node.index)
    return Place(node.name, index)


def _operation(node: Node) -> Operation | None:
    return node.operation if isinstance(node, Step) else None
