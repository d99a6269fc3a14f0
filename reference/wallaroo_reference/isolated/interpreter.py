"""The interpreter: what an application means, in `isolated` mode, rule by rule.

Theory of operation
-------------------
The machine processes one record completely before it begins the next. This module says what a
record does: time passes, a frame is decoded and given its event time, windows that are due fire
(time-4). Then the record's own message goes down the graph, depth first: each output of a step goes
through all steps and sinks behind it before the step's next output does. `walk` says what a message
does at each of them. So every entity meets its messages, and every sink gets its outputs, in order
of lineage (order-1), and nothing needs sorting.

A window step keeps a message (`windows`) until its window fires; a count window may fire at once.

Messages and states are kept *frozen* between calls (`copies`). A message is frozen as soon as the
call that made it has ended, and each consumer thaws its own copy. A state is thawed for one call,
and frozen again only if that call said ``changed=True``. So no call sees what another call changed
unless the rules allow it (route-1, state-3, -4, -6, -7), and a failed call needs no undo: it has
changed only its own copy, which is dropped.

The observer does not change results. After each call it gets the call's input and output, and it
looks for findings about the application (`findings.FindingsObserver`).

A message that cannot go on raises `DeadLetterError`. The method of the step where this happens
catches it and adds the dead letter, and the message's siblings go on (dead-2). `RunIsOver` ends the
whole record when the run is over (dead-3, dead-4).

Where the rules leave a choice, this engine does the following. A message is frozen even if no step
or sink takes it, so `unportable` does not depend on the steps behind. A result is checked in this
order: did the call raise, shape, reading a multi result's items, portability of the outputs,
portability of the state. A dead letter has a key as soon as the key is known to be valid, and
`error_type` only if user code raised.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from wallaroo.canonical import structure_or_kind
from wallaroo.components import EventTime
from wallaroo.findings import Finding
from wallaroo.judging import DeadLetterError
from wallaroo.kafka import KafkaSourceConfig
from wallaroo.keys import partition_number
from wallaroo.records import Assigned, End, Single, Tick, Unportable, Unused, Value
from wallaroo.times import BadTimeError, refuse_ahead
from wallaroo.topology import Application, Source
from wallaroo.trace import Entity, Lineage, OpenWindow, Reason
from wallaroo_reference.cells import Cells, Moment, key_of_name
from wallaroo_reference.isolated.copies import packed, thaw
from wallaroo_reference.isolated.findings import FindingsObserver
from wallaroo_reference.isolated.observer import Observer
from wallaroo_reference.isolated.places import FrozenEntity, Place, places
from wallaroo_reference.isolated.walk import Context, RunIsOver, Walk
from wallaroo_reference.isolated.watermarks import FOREVER
from wallaroo_reference.user_calls import call_user_code


class Interpreter(Walk):
    """An application, running in `isolated` mode; see `wallaroo_reference.machine.Machine`.

    Args:
        application: what to run.
        partitions: number of partitions, for the entities' partition numbers (route-4).
        on_error: ``stop`` ends the run at the first dead letter (dead-4).
        thorough: look for findings at every call, not at a sample of them.
        keeps: note what changes, for checkpoints (`wallaroo_reference.cells`).
        observer: is told what happens; `None`: one that looks for findings.
    """

    def __init__(
        self,
        application: Application,
        *,
        partitions: int = 1,
        on_error: str = "skip",
        thorough: bool = False,
        keeps: bool = False,
        observer: Observer | None = None,
    ) -> None:
        made = places(application)
        observer = observer or FindingsObserver(application, thorough=thorough)
        super().__init__(application, made, stop_on_error=on_error == "stop", observer=observer)
        self.sequence = 0
        self._partitions = partitions
        self._places = {
            node.pipeline: (place, node.config.event_time, node.config.max_ahead)
            for node, place in zip(application.nodes, made, strict=True)
            if isinstance(node, Source)
        }
        self._find_time: EventTime | None = None  # of the record's source
        self._max_ahead: int | None = None
        self._kafka = {
            name: node.config
            for name, node in application.sources.items()
            if isinstance(node.config, KafkaSourceConfig)
        }
        self._fed: Any = None  # of a Kafka source: the value or the whole record
        self._partition: int | None = None  # where it stands
        self._timed = application.time_decides or any(
            event_time is not None for _, event_time, _ in self._places.values()
        )
        if keeps:
            codec = application.codec
            loads = pickle.loads if codec is None else codec.deserialize
            for store in self._stores.values():
                store.keep(
                    lambda entity: packed(entity.state),
                    lambda name, data: FrozenEntity(key_of_name(name), self._freeze(loads(data))),
                )
            for step, _ in self._windows.values():
                step.keep(loads)

    # -- what a record does ----------------------------------------------------------------------

    def feed(
        self, source: str, payloads: Sequence[Any], at: int = 0, partition: int | None = None
    ) -> None:
        """Process frames of one source, or records of Kafka; see `Machine.feed`."""
        place, self._find_time, self._max_ahead = self._places[source]
        self.meter.begin(payloads, self.sequence)
        self._source, self._partition = source, partition
        for payload in payloads:
            if self.ended is not None:
                return
            if self._timed:
                self._arrive(at, source, partition)
            self._payload = payload
            lineage = (self.sequence,)
            self.sequence += 1
            self._observer.record_began(place, lineage, payload, at)
            try:
                self._decode(place, payload, lineage)
            except RunIsOver:
                return

    def take(self, record: Single) -> None:
        """Process a record by itself; see `Machine.take`."""
        if self.ended is not None:
            return
        if isinstance(record, Unused):  # kafka-1
            self.sequence += record.numbers
            return
        self._source = None if isinstance(record, Tick) else record.source
        self._partition = None
        self._arrive(record.at, self._source if isinstance(record, Value) else None)
        if isinstance(record, End):
            self._watermarks.end(record.source, record.partition)
        if isinstance(record, Assigned):
            self._watermarks.assign(record.source, [number for number, _, _ in record.partitions])
        self._payload = None
        lineage = (self.sequence,)
        self.sequence += 1
        self.meter.begin([record], lineage[0])
        place = self._places[record.source][0] if isinstance(record, Value) else None
        self._observer.record_began(place, lineage, record, record.at)
        try:
            if isinstance(record, Value):
                self._generate(record, lineage)
            else:
                self._take_turns(lineage)
                if isinstance(record, End):
                    self._end_source(record, lineage)
        except RunIsOver:
            return

    def _arrive(self, at: int, frame_of: str | None, partition: int | None = None) -> None:
        """Note that a record has arrived; `frame_of`: the source, if it is a frame or a value."""
        self._watermarks.arrive(at, frame_of, partition)
        self._context = Context(time=self._watermarks.now)
        for store in self._expiring:
            store.expire(self._watermarks.now)

    def _end_source(self, record: End, lineage: Lineage) -> None:
        """Add the dead letter of a generator that has failed, or end the run (graph-4, dead-3)."""
        if record.error_type is None:
            return
        place, _, _ = self._places[record.source]
        reason = None if record.ends_run else Reason.RAISED
        dead = DeadLetterError(reason, record.error, record.error_type)
        self._add_dead_letter(place, lineage, None, dead)

    def _take_turns(self, lineage: Lineage) -> None:
        """Let the window steps fire what is due, in the order of their calls (time-4)."""
        for before, (place, (step, ways)) in enumerate(self._windows.items()):
            step.watermark = max(step.watermark, self._watermarks.of(ways))
            number = before - len(self._windows)
            for index, firing in enumerate(step.due(self._watermarks.now)):
                self._fire(place, step, firing, (*lineage, number, index))

    # -- what begins a message -------------------------------------------------------------------

    def _decode(self, place: Place, payload: Any, lineage: Lineage) -> None:
        if place.pipeline in self._kafka:
            payload = self._of_kafka(self._kafka[place.pipeline], payload)
            if payload is None:  # a tombstone that is not for this decoder (kafka-7)
                self._begin(place, None, lineage)
                return
        message = None
        try:
            message = call_user_code(place.call, place.reason, payload)
            if message is not None:  # decode-1
                message = self._freeze(message)
        except DeadLetterError as dead:
            self._take_turns(lineage)
            self._add_dead_letter(place, lineage, None, dead)
            return
        if message is not None:
            self._observer.decoded(place, lineage)
        self._begin(place, message, lineage)

    def _of_kafka(self, source: KafkaSourceConfig, fed: Any) -> Any:
        """Return what the decoder of a Kafka source gets: the value or the whole record."""
        self._fed = fed
        self._payload = fed.value if source.whole else fed
        return fed if source.decoder.whole else self._payload

    def _generate(self, record: Value, lineage: Lineage) -> None:
        """Process a value of a generator (graph-4)."""
        place, self._find_time, self._max_ahead = self._places[record.source]
        try:
            if isinstance(record.value, Unportable):
                raise DeadLetterError(Reason.UNPORTABLE, record.value.error)
            message = self._freeze(record.value)
        except DeadLetterError as dead:
            self._take_turns(lineage)
            self._add_dead_letter(place, lineage, None, dead)
            return
        self._begin(place, message, lineage)

    def _begin(self, place: Place, message: Any, lineage: Lineage) -> None:
        """Give a frozen message its event time, let windows have their turns, and process it.

        `None` stands for a message that the decoder has filtered.
        """
        if message is not None and self._find_time is not None:
            try:
                time = self._event_time(self._find_time, place, message, lineage)
            except DeadLetterError as dead:
                self._take_turns(lineage)
                self._add_dead_letter(place, lineage, None, dead)
                return
            assert self._source is not None
            self._watermarks.move(self._source, time, self._partition)
            self._context = replace(self._context, time=time)
        self._take_turns(lineage)
        if message is not None:
            self._follow(place, message, lineage)

    def _event_time(
        self, event_time: EventTime, place: Place, message: Any, lineage: Lineage
    ) -> int:
        """Return a message's event time; changes the function makes are lost (time-2)."""
        given = self._fed if event_time.of_record else thaw(message)  # kafka-8
        result = call_user_code(event_time.call, Reason.RAISED, given)
        if not event_time.of_record:
            self._observer.timed(place, lineage, message, given)
        try:
            time = event_time.judged(result)
            if self._max_ahead is not None and time - self._watermarks.now > self._max_ahead:
                refuse_ahead(time, self._max_ahead)
        except BadTimeError as error:
            raise DeadLetterError(Reason.BAD_TIME, str(error)) from None
        return time

    # -- what others ask for ---------------------------------------------------------------------

    def due(self) -> int | None:
        """Return when time alone makes something due; see `Machine.due`."""
        times: list[float] = []
        for step, ways in self._windows.values():
            target = step.next_due()
            if target is not None:
                times.append(self._watermarks.arrival_for(ways, target))
            timeout = step.next_timeout()
            if timeout is not None:
                times.append(timeout)
        earliest = min(times, default=FOREVER)
        return None if earliest == FOREVER else int(earliest)

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings about the application, in the order in which they were found."""
        return self._observer.findings

    @property
    def late(self) -> dict[tuple[str, str], int]:
        """Late messages by (step, ``dropped`` or ``partly``) (window-6)."""
        late = {}
        for place, (step, _) in self._windows.items():
            for what, number in (("dropped", step.dropped), ("partly", step.partly_late)):
                if number:
                    late[str(place.step), what] = number
        return late

    @property
    def open_windows(self) -> int:
        """The number of windows that are open now."""
        return sum([1 for step, _ in self._windows.values() for _ in step.open()])

    def windows(self) -> list[OpenWindow]:
        """Return the windows that are open now (window-11)."""
        windows = []
        for place, (step, _) in self._windows.items():
            for firing in step.open():
                try:
                    value = step.combined(firing.parts)
                    shown = structure_or_kind(value)
                except DeadLetterError as dead:
                    value, shown = None, {"combine raised": dead.error_type}
                windows.append(
                    OpenWindow(str(place.step), firing.key, firing.start, firing.end, shown, value)
                )
        return windows

    def entities(self) -> list[Entity]:
        """Return the state entities as they are now."""
        return [
            Entity(
                name,
                entity.key,
                partition_number(entity.key, self._partitions),
                structure_or_kind(thaw(entity.state)),
                partial(thaw, entity.state),
            )
            for name, store in self._stores.items()
            for entity in store.entities.values()
        ]

    # -- checkpoints: see `wallaroo_reference.cells` ----------------------------------------------

    def cells(self) -> list[Cells]:
        """Return the stores, and the windows of each step."""
        return [*self._stores.values(), *[step for step, _ in self._windows.values()]]

    def moment(self) -> Moment:
        """Return the machine's position and times, between two records."""
        time = self._watermarks
        watermarks = [max(step.watermark, time.of(ways)) for step, ways in self._windows.values()]
        return Moment(self.sequence, time.now, time.first, time.moments(), watermarks)

    def go_on_from(self, moment: Moment) -> None:
        """Continue from the moment of the machine whose cells have been unpacked here."""
        self.sequence = moment.sequence
        self._watermarks.go_on_from(moment)
        for store in self._stores.values():
            store.go_on_from(moment.now)
        steps = [step for step, _ in self._windows.values()]
        for step, watermark in zip(steps, moment.watermarks, strict=True):
            step.watermark = watermark
            step.go_on()
