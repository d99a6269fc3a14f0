"""The interpreter: what an application means, in `isolated` mode, rule by rule.

Theory of operation
-------------------
The machine processes one frame completely before it begins the next. A frame's payload is decoded,
and the message goes down the graph depth first: each output of a step goes through all steps and
sinks behind it before the step's next output does. So every entity meets its messages, and every
sink gets its outputs, in order of lineage (order-1), and nothing needs sorting.

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
from typing import Any, Literal, NoReturn

from wallaroo.canonical import structure_or_kind
from wallaroo.keys import (
    SINGLE_KEY,
    Key,
    partition_number,
)
from wallaroo.operations import Stateful
from wallaroo.topology import Application, SinkId
from wallaroo.trace import DeadLetter, Ended, Entity, Finding, Lineage
from wallaroo_reference.copies import freeze, thaw
from wallaroo_reference.dead_letter import DeadLetterError, dead_letter_from
from wallaroo_reference.findings import Observer
from wallaroo_reference.meter import Meter, TooMuchOutputError
from wallaroo_reference.places import FrozenEntity, Place, Store, places
from wallaroo_reference.results import BadResultError, items_of, pair_of, written_of


class Interpreter:
    """An application, running in `isolated` mode; see `wallaroo_reference.machine.Machine`.

    Args:
        application: what to run.
        partitions: number of partitions, for the entities' partition numbers (route-4).
        on_error: ``stop`` ends the run at the first dead letter (dead-4).
        thorough: look for findings at every call, not at a sample of them.
    """

    def __init__(
        self,
        application: Application,
        *,
        partitions: int = 1,
        on_error: str = "skip",
        thorough: bool = False,
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
        self._places = places(application)
        self._payload = b""

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings about the application, in the order in which they were found."""
        return self._observer.findings

    def feed(self, source: str, payloads: Sequence[bytes]) -> None:
        """Process frames of one source, in order."""
        place = self._places[source]
        self.meter.begin(payloads, self.sequence)
        for payload in payloads:
            if self.ended is not None:
                return
            self._payload = payload
            lineage = (self.sequence,)
            self.sequence += 1
            try:
                self._decode(place, payload, lineage)
            except _Stop:
                return

    def entities(self) -> list[Entity]:
        """Return the state entities as they are now."""
        return [
            Entity(
                name,
                entity.key,
                partition_number(entity.key, self._partitions),
                structure_or_kind(thaw(entity.state)),
            )
            for name, store in self._stores.items()
            for entity in store.entities.values()
        ]

    # -- decode ------------------------------------------------------------------------------

    def _decode(self, place: Place, payload: bytes, lineage: Lineage) -> None:
        try:
            try:
                message = place.call(payload)
            except BaseException as error:
                raise dead_letter_from(error, place.reason) from error
            if message is None:  # decode-1
                return
            produced = freeze(message)
        except DeadLetterError as dead:
            self._add_dead_letter(place, lineage, None, dead)
            return
        self._observer.decoded(place, lineage)
        self._follow(place, produced, lineage)

    def _follow(self, place: Place, message: Any, lineage: Lineage) -> None:
        """Process a frozen output of `place` in each of its consumers, completely (order-1)."""
        for consumer in place.consumers:
            if consumer.sink is not None:
                self._encode(consumer, message, lineage)
            elif consumer.stateful is not None:
                self._compute_with_state(consumer, consumer.stateful, message, lineage)
            else:
                self._compute(consumer, message, lineage)

    # -- computations ------------------------------------------------------------------------

    def _compute(self, place: Place, message: Any, lineage: Lineage) -> None:
        try:
            mine = thaw(message)
            try:
                result = place.call(mine)
            except BaseException as error:
                raise dead_letter_from(error, place.reason) from error
            if not place.multi:
                output = None if result is None else freeze(result)  # compute-1
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
            items = items_of(result)
        except BadResultError:
            raise
        except BaseException as error:
            raise dead_letter_from(error, place.reason) from error
        return items, [freeze(item) for item in items]

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
            output = self._visit(place, entity, message, lineage)
        except DeadLetterError as dead:
            self._add_dead_letter(place, lineage, key, dead)
            return
        self._send(place, output, lineage)

    def _route(self, place: Place, operation: Stateful, message: Any, lineage: Lineage) -> Any:
        """Return the message's key; changes the partition function makes are lost (route-1)."""
        route = operation.route
        if route is None:  # route-6
            return SINGLE_KEY
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
        entity = store.entities[known] = FrozenEntity(key, freeze(state))
        return entity

    def _visit(self, place: Place, entity: FrozenEntity, message: Any, lineage: Lineage) -> Any:
        """Call the state computation, update the entity, and return the frozen output."""
        mine = thaw(message)
        state = thaw(entity.state)
        try:
            try:
                result = place.call(mine, state)
            except BaseException as error:
                raise dead_letter_from(error, place.reason) from error
            given, changed = pair_of(result)  # state-2
            if not place.multi:
                output = None if given is None else freeze(given)  # state-5, state-6
            else:
                given, output = self._items(place, given)
            after = freeze(state) if changed else entity.state
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
                source=place.source,
                pipeline=place.pipeline,
                step=place.step,
                position=place.position,
                sink=None if place.sink is None else place.sink[1],
                key=key,
                reason=dead.reason,
                error_type=dead.error_type,
                error=dead.error,
                payload=self._payload,
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


class _Stop(Exception):  # noqa: N818 - control flow
    """The run is over."""
