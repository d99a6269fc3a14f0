"""What can be computed from an application before any message: made once per process."""

from __future__ import annotations

import functools
import pickle
from dataclasses import dataclass

from wallaroo.operations import Stateful
from wallaroo.topology import Application, Node, Sink, Source, Step
from wallaroo_spark.wire.job import CaseSpec
from wallaroo_spark.wire.outbox import NO_SINK
from wallaroo_spark.worker.plan import Component, plan
from wallaroo_spark.worker.routing import Keys

_PROGRAMS = 1024  # applications a process remembers; a job of `run_many` has hundreds


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call is made; these are fields of dead letters.

    Args:
        pipeline: its pipeline.
        step: the computation's name; `None` for a decoder or an encoder.
        name: its name for people.
        position: the step's place in its pipeline, see `wallaroo.trace.DeadLetter`.
        sink: the sink's index, or `NO_SINK`.
    """

    pipeline: str
    step: str | None
    name: str
    position: int
    sink: int = NO_SINK


class Program:
    """An application, prepared to run.

    Args:
        application: the application.
        partitions: number of partitions of each component that is not fused.

    Attributes:
        plan: where its state is held.
        places: the place of each node.
        feeds_state: for each node, whether its messages go to a state step. Such messages are
            frozen when they are made, because the step's entities may be in another process.
        sources: the sources' nodes by name.
        keys: the keys of each state partition, by its name.
    """

    def __init__(self, application: Application, partitions: int) -> None:
        self.application = application
        self.plan = plan(application)
        nodes = application.nodes
        self.places = [_place(node, application.position(node)) for node in nodes]
        self.feeds_state = [
            any(_is_stateful(nodes[index]) for index in consumers)
            for consumers in application.consumers
        ]
        self.sources = {
            node.pipeline: index for index, node in enumerate(nodes) if isinstance(node, Source)
        }
        component = self.plan.component
        self.keys = {
            partition.name: Keys(partition, 1 if component[partition.name].fused else partitions)
            for partition in application.partitions
        }

    def component_of(self, step: Stateful) -> Component:
        """Return what holds a state step's entities."""
        return self.plan.component[step.partition]


def program_for(case: CaseSpec) -> Program:
    """Return the program of a case's application; made once per process."""
    return program_of(case.application, case.partitions)


@functools.lru_cache(maxsize=_PROGRAMS)
def program_of(application: bytes, partitions: int) -> Program:
    """Return the program of a pickled application; made once per process."""
    return Program(pickle.loads(application), partitions)  # noqa: S301 - the driver's, over Spark's own channels


def _place(node: Node, position: int) -> Place:
    if isinstance(node, Source):
        return Place(node.pipeline, None, node.name, position)
    if isinstance(node, Sink):
        return Place(node.pipeline, None, node.config.encoder.name, position, node.index)
    return Place(node.pipeline, node.name, node.name, position)


def _is_stateful(node: Node) -> bool:
    return isinstance(node, Step) and isinstance(node.operation, Stateful)
