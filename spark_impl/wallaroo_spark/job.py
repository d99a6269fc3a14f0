"""What workers need to know of a job: its cases, where their state is held, how rows travel.

Spark sees rows of three columns: ``shard``, ``level`` and ``block``. A block is a pickled batch of
what travels together; a shard is a group of Spark's stateful operator. Each block is for one level:

- a stateful operator's, 0 and up: ``{address: [event, …]}``; or nothing, which asks for the
  entities the shard holds;
- `FINISHED`: a `Report` for the driver, which operators pass on unopened.

A job is pickled once and unpickled once in each worker process.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wallaroo_spark.outbox import Event, Finished, Order
from wallaroo_spark.plan import Plan, plan
from wallaroo_spark.segments import SEGMENT_BYTES, Address
from wallaroo_spark.shards import shard_ids
from wallaroo_spark.shipping import Shipment

ROW_SCHEMA = "shard int, level int, block binary"

FINISHED = 1 << 20
"""The level of what is ready for the driver."""

HEAD = -1
"""The level of frames."""


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
        segment_bytes: see `wallaroo_spark.segments.SEGMENT_BYTES`.
    """

    application: bytes
    partitions: int
    isolated: bool
    stop_on_error: bool = False
    limit: Order | None = None
    segment_bytes: int = SEGMENT_BYTES

    @functools.cached_property
    def plan(self) -> Plan:
        """The application's plan."""
        return _plan_of(self.application)


@dataclass(frozen=True)
class Job:
    """The cases of a job.

    Args:
        shards: number of groups of each operator.
        shipment: how workers find the applications' modules.
        cases: by number.
    """

    shards: int
    shipment: Shipment
    cases: tuple[CaseSpec, ...]

    def shard(self, address: Address) -> int:
        """Return the id of the shard that holds an address.

        One application's partitions go to one shard each; cases are spread.
        """
        number = address.number + 31 * address.component + 7919 * address.case
        return shard_ids(self.shards)[number % self.shards]


@dataclass
class Report:
    """What reaches the driver.

    Args:
        finished: by case.
        printed: (step, line) of what user code printed.
        entities: (case, state partition, encoded key, partition number, structure), where asked.
        counts: number of entities by address, of those that had messages.
        span: the first sequence of a micro-batch and the one after its last, from its source.
    """

    finished: dict[int, Finished] = field(default_factory=dict)
    printed: list[tuple[str, str]] = field(default_factory=list)
    entities: list[tuple[int, str, bytes, int, Any]] = field(default_factory=list)
    counts: dict[Address, int] = field(default_factory=dict)
    span: tuple[int, int] | None = None

    def __bool__(self) -> bool:
        return bool(self.finished or self.printed or self.entities or self.counts or self.span)


Events = Mapping[Address, list[Event]]
Frames = list[tuple[int, str, int, list[bytes]]]
"""(case, source, sequence of the first, payloads): frames that follow each other."""


def pack(value: Any) -> bytes:
    """Return a block."""
    return pickle.dumps(value, 5)


def unpack(block: bytes) -> Any:
    """Return what a block holds."""
    return pickle.loads(block)  # noqa: S301 - made by `pack` in this job


@functools.lru_cache(maxsize=4)
def load_job(blob: bytes) -> Job:
    """Return a pickled job, with its modules made importable; once a process."""
    job: Job = pickle.loads(blob)  # noqa: S301 - the driver's, over Spark's own channel
    job.shipment.unpack()
    return job


@functools.lru_cache(maxsize=1024)
def _plan_of(application: bytes) -> Plan:
    return plan(pickle.loads(application))  # noqa: S301 - as above
