"""The interpreter: what an application means, in `isolated` mode, rule by rule.

Theory of operation
-------------------
The machine processes one record completely before it begins the next. A frame's payload is decoded,
and the message goes down the graph depth first: each output of a step goes through all steps and
sinks behind it before the step's next output does. So every entity meets its messages, and every
sink gets its outputs, in order of lineage (order-1), and nothing needs sorting.

Before a record's own message goes down, each window step has its turn: its watermark moves on, the
windows that are due fire, and what they give goes down (time-4). A window step that a message comes
to keeps it (`window_kinds`); a count window may fire at that point.

Messages and states are kept *frozen* between calls. A message is frozen as soon as the call that
made it has ended, and each consumer thaws its own copy. A state is thawed for one call, and frozen
again only if that call said ``changed=True``. So no call sees what another call changed unless the
rules allow it (route-1, state-3, -4, -6, -7), and a failed call needs no undo: it changed only its
own copy, which is dropped.

The observer does not change results. After each call it gets the call's input and output, and it
looks for findings about the application (`findings.Observer`).

A message that cannot go on raises `DeadLetterError`. The method of the step where this happens
catches it and adds the dead letter, and the message's siblings go on (dead-2). `_Stop` ends the
whole frame when the run is over (dead-3, dead-4).

Where the rules leave a choice, this engine does the following. A message is frozen even if no step
or sink takes it, so `unportable` does not depend on the steps behind. A result is checked in this
order: did the call raise, shape, reading a multi result's items, portability of the outputs,
portability of the state. A dead letter has a key as soon as the key is known to be valid, and
`error_type` only if user code raised.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NoReturn

from wallaroo.canonical import structure_or_kind
from wallaroo.components import EventTime, PartitionFunction
from wallaroo.keys import (
    SINGLE_KEY,
    BadKeyError,
    Key,
    identity,
    partition_number,
)
from wallaroo.operations import Branch, Collect, KeyBy, Merge, Stateful, Windowed
from wallaroo.records import End, Tick, Value
from wallaroo.times import BadTimeError, event_time_from
from wallaroo.topology import Application, SinkId, Source
from wallaroo.trace import (
    DeadLetter,
    Ended,
    Entity,
    Finding,
    Lineage,
    OpenWindow,
    Reason,
)
from wallaroo_reference.dead_letter import DeadLetterError, dead_letter_from
from wallaroo_reference.isolated.copies import CodedCopies, freeze, packed, thaw
from wallaroo_reference.isolated.findings import Observer
from wallaroo_reference.isolated.watermarks import FOREVER, Watermarks
from wallaroo_reference.isolated.window_kinds import window_step
from wallaroo_reference.isolated.windows import Arrival, Firing, WindowStep
from wallaroo_reference.kept import Cells, Moment, Packer, key_of_name
from wallaroo_reference.meter import Meter, TooMuchOutputError
from wallaroo_reference.places import FrozenEntity, Place, Store, places
from wallaroo_reference.results import (
    BadResultError,
    TooManyItemsError,
    items_of,
    pair_of,
    written_of,
)


@dataclass(frozen=True, slots=True)
class Context:
    """What a message has besides its lineage, while it and what is made of it go down the graph.

    Args:
        key: its key, `wallaroo.keys.SINGLE_KEY` unless a `key_by` found one (key-1, key-2).
        time: its event time (time-2).
        given: a window gave it, or what it was made of; its dead letters have no payload.
    """

    key: Key = SINGLE_KEY
    time: int = 0
    given: bool = False


class Interpreter:
    """An application, running in `isolated` mode; see `wallaroo_reference.machine.Machine`.

    Args:
        application: what to run.
        partitions: number of partitions, for the entities' partition numbers (route-4).
        on_error: ``stop`` ends the run at the first dead letter (dead-4).
        thorough: look for findings at every call, not at a sample of them.
        keeps: note what changes, for checkpoints (`wallaroo_reference.kept`).
    """

    def __init__(
        self,
        application: Application,
        *,
        partitions: int = 1,
        on_error: str = "skip",
        thorough: bool = False,
        keeps: bool = False,
    ) -> None:
        self.sequence = 0
        self.outputs: dict[SinkId, list[bytes]] = {sink: [] for sink in application.sinks}
        self.dead_letters: list[DeadLetter] = []
        self.ended: Ended | None = None
        self.meter = Meter(self.outputs.values())
        self._partitions = partitions
        self._stop_on_error = on_error == "stop"
        self._observer = Observer(application, thorough=thorough)
        self._stores = {part.name: Store[FrozenEntity](part) for part in application.partitions}
        self._expiring = [
            store for store in self._stores.values() if store.partition.expire_after is not None
        ]
        self._freeze = freeze
        if application.codec is not None:
            self._freeze = CodedCopies(application.codec).freeze
        made = places(application)
        self._places = {
            node.pipeline: (place, node.config.event_time)
            for node, place in zip(application.nodes, made, strict=True)
            if isinstance(node, Source)
        }
        self._watermarks = Watermarks(application)
        self._windows: dict[Place, tuple[WindowStep, dict[str, int]]] = {}
        for index in application.window_steps:
            operation = made[index].operation
            assert isinstance(operation, Windowed)
            step = window_step(operation, self._freeze)
            self._windows[made[index]] = (step, dict(application.ways[index]))
        self._timed = application.time_decides or any(
            event_time is not None for _, event_time in self._places.values()
        )
        if keeps:
            loads = Packer(application.codec).loads
            for store in self._stores.values():
                store.keep(
                    lambda entity: packed(entity.state),
                    lambda name, data: FrozenEntity(key_of_name(name), self._freeze(loads(data))),
                )
            for step, _ in self._windows.values():
                step.keep(loads)
        self._source: str | None = None  # of the record that is processed
        self._find_time: EventTime | None = None  # of that source
        self._payload: bytes | None = None  # of the frame that is processed
        self._context = Context()

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings about the application, in the order in which they were found."""
        return self._observer.findings

    def feed(self, source: str, payloads: Sequence[bytes], at: int = 0) -> None:
        """Process frames of one source, in order, all with the same arrival time."""
        place, self._find_time = self._places[source]
        self.meter.begin(payloads, self.sequence)
        self._source = source
        for payload in payloads:
            if self.ended is not None:
                return
            if self._timed:
                self._arrive(at, source)
            self._payload = payload
            lineage = (self.sequence,)
            self.sequence += 1
            try:
                self._decode(place, payload, lineage)
            except _Stop:
                return

    def take(self, record: Value | Tick | End) -> None:
        """Process a record that is no frame; see `Machine.take`."""
        if self.ended is not None:
            return
        self._source = None if isinstance(record, Tick) else record.source
        self._arrive(record.at, self._source if isinstance(record, Value) else None)
        if isinstance(record, End):
            self._watermarks.end(record.source)
        self._payload = None
        lineage = (self.sequence,)
        self.sequence += 1
        self.meter.begin([record], lineage[0])
        try:
            if isinstance(record, Value):
                self._generate(record, lineage)
            else:
                self._take_turns(lineage)
                if isinstance(record, End):
                    self._end_source(record, lineage)
        except _Stop:
            return

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
    def late(self) -> dict[tuple[str, str], int]:
        """Late messages by (step, ``dropped`` or ``partly``) (window-6)."""
        found = {}
        for place, (step, _) in self._windows.items():
            for what, number in (("dropped", step.dropped), ("partly", step.partly_late)):
                if number:
                    found[str(place.step), what] = number
        return found

    @property
    def open_windows(self) -> int:
        """The number of windows that are open now."""
        return sum([1 for step, _ in self._windows.values() for _ in step.open()])

    def windows(self) -> list[OpenWindow]:
        """Return the windows that are open now (window-11)."""
        found = []
        for place, (step, _) in self._windows.items():
            for firing in step.open():
                try:
                    value = step.combined(firing.parts)
                    shown = structure_or_kind(value)
                except DeadLetterError as dead:
                    value, shown = None, {"combine raised": dead.error_type}
                found.append(
                    OpenWindow(str(place.step), firing.key, firing.start, firing.end, shown, value)
                )
        return found

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

    # -- checkpoints: see `wallaroo_reference.kept` -------------------------------------------

    def cells(self) -> list[Cells]:
        """Return the stores, and the windows of each step."""
        return [*self._stores.values(), *[step for step, _ in self._windows.values()]]

    def moment(self) -> Moment:
        """Return where the machine stands, between two records."""
        time = self._watermarks
        watermarks = [max(step.watermark, time.of(ways)) for step, ways in self._windows.values()]
        return Moment(self.sequence, time.now, time.first, time.moments(), watermarks)

    def go_on_from(self, moment: Moment) -> None:
        """Stand where a machine stood whose cells have been unpacked into this one's."""
        self.sequence = moment.sequence
        self._watermarks.go_on_from(moment)
        for store in self._stores.values():
            store.go_on_from(moment.now)
        steps = [step for step, _ in self._windows.values()]
        for step, watermark in zip(steps, moment.watermarks, strict=True):
            step.watermark = watermark
            step.go_on()

    # -- decode ------------------------------------------------------------------------------

    def _decode(self, place: Place, payload: bytes, lineage: Lineage) -> None:
        message = None
        try:
            try:
                message = place.call(payload)
            except BaseException as error:
                raise dead_letter_from(error, place.reason) from error
            if message is not None:  # decode-1
                message = self._freeze(message)
        except DeadLetterError as dead:
            self._take_turns(lineage)
            self._add_dead_letter(place, lineage, None, dead)
            return
        if message is not None:
            self._observer.decoded(place, lineage)
        self._begin(place, message, lineage)

    def _generate(self, record: Value, lineage: Lineage) -> None:
        """Process a value of a generator (graph-4)."""
        place, self._find_time = self._places[record.source]
        try:
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
                time = self._event_time(self._find_time, message)
            except DeadLetterError as dead:
                self._take_turns(lineage)
                self._add_dead_letter(place, lineage, None, dead)
                return
            assert self._source is not None
            self._watermarks.move(self._source, time)
            self._context = replace(self._context, time=time)
        self._take_turns(lineage)
        if message is not None:
            self._follow(place, message, lineage)

    def _event_time(self, event_time: EventTime, message: Any) -> int:
        """Return a message's event time; changes the function makes are lost (time-2)."""
        mine = thaw(message)
        try:
            result = event_time.call(mine)
        except BaseException as error:
            raise dead_letter_from(error, Reason.RAISED) from error
        try:
            return event_time_from(result)
        except BadTimeError as error:
            raise DeadLetterError(Reason.BAD_TIME, str(error)) from None

    def _follow(self, place: Place, message: Any, lineage: Lineage) -> None:
        """Process a frozen output of `place` in each of its consumers, completely (order-1)."""
        for consumer in place.consumers:
            if consumer.sink is not None:
                self._encode(consumer, message, lineage)
            elif consumer.stateful is not None:
                self._compute_with_state(consumer, consumer.stateful, message, lineage)
            elif consumer.operation is None:
                self._compute(consumer, message, lineage)
            else:
                self._pass_on(consumer, consumer.operation, message, lineage)

    def _follow_with(self, context: Context, place: Place, message: Any, lineage: Lineage) -> None:
        """Process an output of `place` that has another context than what it was made of."""
        before, self._context = self._context, context
        self._follow(place, message, lineage)
        self._context = before

    # -- graphs and keys ---------------------------------------------------------------------

    def _pass_on(
        self,
        place: Place,
        operation: Windowed | KeyBy | Collect | Merge | Branch,
        message: Any,
        lineage: Lineage,
    ) -> None:
        """Process a message in a step that makes no other message of it."""
        if isinstance(operation, Branch):  # graph-2
            self._follow(place, message, (*lineage, operation.number))
        elif isinstance(operation, Collect):  # key-2
            self._follow_with(replace(self._context, key=SINGLE_KEY), place, message, lineage)
        elif isinstance(operation, KeyBy):
            self._key_by(place, operation, message, lineage)
        elif isinstance(operation, Windowed):
            self._put_into_window(place, operation, message, lineage)
        else:
            self._follow(place, message, lineage)  # graph-3

    def _key_by(self, place: Place, operation: KeyBy, message: Any, lineage: Lineage) -> None:
        """Find the message's key, which stays with it (key-1)."""
        try:
            key = self._called_for_key(place, operation.route, message)
            _judged(key)
        except DeadLetterError as dead:
            self._add_dead_letter(place, lineage, None, dead)
            return
        self._follow_with(replace(self._context, key=key), place, message, lineage)

    def _key_of_message(self, operation: Stateful | Windowed) -> Key:
        """Return the key of a message at a step that finds none itself (key-1).

        In the builder's form what a window gives has no key for the next step (route-6, key-2).
        """
        return self._context.key if operation.keyed else SINGLE_KEY

    def _called_for_key(self, place: Place, route: PartitionFunction, message: Any) -> Any:
        """Return what a partition function says of a message; its changes are lost (route-1)."""
        mine = thaw(message)
        try:
            return route.call(mine)
        except BaseException as error:
            raise dead_letter_from(error, place.reason) from error

    # -- time and windows --------------------------------------------------------------------

    def _arrive(self, at: int, frame_of: str | None) -> None:
        """Note that a record has arrived; `frame_of`: the source, if it is a frame or a value."""
        self._watermarks.arrive(at, frame_of)
        self._context = Context(time=self._watermarks.now)
        for store in self._expiring:
            store.expire(self._watermarks.now)

    def _end_source(self, record: End, lineage: Lineage) -> None:
        """Add the dead letter of a generator that has failed, or end the run (graph-4, dead-3)."""
        if record.error_type is None:
            return
        place, _ = self._places[record.source]
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

    def _put_into_window(
        self, place: Place, operation: Windowed, message: Any, lineage: Lineage
    ) -> None:
        step, _ = self._windows[place]
        key: Key | None = None
        try:
            if operation.route is None:
                candidate: Any = self._key_of_message(operation)
            else:
                candidate = self._called_for_key(place, operation.route, message)
            known = _judged(candidate)
            key = candidate
            arrival = Arrival(message, key, known, self._context.time, self._watermarks.now)
            firing = step.take(arrival)
        except DeadLetterError as dead:
            self._add_dead_letter(place, lineage, key, dead)
            return
        if firing is not None:
            self._fire(place, step, firing, lineage)

    def _fire(self, place: Place, step: WindowStep, firing: Firing, lineage: Lineage) -> None:
        """Process what a window gives, which is gone already (window-4, window-9)."""
        before = self._context
        self._context = Context(firing.key, firing.time, given=not firing.own or before.given)
        try:
            output = step.output(firing)
        except DeadLetterError as dead:
            self._add_dead_letter(place, lineage, firing.key, dead)
        else:
            if output is not None:
                self._context = replace(self._context, given=True)
                self._follow(place, output, lineage)
        self._context = before

    # -- computations ------------------------------------------------------------------------

    def _compute(self, place: Place, message: Any, lineage: Lineage) -> None:
        try:
            mine = thaw(message)
            try:
                result = place.call(mine)
            except BaseException as error:
                raise dead_letter_from(error, place.reason) from error
            if not place.multi:
                output = None if result is None else self._freeze(result)  # compute-1
            else:
                result, output = self._items(place, result)
        except DeadLetterError as dead:
            self._add_dead_letter(place, lineage, None, dead)
            return
        self._observer.computed(place, lineage, result)
        self._send(place, output, lineage)

    def _items(self, place: Place, result: Any) -> tuple[list[Any], list[Any]]:
        """Return all items of a multi result, and the same items frozen (compute-2).

        An item that is `None` keeps its index and is not sent.
        """
        try:
            items = items_of(result, self.meter.most)
        except (BadResultError, TooManyItemsError):
            raise
        except BaseException as error:
            raise dead_letter_from(error, place.reason) from error
        return items, [None if item is None else self._freeze(item) for item in items]

    def _send(self, place: Place, output: Any, lineage: Lineage) -> None:
        if not place.multi:
            if output is not None:
                self._follow(place, output, lineage)
            return
        try:
            for index, item in enumerate(self.meter.portions(iter(output), lineage[0])):
                if item is not None:
                    self._follow(place, item, (*lineage, index))
        except TooMuchOutputError:
            self._end("exit", place, lineage, TooMuchOutputError.__name__)

    # -- state computations ------------------------------------------------------------------

    def _compute_with_state(
        self, place: Place, operation: Stateful, message: Any, lineage: Lineage
    ) -> None:
        store = self._stores[operation.partition]
        key: Key | None = None
        try:
            candidate = self._route(place, operation, message, lineage)
            known = store.judge(candidate)
            key = candidate
            entity = store.entities.get(known)
            if entity is None:
                entity = self._build(place, store, key, known, lineage)
            if self._expiring:
                store.visit(known, self._watermarks.now)
            before = entity.state
            output = self._visit(place, entity, message, lineage)
            if entity.state is not before:
                store.touch(known)
        except DeadLetterError as dead:
            self._add_dead_letter(place, lineage, key, dead)
            return
        self._send(place, output, lineage)

    def _route(self, place: Place, operation: Stateful, message: Any, lineage: Lineage) -> Any:
        """Return the message's key; changes the partition function makes are lost (route-1)."""
        route = operation.route
        if route is None:
            return self._key_of_message(operation)
        mine = thaw(message)
        try:
            key = route.call(mine)
        except BaseException as error:
            raise dead_letter_from(error, place.reason) from error
        self._observer.routed(place, lineage, message, mine)
        return key

    def _build(
        self, place: Place, store: Store[FrozenEntity], key: Key, known: Hashable, lineage: Lineage
    ) -> FrozenEntity:
        """Build the entity of a key whose first message has come (state-1)."""
        store.expect(key, known)
        builder = store.partition.builder
        try:
            state = builder.call()
        except BaseException as error:
            raise dead_letter_from(error, place.reason) from error
        self._observer.built(place, lineage, key, builder, state)
        entity = store.entities[known] = FrozenEntity(key, self._freeze(state))
        store.touch(known)
        return entity

    def _visit(self, place: Place, entity: FrozenEntity, message: Any, lineage: Lineage) -> Any:
        """Call the state computation, update the entity, and return the frozen output.

        One that belongs to pipelines returns its output alone, and its state is kept (key-3).
        """
        assert place.stateful is not None
        operation = place.stateful
        mine = thaw(message)
        state = thaw(entity.state)
        try:
            try:
                result = place.call(mine, state)
            except BaseException as error:
                raise dead_letter_from(error, place.reason) from error
            given, changed = pair_of(result) if operation.computation.pair else (result, True)
            if not place.multi:
                output = None if given is None else self._freeze(given)  # state-5, state-6
            else:
                given, output = self._items(place, given)
            after = self._freeze(state) if changed else entity.state
        except DeadLetterError as dead:
            self._observer.failed(place, lineage, entity, state, dead)
            raise  # the entity is as before the call: state-2, state-7
        if not changed:  # state-4: what the call did to its copy is dropped
            self._observer.unchanged(place, lineage, entity, state)
        entity.state = after  # state-3
        self._observer.visited(place, lineage, entity, mine, state, given)
        return output

    # -- sinks -------------------------------------------------------------------------------

    def _encode(self, place: Place, message: Any, lineage: Lineage) -> None:
        try:
            mine = thaw(message)
            try:
                output = place.call(mine)
            except BaseException as error:
                raise dead_letter_from(error, place.reason) from error
            if output is None:  # sink-1
                return
            written = written_of(output)
        except DeadLetterError as dead:
            self._add_dead_letter(place, lineage, None, dead)
            return
        assert place.sink is not None
        self.outputs[place.sink].append(written)
        self._observer.encoded(place, lineage, message, mine)

    # -- what can go wrong -------------------------------------------------------------------

    def _add_dead_letter(
        self, place: Place, lineage: Lineage, key: Key | None, dead: DeadLetterError
    ) -> None:
        """Add a dead letter; with `--on-error stop` the run ends here."""
        if dead.reason is None:
            self._end("exit", place, lineage, dead.error_type)
        self.dead_letters.append(
            DeadLetter(
                lineage=lineage,
                source=self._source,
                pipeline=place.pipeline,
                step=place.step,
                position=place.position,
                sink=None if place.sink is None else place.sink[1],
                key=key,
                reason=dead.reason,
                error_type=dead.error_type,
                error=dead.error,
                payload=None if self._context.given else self._payload,
                where=dead.failure.where,
                causes=dead.failure.causes,
            )
        )
        self._observer.became_dead_letter(place, lineage, key, dead)
        if self._stop_on_error:
            self._end("on-error", place, lineage, None)

    def _end(
        self,
        kind: Literal["on-error", "exit"],
        place: Place,
        lineage: Lineage,
        error_type: str | None,
    ) -> NoReturn:
        sink = None if place.sink is None else place.sink[1]
        self.ended = Ended(kind, place.pipeline, place.step, lineage, error_type, sink)
        raise _Stop


def _judged(key: Any) -> Hashable:
    """Return the identity of a key (route-2).

    Raises:
        DeadLetterError: `bad-key`: it is none.
    """
    try:
        return identity(key)
    except BadKeyError as error:
        raise DeadLetterError(Reason.BAD_KEY, str(error)) from None


class _Stop(Exception):  # noqa: N818 - control flow
    """The run is over."""
