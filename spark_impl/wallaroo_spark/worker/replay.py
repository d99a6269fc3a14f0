"""Messages and time together: what a shard that holds windows does in a batch (time-4).

Within a record, a window step has its turn behind all that earlier window steps have given, and
before all else. Lineages say so: what the turn gives begins with the record's sequence and the
step's negative number. So the shard takes the messages that have come to it up to there, moves the
step's watermark on, and lets it fire.
"""

from __future__ import annotations

import pickle
from bisect import bisect_left

from wallaroo.trace import Lineage, lineage_order
from wallaroo_spark.wire.columns import Arrival
from wallaroo_spark.wire.job import Held
from wallaroo_spark.wire.tracks import Moment
from wallaroo_spark.worker.flow import Flow
from wallaroo_spark.worker.plan import Component
from wallaroo_spark.worker.program import Program
from wallaroo_spark.worker.segments import Entities
from wallaroo_spark.worker.states import entity_id
from wallaroo_spark.worker.watermarks import Watermarks

_CLOCK = b"clock"
"""What the id of a component's watermarks ends with, behind its first window step's prefix."""


def replay(
    flow: Flow,
    program: Program,
    component: Component,
    entities: Entities,
    arrivals: list[Arrival],
    moments: list[Moment],
) -> Held:
    """Take messages and moments through a component with windows, in order, and store it.

    Args:
        flow: holds the component.
        program: the application.
        component: the component.
        entities: its entities and windows; also the watermarks, from one batch to the next.
        arrivals: the messages, in order.
        moments: what the batch's records say about time, in order.

    Returns:
        What it holds now.

    Raises:
        NeedsIsolation: some entities cannot be pickled.
    """
    application = program.application
    steps = application.window_steps
    held = [(number - len(steps), i) for number, i in enumerate(steps) if i in component.windows]
    clock = entity_id(component, component.windows[0], _CLOCK)
    blob = entities.get(clock)
    known, reached = (None, {}) if blob is None else pickle.loads(blob)  # noqa: S301 - ours
    watermarks = Watermarks(application, known)
    for _, index in held:
        windows = flow.windows_at(index)
        windows.watermark = reached.get(index, windows.watermark)
    orders = [lineage_order(arrival[0]) for arrival in arrivals]
    done = 0

    def take_up_to(order: Lineage) -> None:
        nonlocal done
        end = bisect_left(orders, order, done)
        if end > done:
            flow.visit(arrivals[done:end])
            done = end

    for moment in moments:
        take_up_to((moment.sequence, held[0][0]))
        watermarks.move(moment)
        for number, index in held:
            turn = (moment.sequence, number)
            take_up_to(turn)
            watermark = watermarks.of(application.ways[index])
            flow.turn(index, watermark, turn, watermarks.now)
    flow.visit(arrivals[done:])
    reached = {index: flow.windows_at(index).watermark for _, index in held}
    entities.put(clock, pickle.dumps((watermarks.known, reached), 5))
    steps_held = [flow.windows_at(index) for _, index in held]
    times = [due for step in steps_held if (due := step.next_due(watermarks)) is not None]
    flow.flush()
    return Held(
        min(times, default=None),
        sum([step.open for step in steps_held]),
        entities.count - 1 - sum([step.entries for step in steps_held]),
    )
