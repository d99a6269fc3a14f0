"""An application's code, run from one state partition to the next.

A `Flow` takes records of the input log (`take`) or messages before a state step (`visit`). It
processes each, depth first, through stateless steps, through state steps whose entities it holds,
and into sinks. If a message needs an entity that another shard holds, the flow computes the key and
puts the message into the outbox. The work at each node is a function (`worker.nodes`), made when
the first message comes to the node.

In trusting mode a flow raises `NeedsIsolation` if the rules cannot be kept without copies (a state
computation failed and its entity may be half changed). The caller then processes the same messages
again in isolated mode.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from wallaroo.judging import DeadLetterError
from wallaroo.kafka import KafkaSourceConfig
from wallaroo.operations import Branch, Collect, KeyBy, Merge, Stateful, Windowed
from wallaroo.records import End
from wallaroo.topology import Sink, Source, Step
from wallaroo.trace import Reason
from wallaroo.windowing.watermarks import NO_TIME
from wallaroo_spark.wire.job import NO_PARTITION, What, WireKind, WireRun, unpack
from wallaroo_spark.wire.lineages import Lineage, Turn
from wallaroo_spark.wire.outbox import Arrival, Outbox, Times
from wallaroo_spark.worker import nodes
from wallaroo_spark.worker.calls import Calls, Made, RunEnded
from wallaroo_spark.worker.nodes import TakeItems, TakeMessage, VisitEntity
from wallaroo_spark.worker.plan import StateGroup
from wallaroo_spark.worker.sink_node import sink_node
from wallaroo_spark.worker.states import States, entity_id
from wallaroo_spark.worker.tracker import Tracker
from wallaroo_spark.worker.window_step import WindowStep

_WHAT = {WireKind.TICK: What.TICK, WireKind.END: What.END, WireKind.ASSIGNED: What.ASSIGNED}
_NOWHERE = (NO_PARTITION,)


class Flow:
    """Runs an application's code for one task; see the module's docstring.

    Args:
        calls: how user code is called.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._program = calls.program
        self._ended = False
        self._held: tuple[StateGroup, States] | None = None
        self._takes: dict[int, TakeMessage] = {}
        self._visits: dict[int, VisitEntity] = {}
        self._windows: dict[int, WindowStep] = {}
        self._sources = frozenset(calls.program.sources.values())
        self._time = NO_TIME  # the event time of the record that is processed
        application = calls.program.application
        self.tracker = Tracker(application) if application.window_steps else None

    @property
    def outbox(self) -> Outbox:
        """The results so far."""
        return self._calls.outbox

    def hold(self, group: StateGroup, states: States) -> None:
        """Hold a group's entities: its state steps run here from now on."""
        self._held = (group, states)

    def take(self, run: WireRun) -> None:
        """Process consecutive records of the input log."""
        calls, what = self._calls, _WHAT.get(run.kind, What.MESSAGE)
        tracker, partitions = self.tracker, run.partitions or _NOWHERE
        if self._ended:
            return
        try:
            take = self._taking(run)
            if not calls.program.timed:
                for sequence, item in enumerate(run.items, run.first):
                    take((sequence,), item, None)
                return
            times = Times(run.at, run.at, given=False)
            if tracker is None:
                for sequence, item in enumerate(run.items, run.first):
                    calls.times = times
                    take((sequence,), item, None)
                return
            for sequence, item in enumerate(run.items, run.first):
                calls.times = times
                self._time = NO_TIME
                try:
                    take((sequence,), item, None)
                finally:
                    for number, partition in enumerate(partitions):
                        time = number if what is What.ASSIGNED else self._time
                        tracker.note(sequence, run.at, what, run.source, time, partition)
        except RunEnded:
            self._ended = True

    def _taking(self, run: WireRun) -> TakeMessage:
        """Return the function that processes a record of that run."""
        if run.kind in (WireKind.TICK, WireKind.ASSIGNED):
            return lambda lineage, item, _: None
        index = self._program.sources[run.source]
        place, failed, follow = (
            self._program.places[index],
            self._calls.failed,
            self._take_at(index),
        )
        if run.kind in (WireKind.FRAMES, WireKind.RECORDS):
            return follow
        if run.kind is WireKind.VALUES:
            return lambda lineage, item, _: follow(lineage, unpack(item), None)

        def take_without_message(lineage: Lineage, item: Any, _: Any) -> None:
            if run.kind is WireKind.SKIPPED:
                skipped = DeadLetterError(Reason.DECODE, item, "SkippedRecordError")
                failed(place, lineage, Reason.DECODE, skipped)
                return
            if run.kind is WireKind.UNPORTABLE:
                unportable = DeadLetterError(Reason.UNPORTABLE, item)
                failed(place, lineage, Reason.UNPORTABLE, unportable)
                return
            end: End = unpack(item)
            if end.error_type is not None:
                reason = None if end.ends_run else Reason.RAISED
                dead = DeadLetterError(reason, end.error, end.error_type)
                failed(place, lineage, Reason.RAISED, dead)

        return take_without_message

    def turn(self, index: int, turn: Turn, arrived: int) -> None:
        """Let a window step that is held here fire what is due (time-4).

        Args:
            index: the step's node.
            turn: what the lineages of what it gives begin with.
            arrived: the record's arrival time.

        Raises:
            RunEnded: the run ends here.
        """
        self._calls.times = Times(arrived, arrived, given=False)
        self.windows_at(index).turn(turn, arrived)

    def visit(self, arrivals: Iterable[Arrival]) -> None:
        """Process messages in order, from their state steps on; these steps are held here.

        The iterable may let window steps have their `turn` between two messages.
        """
        if self._ended:
            return
        visits, calls, thaw = self._visits, self._calls, self._program.copies.thaw
        try:
            for lineage, node, key, frozen, times in arrivals:
                visit = visits.get(node) or self._visit_at(node)
                calls.key = key
                calls.times = times
                value = frozen if type(frozen) is not tuple else thaw(frozen)
                visit(lineage, key, value, frozen)
        except RunEnded:
            self._ended = True

    # -- from node to node -------------------------------------------------------------------

    def _take_at(self, index: int) -> TakeMessage:
        """Return the function of a node."""
        if index not in self._takes:
            # The nodes behind come first, so that a long pipeline needs no deep recursion.
            for node in sorted(self._missing(index), reverse=True):
                take = self._take_of(node)
                # Watermarks move before anything fires, so event times are found in any case.
                unbounded = self.tracker is not None and node in self._sources
                self._takes[node] = take if unbounded else self._calls.bounded(node, take)
        return self._takes[index]

    def _missing(self, index: int) -> set[int]:
        """Return the nodes that a message may reach from here and that have no function yet."""
        missing: set[int] = set()
        waiting = [index]
        while waiting:
            number = waiting.pop()
            if number not in self._takes and number not in missing:
                missing.add(number)
                if number not in self._program.holder or self._is_held(number):
                    waiting += self._program.application.consumers[number]
        return missing

    def _is_held(self, index: int) -> bool:
        """Whether a step's entities or windows are held here."""
        return self._held is not None and self._held[0] is self._program.holder[index]

    def _take_of(self, index: int) -> TakeMessage:
        """Return the function of a node."""
        calls = self._calls
        node = self._program.application.nodes[index]
        if isinstance(node, Source):
            return self._take_of_source(index, node)
        if isinstance(node, Sink):
            return sink_node(calls, index, node)
        operation = node.operation
        if isinstance(operation, (Stateful, Windowed)):
            if self._is_held(index):
                take_keyed = nodes.to_entity_here(calls, self._visit_at(index))
            else:
                take_keyed = nodes.to_outbox(calls, index, self._program.holder[index])
            return nodes.route(calls, index, operation, take_keyed)
        if isinstance(operation, Branch):
            return nodes.branch(operation, self._follow(index))
        if isinstance(operation, Collect):
            return nodes.collect(calls, self._follow(index))
        if isinstance(operation, KeyBy):
            return nodes.key_by(calls, index, operation, self._follow(index))
        if isinstance(operation, Merge):
            return self._follow(index)
        if operation.computation.multi:
            return nodes.many_from_one(calls, index, operation, self._follow_items(index))
        compute = operation.computation.call
        return nodes.one_from_one(calls, index, compute, Reason.RAISED, self._follow(index))

    def _take_of_source(self, index: int, node: Source) -> TakeMessage:
        calls, config = self._calls, node.config
        follow = self._follow(index)
        if config.event_time is not None:
            follow = nodes.timed(
                calls, index, (config.event_time, config.max_ahead), self._move, follow
            )
        if config.decoder is None:
            return nodes.generated(calls, index, follow)
        decode = nodes.one_from_one(calls, index, config.decoder.call, Reason.DECODE, follow)
        if isinstance(config, KafkaSourceConfig):
            return nodes.consumed(calls, config, decode)
        return decode

    def _move(self, time: int) -> None:
        """Give the message that is processed its event time."""
        self._time = time
        calls = self._calls
        if calls.times is not None:  # no `_replace`: this is done for each message
            calls.times = Times(calls.times.arrived, time, calls.times.given)

    def _visit_at(self, index: int) -> VisitEntity:
        """Return the function that takes a message with a known key to a state step held here."""
        visit = self._visits.get(index)
        if visit is None:
            step = cast("Step", self._program.application.nodes[index])
            assert self._held is not None
            if isinstance(step.operation, Stateful):
                made = nodes.state_step(
                    self._calls,
                    index,
                    step.operation,
                    self._held,
                    self._follow(index),
                    self._follow_items(index),
                )
                place: str | int = step.operation.partition
            else:
                made, place = self.windows_at(index).take, index
            if self._program.probes is not None:
                made = nodes.noted(made, self._program.probes.visits[place])
            visit = self._visits[index] = self._calls.bounded(index, made)
        return visit

    def windows_at(self, index: int) -> WindowStep:
        """Return the windows of a step, which are held here."""
        step = self._windows.get(index)
        if step is None:
            assert self._held is not None
            group, states = self._held
            store = (states.entities, entity_id(group, index, b""))
            step = WindowStep(self._calls, index, store, self._follow(index))
            self._windows[index] = step
        return step

    def flush(self) -> None:
        """Write the changed entities and windows that are held here.

        Raises:
            NeedsIsolation: some entities do not survive pickling.
        """
        for step in self._windows.values():
            step.flush()
        if self._held is not None:
            self._held[1].flush()

    def _follow(self, origin: int) -> TakeMessage:
        """Return the function that takes a node's message through all nodes behind it (order-1)."""
        takes = [self._take_at(index) for index in self._program.application.consumers[origin]]
        if len(takes) == 1:
            return takes[0]
        again = self._calls.again

        def follow(lineage: Lineage, value: Any, frozen: Any) -> None:
            for number, take in enumerate(takes):
                take(lineage, again(value, frozen) if number else value, frozen)

        return follow

    def _follow_items(self, origin: int) -> TakeItems:
        """Return the function that takes the items of a multi result on, one after the other."""
        follow = self._follow(origin)

        def follow_items(lineage: Lineage, items: list[Made | None]) -> None:
            for number, made in enumerate(items):
                if made is not None:
                    follow((*lineage, number), *made)

        return follow_items
