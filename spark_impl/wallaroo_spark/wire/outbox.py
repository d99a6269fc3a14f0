"""What an operator sends: messages for other shards, and finished results for the driver.

It consists of plain values, so workers and the driver can read it without the application's
modules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from wallaroo.failure import Failure
from wallaroo.trace import Lineage
from wallaroo_spark.wire.columns import Messages, Outputs

Order = tuple[Lineage, int, int]
"""Lineage, the step's position, the sink's index or -1: the order in which calls are made."""

NO_SINK = -1


class Letter(NamedTuple):
    """A dead letter without its frame's source and payload, which the driver adds."""

    lineage: Lineage
    position: int
    sink: int
    pipeline: str
    step: str | None
    key: bytes | None
    reason: str
    error_type: str | None
    error: str
    failure: Failure

    @property
    def order(self) -> Order:
        """Its position in the order of calls."""
        return (self.lineage, self.position, self.sink)


class End(NamedTuple):
    """A call at which the run ends (dead-3, dead-4)."""

    order: Order
    kind: str
    pipeline: str
    step: str | None
    error_type: str | None


def just_before(order: Order) -> Order:
    """Return a limit that allows all calls before `order`, but not `order` itself."""
    lineage, position, sink = order
    return lineage, position, sink - 1


@dataclass
class Finished:
    """The finished results of one case, for the driver.

    Args:
        outputs: runs of outputs, each of one sink.
        letters: dead letters.
        ends: calls at which the run ends; the first in order is the one that counts.
    """

    outputs: list[Outputs] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.letters or self.ends or any(run.lineages for run in self.outputs))

    def add(self, other: Finished) -> None:
        """Add the results of another part."""
        self.outputs += [run for run in other.outputs if run.lineages]
        self.letters += other.letters
        self.ends += other.ends


@dataclass
class Outbox:
    """What an operator sends: runs of messages by (component, partition number), and results."""

    messages: list[tuple[int, int, Messages]] = field(default_factory=list)
    finished: Finished = field(default_factory=Finished)
