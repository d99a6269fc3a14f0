"""Messages and time together: what a shard that holds windows does in a batch (time-4).

Within a record, a window step has its turn after everything that earlier window steps gave, and
before everything else. The lineages are made for this: those of the turn's messages begin with the
record's sequence and the step's negative number. So the shard takes its messages up to that
lineage, moves the step's watermark on, and lets it fire.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wallaroo.copying import PROTOCOL
from wallaroo.times import SourceMoment
from wallaroo.topology import Application
from wallaroo.trace import lineage_order
from wallaroo.windowing.watermarks import NO_TIME, PartitionedTime, Watermarks
from wallaroo_spark.wire.job import NO_PARTITION, Held, Moment, What
from wallaroo_spark.wire.outbox import Arrival
from wallaroo_spark.worker.flow import Flow
from wallaroo_spark.worker.plan import StateGroup
from wallaroo_spark.worker.program import Program
from wallaroo_spark.worker.segments import Entities
from wallaroo_spark.worker.states import entity_id
from wallaroo_spark.worker.stored import Stored, unpacked

CLOCK = b"clock"
"""The end of the id of a group's `Clock`, after the prefix of its first window step."""


class Clock(NamedTuple):
    """How far time has come in a group, as of the last batch.

    Args:
        now: the arrival time of the latest record.
        first: that of the log's first record; `None` before it.
        sources: the times of the sources, by name.
        reached: the watermarks of the group's window steps.
    """

    now: int
    first: int | None
    sources: Mapping[str, SourceMoment]
    reached: Sequence[float]

    def packed(self) -> bytes:
        """Return it as it is stored: of a source that has partitions, the times of these alone."""
        sources = {
            name: {number: _stored(part) for number, part in one.partitions.items()} or _stored(one)
            for name, one in self.sources.items()
        }
        form = self.now, self.first, sources, self.reached
        return Stored(pickle.dumps(form, PROTOCOL)).packed()


def clock_in(blob: bytes) -> Clock:
    """Return the clock that was stored."""
    now, first, sources, reached = pickle.loads(unpacked(blob).state)  # noqa: S301 - ours
    return Clock(now, first, {name: _moment(one) for name, one in sources.items()}, reached)


def _stored(one: SourceMoment) -> tuple[int, int | None, bool]:
    return NO_TIME if one.greatest is None else one.greatest, one.last_frame, one.ended


def _moment(form: Any) -> SourceMoment:
    if isinstance(form, dict):
        parts = {number: _moment(part) for number, part in form.items()}
        return SourceMoment(None, None, ended=False, partitions=parts)
    greatest, last_frame, ended = form
    return SourceMoment(None if greatest == NO_TIME else greatest, last_frame, ended)


class ReplayedTime(Watermarks):
    """The time of an application, moment by moment.

    Args:
        application: the application.
        earlier: how far it had come when the last batch ended; `None`: nothing is known yet.
    """

    def __init__(self, application: Application, earlier: Clock | None = None) -> None:
        super().__init__(application)
        self._numbered = list(self.sources.values())
        self._joining = False  # the partitions that are being assigned hold the watermark back
        if earlier is not None:
            self.go_on_from(earlier.now, earlier.first, earlier.sources)

    def clock(self, reached: Sequence[float]) -> Clock:
        """Return what the next batch must know.

        Args:
            reached: the watermarks of the group's window steps.
        """
        return Clock(self.now, self.first, self.moments(), reached)

    def move(
        self, at: int, what: int, source: int, time: int, partition: int = NO_PARTITION
    ) -> None:
        """Note what a record says about time; see `wallaroo_spark.wire.job.Moment`."""
        self.now = at
        if self.first is None:
            self.first = at
        moved = self._numbered[source]
        if what == What.TICK:
            return
        if partition != NO_PARTITION:
            assert isinstance(moved, PartitionedTime)
            if what == What.ASSIGNED:
                if time == 0:  # the first of a record's
                    self._joining = not moved.partitions
                if self._joining:
                    moved.of(partition)
                return
            moved = moved.of(partition)
        if what == What.MESSAGE:
            moved.last_frame = at
            moved.greatest = max(moved.greatest, time)
        elif what == What.END:
            moved.end()


def replay(
    flow: Flow,
    program: Program,
    group: StateGroup,
    entities: Entities,
    arrivals: list[Arrival],
    moments: list[Moment],
) -> Held:
    """Process messages and moments in a group with windows, in order, and store it.

    Args:
        flow: holds the group.
        program: the application.
        group: the group.
        entities: its entities and windows; also the watermarks, from one batch to the next.
        arrivals: the messages, in order.
        moments: what the batch's records say about time, in order.

    Returns:
        What the group holds now.

    Raises:
        NeedsIsolation: some entities do not survive pickling.
    """
    application = program.application
    turns = application.window_steps
    stored_as = entity_id(group, group.windows[0], CLOCK)
    blob = entities.get(stored_as)
    earlier = None if blob is None else clock_in(blob)
    watermarks = ReplayedTime(application, earlier)
    held = {index: flow.windows_at(index) for index in group.windows}
    if earlier is not None:
        for step, watermark in zip(held.values(), earlier.reached, strict=True):
            step.watermark = watermark
    numbered = [
        (number - len(turns), index, held[index], application.ways[index])
        for number, index in enumerate(turns)
        if index in held
    ]

    def between_turns() -> Iterator[Arrival]:
        """Yield the messages; when those before a step's turn have been taken, it has its turn."""
        rest = iter(arrivals)
        arrival = next(rest, None)
        for sequence, at, *moment in moments:
            watermarks.move(at, *moment)
            for number, index, step, ways in numbered:
                turn = (sequence, number)
                while arrival is not None and (
                    arrival[0][0] < sequence or lineage_order(arrival[0]) < turn
                ):
                    yield arrival
                    arrival = next(rest, None)
                if step.moves(watermarks.of(ways), at):
                    flow.turn(index, turn, at)
        if arrival is not None:
            yield arrival
            yield from rest

    flow.visit(between_turns())
    clock = watermarks.clock([step.watermark for step in held.values()])
    entities.put(stored_as, clock.packed())
    steps = list(held.values())
    times = [due for step in steps if (due := step.next_due(watermarks)) is not None]
    flow.flush()
    return Held(
        entities.count - 1 - sum([step.entries for step in steps]),
        sum([step.open for step in steps]),
        min(times, default=None),
    )
