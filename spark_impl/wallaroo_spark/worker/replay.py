"""Messages and time together: what a shard that holds windows does in a batch (time-4).

Within a record, a window step has its turn after everything that earlier window steps gave, and
before everything else. The lineages are made for this: those of the turn's messages begin with the
record's sequence and the step's negative number. So the shard takes its messages up to that
lineage, moves the step's watermark on, and lets it fire.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

from wallaroo.copying import PROTOCOL
from wallaroo.topology import Application
from wallaroo.trace import lineage_order
from wallaroo.windowing.watermarks import SourceTime, Watermarks
from wallaroo_spark.wire.job import Held, Moment, What
from wallaroo_spark.wire.outbox import Arrival
from wallaroo_spark.worker.flow import Flow
from wallaroo_spark.worker.plan import StateGroup
from wallaroo_spark.worker.program import Program
from wallaroo_spark.worker.segments import Entities
from wallaroo_spark.worker.states import entity_id
from wallaroo_spark.worker.stored import Stored, unpacked

CLOCK = b"clock"
"""The end of the id of a group's watermarks, after the prefix of its first window step."""


class ReplayedTime(Watermarks):
    """The time of an application, moment by moment.

    Args:
        application: the application.
        known: what `known` was when the last batch ended; `None`: nothing is known yet.
    """

    def __init__(self, application: Application, earlier: Any = None) -> None:
        times = {name: SourceTime(source) for name, source in application.sources.items()}
        super().__init__(times)
        self._numbered = list(times.values())
        if earlier is not None:
            self.now, self.first, of_sources = earlier
            for source, values in zip(self._numbered, of_sources, strict=True):
                source.greatest, source.last_frame, source.ended = values

    @property
    def known(self) -> Any:
        """What the next batch must know."""
        of_sources = [
            (source.greatest, source.last_frame, source.ended) for source in self._numbered
        ]
        return self.now, self.first, of_sources

    def move(self, at: int, what: int, source: int, time: int) -> None:
        """Note a record: its arrival time, what it is, its source, its event time."""
        self.now = at
        if self.first is None:
            self.first = at
        moved = self._numbered[source]
        if what == What.MESSAGE:
            moved.last_frame = at
            moved.greatest = max(moved.greatest, time)
        elif what == What.END:
            moved.ended = True


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
        NeedsIsolation: some entities cannot be pickled.
    """
    application = program.application
    turns = application.window_steps
    clock = entity_id(group, group.windows[0], CLOCK)
    blob = entities.get(clock)
    earlier, reached = None, {}
    if blob is not None:
        earlier, reached = pickle.loads(unpacked(blob).state)  # noqa: S301 - ours
    watermarks = ReplayedTime(application, earlier)
    held = {index: flow.windows_at(index) for index in turns if index in group.windows}
    for index, step in held.items():
        step.watermark = reached.get(index, step.watermark)
    numbered = [
        (number - len(turns), index, held[index], application.ways[index])
        for number, index in enumerate(turns)
        if index in held
    ]

    def between_turns() -> Iterator[Arrival]:
        """Yield the messages; when those before a step's turn have been taken, it has its turn."""
        rest = iter(arrivals)
        arrival = next(rest, None)
        for sequence, at, what, source, time in moments:
            watermarks.move(at, what, source, time)
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
    reached = {index: step.watermark for index, step in held.items()}
    stored = Stored(pickle.dumps((watermarks.known, reached), PROTOCOL))
    entities.put(clock, stored.packed())
    steps = list(held.values())
    times = [due for step in steps if (due := step.next_due(watermarks)) is not None]
    flow.flush()
    return Held(
        entities.count - 1 - sum([step.entries for step in steps]),
        sum([step.open for step in steps]),
        min(times, default=None),
    )
