"""What travels between operators.

Spark sees rows of three columns: ``shard``, ``level`` and ``block``. A shard is a group of Spark's
stateful operator; a block is a pickled batch of what travels together. Each is for one level:

- a stateful operator's, 0 and up: a `LevelBlock`; or nothing, which asks for the entities the shard
  holds and ends them;
- `FINISHED`: a `Report` for the driver, which operators pass on unopened.

A block brings the cases it speaks of, applications and all: a few KB beside its messages. So an
operator knows nothing of the cases that pass through it, and one running query serves any.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from wallaroo.engine import TaskFault
from wallaroo_spark.wire.columns import Messages
from wallaroo_spark.wire.outbox import Finished, Order
from wallaroo_spark.wire.shards import Address

ROW_SCHEMA = "shard int, level int, block binary"

FINISHED = 1 << 20
"""The level of what is ready for the driver."""

HEAD = -1
"""The level of frames."""

SEGMENT_BYTES = 6 * 1024
"""Bytes of entities that a segment holds on average before another one is added."""


class Row(NamedTuple):
    """A row as it travels."""

    shard: int
    level: int
    block: bytes | None


@dataclass(frozen=True)
class CaseSpec:
    """One case as a worker needs it.

    Args:
        application: pickled.
        partitions: number of partitions of each component that is not fused, and the one that the
            entities' numbers are of.
        isolated: the mode.
        stop_on_error: a dead letter ends the run (dead-4).
        limit: calls after this one in order are not made.
        segment_bytes: see `SEGMENT_BYTES`.
        monitor: where to report calls (host and port of a `live.call_monitor`); `None`: nowhere.
        faults: of the micro-batch it goes with (`worker.faults`).
    """

    application: bytes
    partitions: int
    isolated: bool
    stop_on_error: bool = False
    limit: Order | None = None
    segment_bytes: int = SEGMENT_BYTES
    monitor: tuple[str, int] | None = None
    faults: tuple[TaskFault, ...] = ()

    def in_batch(self, number: int) -> CaseSpec:
        """Return it as it goes with one micro-batch."""
        if not self.faults:
            return self
        return replace(self, faults=tuple([one for one in self.faults if one.batch == number]))


Specs = dict[int, CaseSpec]

Frames = list[tuple[int, str, int, list[bytes]]]
"""(case, source, sequence of the first, payloads): frames that follow each other."""


class HeadBlock(NamedTuple):
    """Input for one task.

    Args:
        cases: the cases of which there are frames, or of which entities are asked for.
        frames: the input.
        span: the offsets between which all input of the micro-batch lies; in one block of each.
        list_entities: report all entities once the micro-batch is done, and end them; in one block.
    """

    cases: Specs
    frames: Frames
    span: tuple[int, int] | None = None
    list_entities: bool = False


class LevelBlock(NamedTuple):
    """Messages for one shard: by address, in runs."""

    cases: Specs
    messages: dict[Address, list[Messages]]


@dataclass
class Report:
    """What reaches the driver.

    Args:
        finished: by case.
        printed: (step, line) of what user code printed.
        entities: (address, entity's id, pickled structure), where asked.
        counts: number of entities by address, of those that had messages.
        span: see `HeadBlock`.
    """

    finished: dict[int, Finished] = field(default_factory=dict)
    printed: list[tuple[str, str]] = field(default_factory=list)
    entities: list[tuple[Address, bytes, Any]] = field(default_factory=list)
    counts: dict[Address, int] = field(default_factory=dict)
    span: tuple[int, int] | None = None

    def __bool__(self) -> bool:
        return bool(self.finished or self.printed or self.entities or self.counts or self.span)

    @classmethod
    def merged(cls, reports: Iterable[Report]) -> Report:
        """Return everything that was reported as one report."""
        whole = cls()
        for report in reports:
            whole.add(report)
        return whole

    def add(self, other: Report) -> None:
        """Take in what was reported elsewhere, or later."""
        for case, finished in other.finished.items():
            self.finished.setdefault(case, Finished()).add(finished)
        self.printed += other.printed
        self.entities += other.entities
        self.counts.update(other.counts)
        self.span = other.span or self.span


def pack(value: Any) -> bytes:
    """Return a block."""
    return pickle.dumps(value, 5)


def unpack(block: bytes) -> Any:
    """Return what a block holds."""
    return pickle.loads(block)  # noqa: S301 - made by `pack`, and went through Spark's channels
