"""When a served run makes a checkpoint, and how it gets to the disk.

1. The machine's cells are packed in slices, and it goes on between them. The last slice decides the
   checkpoint's *position*: the number of the next record.
2. It waits until all outputs of the records before the position are delivered. So a restart, which
   processes the records from the position on again, repeats only later outputs (recover-2).
3. In a thread, the log is synced up to the position, then the file is written in one transaction,
   then the records before the position are dropped from the log.

If the file cannot be written, because the disk is full or read-only, the same is tried again, and
the log grows meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wallaroo.errors import WallarooError
from wallaroo.topology import SinkId
from wallaroo.transport.edges import Edges
from wallaroo.transport.input_log import InputLogError
from wallaroo.transport.kafka.edges import KafkaEdges
from wallaroo.transport.logged import LoggedSource
from wallaroo.transport.resumption import Stream
from wallaroo.transport.threads import JobThread
from wallaroo_reference.cells import Moment
from wallaroo_reference.checkpoints.collecting import Collector, Packed, PackError, blobs_of
from wallaroo_reference.checkpoints.head import CellsHead, Head
from wallaroo_reference.checkpoints.recovery import Recovery
from wallaroo_reference.machine import Machine
from wallaroo_reference.serving.feeder import Feeder
from wallaroo_reference.serving.outbox import Outbox

_SLICE = 0.002  # seconds of packing between two turns of the machine
_LOOK = 0.01  # seconds between looks whether outputs are delivered
_RETRY = 0.5  # seconds between attempts to write the file

_log = logging.getLogger("wallaroo.reference")


@dataclass(frozen=True)
class _Made:
    """A checkpoint that is not stored yet."""

    moment: Moment
    counts: list[int]
    packed: list[Packed]
    outputs: dict[SinkId, int]
    stream_ends: dict[SinkId, int]
    logged: dict[str, LoggedSource]


class Checkpoints:
    """Makes checkpoints of a machine. Call its methods in the loop's thread.

    Args:
        recovery: the open checkpoint.
        machine: the machine, which has been restored.
        feeder: knows what the log says of sources.
        kafka: knows what sinks have found.
        outbox: knows what is delivered.
        edges: the run's; dead letters are on disk too before a checkpoint is.
        thread: writes.
        interval: seconds from one checkpoint to the next.
        clock: returns the time, in nanoseconds since 1970.
        failed: called with an error's text if checkpoints cannot be made any more.

    Attributes:
        stored: number of checkpoints stored in this run.
        written: when the last one was, in this run or before, in seconds since 1970; `None`: never.
    """

    def __init__(
        self,
        recovery: Recovery,
        machine: Machine,
        feeder: Feeder,
        kafka: KafkaEdges,
        outbox: Outbox,
        edges: Edges,
        thread: JobThread,
        *,
        interval: float,
        clock: Callable[[], int],
        failed: Callable[[str], None],
    ) -> None:
        self.stored = 0
        self.written = None if recovery.head is None else recovery.head.at / 1e9
        self._recovery = recovery
        self._machine = machine
        self._feeder = feeder
        self._kafka = kafka
        self._outbox = outbox
        self._edges = edges
        self._thread = thread
        self._interval = interval
        self._clock = clock
        self._failed = failed
        self._when_stored: Callable[[], None] = lambda: None
        head = recovery.head
        self._position = recovery.position
        self._outputs_before = {} if head is None else dict(head.sinks)
        self._topics_before = {} if head is None else dict(head.topics)
        self._ends_before = edges.stream_ends()
        self._next_blob = 0 if head is None else head.next_blob
        self._collector = Collector(machine.cells(), recovery.first_blob, self._next_blob)
        self._timer: asyncio.TimerHandle | None = None
        self._busy = False
        self._hurry = False  # a stop waits for the last one
        self._in_trouble = False
        self._over = False

    def start(self) -> None:
        """Make the first one after the interval, in the running loop.

        If there are Kafka sinks, a new checkpoint has one before anything is processed: how many
        partitions a topic has counts from the first start on (kafka-13).
        """
        if self._kafka.partitions and self._recovery.head is None:
            self._collector.begin()
            self._collector.go_on(math.inf)
            packed = self._collector.finish(self._next_blob)
            try:
                self._next_blob = self._write(self._made(packed), {})
            except (sqlite3.Error, OSError, WallarooError) as error:
                self._failed(f"the first checkpoint cannot be stored: {error}")
        self._later(self._interval, self._begin)

    def when_stored(self, call: Callable[[], None]) -> None:
        """Have `call` called when one is stored, and the log has dropped the records before it."""
        self._when_stored = call

    def soon(self) -> None:
        """Make one now, unless one is being made: the log is full."""
        self._begin()

    async def last(self) -> None:
        """Make one of all that was processed, and return once it is stored."""
        self._hurry = True
        while not self._over and (self._busy or self._position != self._machine.sequence):
            self.soon()
            await asyncio.sleep(_LOOK)

    def abandon(self) -> None:
        """Make no more."""
        self._over = True
        if self._timer is not None:
            self._timer.cancel()

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, call)

    def _begin(self) -> None:
        if self._over or self._busy or self._machine.ended is not None:
            return
        if self._machine.sequence == self._position:
            if self._recovery.log.full:
                # The run before, or an attempt of this one, stored this position and then did not
                # drop the records from the log. Nothing is read before that, so the position will
                # not change.
                self._thread.submit(lambda: self._drop_before(self._position), self._dropped)
            self._later(self._interval, self._begin)
            return
        self._busy = True
        self._collector.begin()
        self._slice()

    def _dropped(self, done: Exception | None) -> None:
        if not isinstance(done, Exception):
            self._when_stored()
        elif not self._over:
            self._over = True
            self._failed(str(done))

    def _slice(self) -> None:
        # After a restart the record that ended the run is processed again, with the state before it
        # (dead-4).
        if self._over or self._machine.ended is not None:
            return
        try:
            if not self._collector.go_on(math.inf if self._hurry else _SLICE):
                asyncio.get_running_loop().call_soon(self._slice)
                return
            packed = self._collector.finish(self._next_blob)
        except PackError as error:
            self._over = True
            self._failed(str(error))
            return
        self._wait_for_sinks(self._made(packed))

    def _made(self, packed: list[Packed]) -> _Made:
        moment = self._machine.moment()
        made = self._outbox.made_bytes()
        return _Made(
            moment,
            [cells.count() for cells in self._machine.cells()],
            packed,
            self._outbox.made(),
            {id_: before + made[id_] for id_, before in self._ends_before.items()},
            dict(self._feeder.logged),
        )

    def _wait_for_sinks(self, made: _Made) -> None:
        if self._over:
            return
        if self._outbox.delivered(made.moment.sequence, made.outputs):
            self._submit(made)
        else:
            self._later(_LOOK, lambda: self._wait_for_sinks(made))

    def _submit(self, made: _Made) -> None:
        if not self._over:
            streams = self._edges.streams(made.stream_ends)
            self._thread.submit(
                lambda: self._write(made, streams), lambda done: self._wrote(made, done)
            )

    def _wrote(self, made: _Made, done: int | Exception) -> None:
        if self._over:
            return
        if isinstance(done, (sqlite3.OperationalError, OSError)):
            if not self._in_trouble:
                self._in_trouble = True
                _log.error(
                    "the checkpoint's file %s cannot be written: %s; it is tried again, and the "
                    "input log grows meanwhile",
                    self._recovery.store.path,
                    done,
                )
            self._later(_RETRY, lambda: self._submit(made))
            return
        if isinstance(done, Exception):
            self._over = True
            self._failed(f"the checkpoint cannot be written: {type(done).__name__}: {done}")
            return
        if self._in_trouble:
            self._in_trouble = False
            _log.warning("the checkpoint's file %s is written again", self._recovery.store.path)
        self.stored += 1
        self.written = self._clock() / 1e9
        self._next_blob = done
        self._position = made.moment.sequence
        self._busy = False
        self._later(self._interval, self._begin)
        self._when_stored()

    # -- in the job thread -----------------------------------------------------------------------

    def _write(self, made: _Made, streams: Mapping[SinkId, Stream]) -> int:
        """Store a checkpoint and shorten the log; return the number of the next blob."""
        recovery = self._recovery
        blobs = blobs_of(self._machine.cells(), made.packed)
        sinks = dict(self._outputs_before)  # also of those that the application has no more
        for sink, count in made.outputs.items():
            sinks[sink] = sinks.get(sink, 0) + count
        kinds = [
            CellsHead(cells.kind, cells.name, count, cells.shape)
            for cells, count in zip(self._machine.cells(), made.counts, strict=True)
        ]
        head = Head(
            at=self._clock(),
            moment=made.moment,
            cells=kinds,
            sinks=sinks,
            logged=made.logged,
            topics=self._topics_before | self._kafka.partitions,
            streams=streams,
            first_blob=self._collector.first_blob,
            next_blob=self._next_blob + len(blobs),
        )
        position = made.moment.sequence
        # In this order: a checkpoint must not contain the effect of a record that the log may lose.
        if recovery.log.durable_sequence < position:
            recovery.log.sync()
        self._edges.dead_letters.sync()
        recovery.store.write(head, blobs)
        self._drop_before(position)
        return head.next_blob

    def _drop_before(self, position: int) -> None:
        """Drop the records before a stored position from the log.

        Raises:
            InputLogError: the log does nothing more.
        """
        try:
            self._recovery.log.drop_before(position)
        except InputLogError as error:
            if self._recovery.log.broken:
                raise
            _log.warning("%s; it is tried again at the next checkpoint", error)
