"""A message's walk through the steps and sinks behind its source, depth first.

Each method takes a frozen message to one step or sink. The messages made from it there go all the
way to the sinks before the method returns (order-1). `interpreter` says where messages come from.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NoReturn

from wallaroo.components import PartitionFunction
from wallaroo.judging import BadResultError, DeadLetterError, TooManyItemsError, judged_key
from wallaroo.kafka_records import Output
from wallaroo.keys import SINGLE_KEY, Key
from wallaroo.operations import Branch, Collect, KeyBy, Merge, Stateful, Windowed
from wallaroo.topology import Application, SinkId
from wallaroo.trace import DeadLetter, Ended, Lineage
from wallaroo.windows import RangeWindows, SessionWindows
from wallaroo_reference.entities import Store
from wallaroo_reference.isolated.copies import CodedCopies, freeze, thaw
from wallaroo_reference.isolated.counts import CountStep
from wallaroo_reference.isolated.judging import items_of, pair_of, produced_of, written_of
from wallaroo_reference.isolated.observer import Observer
from wallaroo_reference.isolated.places import FrozenEntity, Place
from wallaroo_reference.isolated.ranges import RangeStep
from wallaroo_reference.isolated.sessions import SessionStep
from wallaroo_reference.isolated.watermarks import Watermarks
from wallaroo_reference.isolated.windows import Arrival, Firing, Freeze, WindowStep
from wallaroo_reference.meter import Meter, TooMuchOutputError, partitions_said
from wallaroo_reference.user_calls import call_user_code, dead_letter_from


@dataclass(frozen=True, slots=True)
class Context:
    """What a message has besides its lineage, on its way down the graph.

    Args:
        key: its key, `wallaroo.keys.SINGLE_KEY` unless a `key_by` found one (key-1, key-2).
        time: its event time (time-2).
        given: a window gave it, or the message it was made from; its dead letters have no payload.
    """

    key: Key = SINGLE_KEY
    time: int = 0
    given: bool = False


class RunIsOver(Exception):  # noqa: N818 - control flow
    """Raised out of a walk, which ends with the run (dead-3, dead-4)."""


class Walk:
    """What steps and sinks do, and what they keep: entities, windows, outputs, dead letters.

    Args:
        application: what is run.
        made: the place of each of its nodes.
        stop_on_error: the first dead letter ends the run (dead-4).
        observer: is told what happens.
    """

    def __init__(
        self,
        application: Application,
        made: list[Place],
        *,
        stop_on_error: bool,
        observer: Observer,
    ) -> None:
        self.outputs: dict[SinkId, list[Any]] = {sink: [] for sink in application.sinks}
        self.dead_letters: list[DeadLetter] = []
        self.ended: Ended | None = None
        self.meter = Meter(self.outputs.values())
        self.topics = partitions_said(application)
        self._stop_on_error = stop_on_error
        self._observer = observer
        self._follower = observer if observer.follows else None
        self._stores = {part.name: Store[FrozenEntity](part) for part in application.partitions}
        self._expiring = [
            store for store in self._stores.values() if store.partition.expire_after is not None
        ]
        self._freeze = freeze
        if application.codec is not None:
            self._freeze = CodedCopies(application.codec).freeze
        self._watermarks = Watermarks(application)
        self._windows: dict[Place, tuple[WindowStep[Any, Any], dict[str, int]]] = {}
        for index in application.window_steps:
            operation = made[index].operation
            assert isinstance(operation, Windowed)
            noted = observer.accumulator_freezer(self._freeze)
            step = _window_step(operation, noted, partial(self._begun, made[index]))
            self._windows[made[index]] = (step, dict(application.ways[index]))
        self._source: str | None = None  # of the record that is processed
        self._payload: bytes | None = None  # of the frame that is processed
        self._context = Context()
        self._putting: tuple[Lineage, Key] = (), ()
        """Of the message that is put into a window."""

    def _follow(self, place: Place, message: Any, lineage: Lineage) -> None:
        """Process a frozen output of `place` in each of its consumers, completely (order-1)."""
        follower = self._follower
        if follower is not None:
            follower.gave(place, message, self._context.key, self._context.time)
        for consumer in place.consumers:
            if follower is not None:
                follower.began(consumer, message, lineage, self._context.time)
            if consumer.sink is not None:
                self._encode(consumer, message, lineage)
            elif consumer.stateful is not None:
                self._compute_with_state(consumer, consumer.stateful, message, lineage)
            elif consumer.operation is None:
                self._compute(consumer, message, lineage)
            else:
                self._pass_on(consumer, consumer.operation, message, lineage)
            if follower is not None:
                follower.ended()

    def _follow_with(self, context: Context, place: Place, message: Any, lineage: Lineage) -> None:
        """Process an output of `place` that has another context than its input."""
        before, self._context = self._context, context
        self._follow(place, message, lineage)
        self._context = before

    # -- computations ----------------------------------------------------------------------------

    def _compute(self, place: Place, message: Any, lineage: Lineage) -> None:
        try:
            result = call_user_code(place.call, place.reason, thaw(message))
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

    # -- state computations ----------------------------------------------------------------------

    def _compute_with_state(
        self, place: Place, operation: Stateful, message: Any, lineage: Lineage
    ) -> None:
        store = self._stores[operation.partition]
        key: Key | None = None
        try:
            candidate = self._route(place, operation, message, lineage)
            identity = store.judge(candidate)
            key = candidate
            entity = store.entities.get(identity)
            if entity is None:
                entity = self._build(place, store, key, identity, lineage)
            if self._expiring:
                store.visit(identity, self._watermarks.now)
            before = entity.state
            output = self._visit(place, entity, message, lineage)
            if entity.state is not before:
                store.touch(identity)
        except DeadLetterError as dead:
            self._add_dead_letter(place, lineage, key, dead)
            return
        self._send(place, output, lineage)

    def _route(self, place: Place, operation: Stateful, message: Any, lineage: Lineage) -> Any:
        """Return the message's key; changes the partition function makes are lost (route-1)."""
        route = operation.route
        if route is None:
            return self._key_of_message(operation)
        return self._called_for_key(place, route, message, lineage)

    def _build(
        self,
        place: Place,
        store: Store[FrozenEntity],
        key: Key,
        identity: Hashable,
        lineage: Lineage,
    ) -> FrozenEntity:
        """Build the entity of a key whose first message has come (state-1)."""
        store.expect(key, identity)
        builder = store.partition.builder
        state = call_user_code(builder.call, place.reason)
        self._observer.built(place, lineage, key, builder, state)
        entity = store.entities[identity] = FrozenEntity(key, self._freeze(state))
        store.touch(identity)
        return entity

    def _visit(self, place: Place, entity: FrozenEntity, message: Any, lineage: Lineage) -> Any:
        """Call the state computation, update the entity, and return the frozen output.

        One that belongs to pipelines returns its output alone, and its state is kept (key-3).
        """
        assert place.stateful is not None
        operation = place.stateful
        self._observer.met(entity)
        thawed = thaw(message)
        state = thaw(entity.state)
        try:
            result = call_user_code(place.call, place.reason, thawed, state)
            returned, changed = pair_of(result) if operation.computation.pair else (result, True)
            if not place.multi:
                output = None if returned is None else self._freeze(returned)  # state-5, state-6
            else:
                returned, output = self._items(place, returned)
            after = self._freeze(state) if changed else entity.state
        except DeadLetterError as dead:
            self._observer.failed(place, lineage, entity, state, dead)
            raise  # the entity is as before the call: state-2, state-7
        if changed:
            entity.like = None
        else:  # state-4: what the call did to its copy is dropped
            self._observer.unchanged(place, lineage, entity, state)
        entity.state = after  # state-3
        self._observer.visited(place, lineage, entity, thawed, state, returned)
        return output

    # -- graphs and keys -------------------------------------------------------------------------

    def _pass_on(
        self,
        place: Place,
        operation: Windowed | KeyBy | Collect | Merge | Branch,
        message: Any,
        lineage: Lineage,
    ) -> None:
        """Process a message in a step that passes it on unchanged."""
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
            key = self._called_for_key(place, operation.route, message, lineage)
            judged_key(key)
        except DeadLetterError as dead:
            self._add_dead_letter(place, lineage, None, dead)
            return
        self._follow_with(replace(self._context, key=key), place, message, lineage)

    def _key_of_message(self, operation: Stateful | Windowed) -> Key:
        """Return the key of a message at a step without a partition function (key-1).

        In the builder's form a window's message has no key for the next step (route-6, key-2).
        """
        return self._context.key if operation.keyed else SINGLE_KEY

    def _called_for_key(
        self, place: Place, route: PartitionFunction, message: Any, lineage: Lineage
    ) -> Any:
        """Return the partition function's result for a message; its changes are lost (route-1)."""
        thawed = thaw(message)
        key = call_user_code(route.call, place.reason, thawed)
        self._observer.routed(place, lineage, message, thawed)
        return key

    # -- windows ---------------------------------------------------------------------------------

    def _put_into_window(
        self, place: Place, operation: Windowed, message: Any, lineage: Lineage
    ) -> None:
        step, _ = self._windows[place]
        key: Key | None = None
        try:
            if operation.route is None:
                candidate: Any = self._key_of_message(operation)
            else:
                candidate = self._called_for_key(place, operation.route, message, lineage)
            identity = judged_key(candidate)
            key = candidate
            arrival = Arrival(message, key, identity, self._context.time, self._watermarks.now)
            self._putting = lineage, key
            firing = step.take(arrival)
        except DeadLetterError as dead:
            self._add_dead_letter(place, lineage, key, dead)
            return
        if firing is not None:
            self._fire(place, step, firing, lineage)

    def _begun(self, place: Place, accumulator: Any) -> Any:
        """Return an initial accumulator as a window's own: it may be handed out again (window-5).

        Raises:
            UnportableError: it cannot be copied.
        """
        self._observer.accumulated(place, *self._putting, accumulator)
        return thaw(self._freeze(accumulator))

    def _fire(
        self, place: Place, step: WindowStep[Any, Any], firing: Firing, lineage: Lineage
    ) -> None:
        """Process what a window gives; the window itself is gone already (window-4, window-9)."""
        before = self._context
        self._observer.fired(place, lineage, firing, step.watermark)
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
        self._observer.ended()

    # -- sinks -----------------------------------------------------------------------------------

    def _encode(self, place: Place, message: Any, lineage: Lineage) -> None:
        try:
            thawed = thaw(message)
            output = call_user_code(place.call, place.reason, thawed)
            if output is None:  # sink-1
                return
            written: Output
            if place.kafka is None:
                written = written_of(output)
            else:
                assert place.sink is not None
                there = self.topics.get(place.sink)
                written = produced_of(place.kafka, output, self._context.time, lineage[0], there)
        except DeadLetterError as dead:
            self._add_dead_letter(place, lineage, None, dead)
            return
        assert place.sink is not None
        self.outputs[place.sink].append(written)
        self._observer.encoded(place, lineage, message, thawed, written)

    # -- what can go wrong -----------------------------------------------------------------------

    def _add_dead_letter(
        self, place: Place, lineage: Lineage, key: Key | None, dead: DeadLetterError
    ) -> None:
        """Add a dead letter; with `--on-error stop` the run ends here."""
        self._observer.died(place, lineage, key, dead)
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
        raise RunIsOver


def _window_step(operation: Windowed, freeze: Freeze, begun: Freeze) -> WindowStep[Any, Any]:
    """Return the windows of a step, none of them open yet."""
    windows = operation.windows
    if isinstance(windows, RangeWindows):
        return RangeStep(operation, windows, freeze, begun)
    if isinstance(windows, SessionWindows):
        return SessionStep(operation, windows, freeze, begun)
    return CountStep(operation, windows, freeze, begun)
