"""What an operator sends: messages for other shards, and finished results for the driver.

It consists of plain values, so workers and the driver can read it without the application's
modules.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from wallaroo.trace import lineage_order
from wallaroo.user_code.failure import Failure
from wallaroo_spark.wire.columns import Messages, Outputs
from wallaroo_spark.wire.lineages import Fired, Lineage, Turn

Order = tuple[Lineage, int, int]
"""The order of calls: what a lineage is sorted by, the node, the sink's index or -1.

Nodes stand in topological order, so a message of one lineage meets them in order of their indices;
positions in pipelines are not such an order, since a merge leads from one pipeline into another.
"""

NO_SINK = -1


def order_of(lineage: Lineage, node: int, sink: int = NO_SINK) -> Order:
    """Return the place of a call in that order: a message of that lineage at a node."""
    return lineage_order(lineage), node, sink


class Letter(NamedTuple):
    """A dead letter without its record's source and payload, which the driver adds.

    `given`: it has no payload, since a window gave the message.
    """

    lineage: Lineage
    node: int
    sink: int
    given: bool
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
        return order_of(self.lineage, self.node, self.sink)


class End(NamedTuple):
    """A call at which the run ends (dead-3, dead-4)."""

    order: Order
    kind: str
    pipeline: str
    step: str | None
    error_type: str | None

    @property
    def lineage(self) -> Lineage:
        """The lineage of the call's message."""
        return self.order[0][:-1]  # without the number that `lineage_order` appends


def just_before(order: Order) -> Order:
    """Return a limit that allows all calls before `order`, but not `order` itself."""
    lineage, node, sink = order
    return lineage, node, sink - 1


@dataclass
class Finished:
    """The finished results of one case, for the driver.

    Args:
        outputs: runs of outputs, each of one sink.
        letters: dead letters.
        ends: calls at which the run ends; the first in order is the one that counts.
        late: numbers of late messages by (step, what became of them), see `wallaroo.trace.Trace`.
        fired: the windows that fired in their steps' turns, for `wire.lineages.numbering`.
    """

    outputs: list[Outputs] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    late: Counter[tuple[str, str]] = field(default_factory=Counter)
    fired: dict[Turn, list[Fired]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        outputs = any(run.lineages for run in self.outputs)
        return bool(self.letters or self.ends or self.late or self.fired or outputs)

    def add(self, other: Finished) -> None:
        """Add the results of another part."""
        self.outputs += [run for run in other.outputs if run.lineages]
        self.letters += other.letters
        self.ends += other.ends
        self.late += other.late
        for turn, windows in other.fired.items():
            self.fired.setdefault(turn, []).extend(windows)


@dataclass
class Outbox:
    """What an operator sends: runs of messages by (component, partition number), and results."""

    messages: list[tuple[int, int, Messages]] = field(default_factory=list)
    finished: Finished = field(default_factory=Finished)
