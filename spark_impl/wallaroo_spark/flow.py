"""An application's code, run from one state partition to the next.

A `Flow` takes frames (`decode`) or messages that stand before a state step (`visit`) and follows
each, depth first, through stateless steps, through state steps of the component it holds, and into
sinks. Where a message needs an entity that is held elsewhere, its key is found here and the message
goes into the outbox.

For each node that a message can come to there is one function, made when it is first needed, which
knows all that does not change from message to message: the user's call, the place to name in a dead
letter, the functions of the nodes behind. It takes a message's lineage, a value that it may hand to
user code, and the message frozen.

Two modes: `isolated` hands every call copies of its own. `trusting` shares, freezes only what may
leave, and raises `Redo` where the rules cannot be kept without copies (a state computation failed
and its entity may be half changed): the caller then does the same stretch again, isolated.

Calls are made in their order (`wallaroo_spark.outbox.Order`). So a call at which the run ends is
the last that a flow makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from wallaroo.keys import SINGLE_KEY
from wallaroo.topology import Sink, Source, Stateful, Stateless, Step
from wallaroo.trace import Lineage, Reason, describe_error
from wallaroo_spark.columns import Arrival, Messages, Outputs
from wallaroo_spark.outbox import End, Letter, Order, Outbox
from wallaroo_spark.plan import Component
from wallaroo_spark.portable import ATOMS, freeze, freeze_checked, thaw
from wallaroo_spark.prints import Printer
from wallaroo_spark.program import Place, Program
from wallaroo_spark.results import FateError, encoded, iterator_of, split_pair
from wallaroo_spark.states import ABSENT, Redo, States, entity_id
from wallaroo_spark.watch import Teller

_Take = Callable[[Lineage, Any, Any], None]
"""Takes a message: its lineage, a value for user code, and its frozen form."""

_Visit = Callable[[Lineage, bytes, Any, Any], None]
"""Takes a message to its entity: lineage, encoded key, value, frozen form."""

_Made = tuple[Any, Any]
"""A new message: a value for user code, and its frozen form."""


class Flow:
    """See the module.

    Args:
        program: the application.
        isolated: the mode.
        stop_on_error: a dead letter is the end of the run (dead-4).
        limit: calls after this one in order are not made.
        printer: told which step is at work, so that what it prints can be marked.
        teller: told of each call, where a batch is watched.
    """

    def __init__(
        self,
        program: Program,
        *,
        isolated: bool,
        stop_on_error: bool,
        limit: Order | None,
        printer: Printer,
        teller: Teller | None = None,
    ) -> None:
        self.outbox = Outbox()
        self._program = program
        self._nodes = program.application.nodes
        self._isolated = isolated
        self._stop_on_error = stop_on_error
        self._limit = limit
        self._printer = printer
        self._teller = teller
        self._lineage: Lineage = ()  # of the call that is told of
        self._ended = False
        self._here: Component | None = None
        self._states: States | None = None
        self._takes: dict[int, _Take] = {}
        self._visits: dict[int, _Visit] = {}

    def hold(self, component: Component, states: States) -> None:
        """Hold a component's entities: its state steps are run here from now on."""
        self._here = component
        self._states = states

    def decode(self, source: str, first: int, payloads: Iterable[bytes]) -> None:
        """Take frames of one source that follow each other, and follow their messages.

        Args:
            source: its name.
            first: the first frame's sequence.
            payloads: of the frames.
        """
        take = self._take(self._program.sources[source])
        if self._ended:
            return
        try:
            for sequence, payload in enumerate(payloads, first):
                take((sequence,), payload, None)
        except _Ended:
            self._ended = True

    def visit(self, arrivals: Iterable[Arrival]) -> None:
        """Take messages, in their order, to the state steps they stand before, held here."""
        visits = self._visits
        try:
            for lineage, node, key, frozen in arrivals:
                visit = visits.get(node) or self._visit(node)
                value = frozen if type(frozen) is not tuple else thaw(frozen)
                visit(lineage, key, value, frozen)
        except _Ended:
            self._ended = True

    # -- from node to node -------------------------------------------------------------------

    def _take(self, index: int) -> _Take:
        """Return the function of a node."""
        take = self._takes.get(index)
        if take is None:
            node = self._nodes[index]
            if isinstance(node, Source):
                make = self._decoder
            elif isinstance(node, Sink):
                make = self._encoder
            elif isinstance(node.operation, Stateless):
                multi = node.operation.computation.multi
                make = self._multi_computation if multi else self._computation
            else:
                make = self._route
            take = self._takes[index] = self._bounded(index, make(index))
        return take

    def _follow(self, origin: int) -> _Take:
        """Return what takes a message of a node to all behind it, each to its end (order-1)."""
        takes = [self._take(index) for index in self._program.application.consumers[origin]]
        if len(takes) == 1:
            return takes[0]
        again = self._again

        def follow(lineage: Lineage, value: Any, frozen: Any) -> None:
            for number, take in enumerate(takes):
                take(lineage, again(value, frozen) if number else value, frozen)

        return follow

    def _follow_items(self, origin: int) -> Callable[[Lineage, list[_Made | None]], None]:
        """Return what takes the items of a multi result on, one after the other."""
        follow = self._follow(origin)

        def follow_items(lineage: Lineage, items: list[_Made | None]) -> None:
            for number, made in enumerate(items):
                if made is not None:
                    follow((*lineage, number), *made)

        return follow_items

    @property
    def _again(self) -> Callable[[Any, Any], Any]:
        """Return what gives a second call the same message: a copy, or the one there is."""
        return (lambda _, frozen: thaw(frozen)) if self._isolated else (lambda value, _: value)

    def _maker(self, node: int) -> Callable[[Any], _Made]:
        """Return what makes a message of a value a call has just made, or raises `unportable`."""
        if self._isolated:

            def made(value: Any) -> _Made:
                frozen, copy = freeze_checked(value)
                return copy, frozen

        elif self._program.departs[node]:

            def made(value: Any) -> _Made:
                return value, freeze(value)

        else:

            def made(value: Any) -> _Made:
                return value, None

        return made

    # -- nodes -------------------------------------------------------------------------------
    #
    # A value of an exact immutable type is its own frozen form in both modes, and most messages
    # are one: that is looked at before a function is called.

    def _decoder(self, index: int) -> _Take:
        place, printer, failed = self._program.places[index], self._printer, self._failed
        name = place.name
        call = self._watched(cast("Source", self._nodes[index]).config.decoder.call, place)
        made, follow = self._maker(index), self._follow(index)

        def take(lineage: Lineage, payload: Any, _: Any) -> None:
            printer.step = name
            try:
                message = frozen = call(payload)
                if message is None:
                    return
                if type(message) not in ATOMS:
                    message, frozen = made(message)
            except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
                failed(place, lineage, Reason.DECODE, error)
                return
            follow(lineage, message, frozen)

        return take

    def _computation(self, index: int) -> _Take:
        place, printer, failed = self._program.places[index], self._printer, self._failed
        name = place.name
        call = self._watched(self._step(index).operation.computation.call, place)
        made, follow = self._maker(index), self._follow(index)

        def take(lineage: Lineage, value: Any, frozen: Any) -> None:
            printer.step = name
            try:
                message = frozen = call(value)
                if message is None:
                    return
                if type(message) not in ATOMS:
                    message, frozen = made(message)
            except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
                failed(place, lineage, Reason.RAISED, error)
                return
            follow(lineage, message, frozen)

        return take

    def _multi_computation(self, index: int) -> _Take:
        place, printer, failed = self._program.places[index], self._printer, self._failed
        name = place.name
        call = self._watched(self._step(index).operation.computation.call, place)
        consume, made = self._watched(_consume, place), self._maker(index)
        follow_items = self._follow_items(index)

        def take(lineage: Lineage, value: Any, _: Any) -> None:
            printer.step = name
            try:
                # Consuming the result is part of the call (compute-2).
                items = _all_made(consume(call(value)), made)
            except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
                failed(place, lineage, Reason.RAISED, error)
                return
            follow_items(lineage, items)

        return take

    def _route(self, index: int) -> _Take:
        """Return what finds a message's key, and takes it to its entity or sends it there."""
        place, printer, failed = self._program.places[index], self._printer, self._failed
        name = place.name
        operation = cast("Stateful", self._step(index).operation)
        component = self._program.component_of(operation)
        here = component is self._here
        goes = self._goes_on(index) if here else self._sends(index, component)
        keys = self._program.keys[operation.partition]
        if operation.route is None:
            single = keys.judge(SINGLE_KEY)
            return lambda lineage, value, frozen: goes(lineage, *single, value, frozen)
        known, judge = keys.known, keys.judge
        call = self._watched(operation.route.call, place)

        def take(lineage: Lineage, value: Any, frozen: Any) -> None:
            printer.step = name
            try:
                key = call(value)
                memory = known.get(type(key))
                found = None if memory is None else memory.get(key)
                encoded, number = judge(key) if found is None else found
            except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
                failed(place, lineage, Reason.RAISED, error)
                return
            goes(lineage, encoded, number, value, frozen)

        return take

    def _sends(self, index: int, component: Component) -> Callable[..., None]:
        """Return what puts a message into the outbox, for the shard that holds its entity."""
        outbox = self.outbox
        appends: dict[int, tuple[Callable[[Any], None], ...]] = {}

        def send(lineage: Lineage, key: bytes, number: int, _: Any, frozen: Any) -> None:
            found = appends.get(number)
            if found is None:
                run = Messages(index)
                outbox.messages.append((component.index, number, run))
                found = appends[number] = (
                    run.lineages.append,
                    run.keys.append,
                    run.messages.append,
                )
            add_lineage, add_key, add_message = found
            add_lineage(lineage)
            add_key(key)
            add_message(frozen)

        return send

    def _goes_on(self, index: int) -> Callable[..., None]:
        """Return what takes a message whose key is known to its entity, which is here."""
        visit, again = self._visit(index), self._again

        def go(lineage: Lineage, key: bytes, _: int, value: Any, frozen: Any) -> None:
            visit(lineage, key, again(value, frozen), frozen)

        return go

    def _visit(self, index: int) -> _Visit:
        """Return what takes a message whose key is known to a state step held here."""
        visit = self._visits.get(index)
        if visit is None:
            multi = self._step(index).operation.computation.multi
            visit = self._visits[index] = self._bounded(index, self._state_step(index, multi=multi))
        return visit

    def _state_step(self, index: int, *, multi: bool) -> _Visit:
        place, printer = self._program.places[index], self._printer
        name = place.name
        operation = cast("Stateful", self._step(index).operation)
        assert self._here is not None
        assert self._states is not None
        prefix = entity_id(self._here, operation.partition, b"")
        states, keep, add = self._states, self._states.keep, self._states.build
        application = self._program.application
        build = self._watched(application.partition[operation.partition].builder.call, place)
        call = self._watched(operation.computation.call, place)
        consume, made = self._watched(_consume, place), self._maker(index)
        failed = self._failed if self._isolated else _redo
        follow, follow_items = self._follow(index), self._follow_items(index)

        def visit(lineage: Lineage, key: bytes, value: Any, _: Any) -> None:
            printer.step = name
            entity = prefix + key if prefix else key
            state = states[entity]
            try:
                if state is ABSENT:  # state-1
                    state = add(entity, build())
                result = call(value, state)
                if type(result) is tuple and len(result) == 2 and type(result[1]) is bool:
                    output, changed = result
                else:
                    output, changed = split_pair(result)
                frozen = output
                if multi:
                    items = _all_made(consume(output), made)
                elif type(output) not in ATOMS:
                    output, frozen = made(output)
                if changed:
                    keep(entity, state)
            except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
                failed(place, lineage, Reason.RAISED, error, key)
                return
            if multi:
                follow_items(lineage, items)
            elif output is not None:
                follow(lineage, output, frozen)

        return visit

    def _encoder(self, index: int) -> _Take:
        place, printer, failed = self._program.places[index], self._printer, self._failed
        name = place.name
        call = self._watched(cast("Sink", self._nodes[index]).config.encoder.call, place)
        run = Outputs(index)
        self.outbox.finished.outputs.append(run)
        add_lineage, add_output = run.lineages.append, run.outputs.append

        def take(lineage: Lineage, value: Any, _: Any) -> None:
            printer.step = name
            try:
                output = call(value)
                if output is None:
                    return
                if type(output) is not bytes:
                    output = encoded(output)
            except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
                failed(place, lineage, Reason.ENCODE, error)
                return
            add_lineage(lineage)
            add_output(output)

        return take

    def _step(self, index: int) -> Step:
        return cast("Step", self._nodes[index])

    # -- limits and watches: only where there are any ----------------------------------------

    def _bounded(self, index: int, take: Callable[..., None]) -> Callable[..., None]:
        """Return `take`, or what leaves it alone after the limit."""
        limit, place = self._limit, self._program.places[index]
        if limit is None and self._teller is None:
            return take

        def bounded(lineage: Lineage, *message: Any) -> None:
            if limit is None or (lineage, place.position, place.sink) <= limit:
                self._lineage = lineage
                take(lineage, *message)

        return bounded

    def _watched(self, call: Callable[..., Any], place: Place) -> Callable[..., Any]:
        """Return `call`, or what tells of it as well."""
        teller = self._teller
        if teller is None:
            return call

        def told(*given: Any) -> Any:
            order = (self._lineage, place.position, place.sink)
            teller.begins(order, place.pipeline, place.step)
            try:
                return call(*given)
            finally:
                teller.ends()

        return told

    # -- what goes wrong ---------------------------------------------------------------------

    def _failed(
        self,
        place: Place,
        lineage: Lineage,
        reason: Reason,
        error: BaseException,
        key: bytes | None = None,
    ) -> None:
        """Make of what a call raised a dead letter, or the run's end (dead-3, dead-4)."""
        at = (lineage, place.position, place.sink)
        where = (place.pipeline, place.step)
        fate: tuple[bytes | None, str, str | None, str]
        if isinstance(error, FateError):
            fate = (error.key or key, error.reason.value, None, str(error))
        elif isinstance(error, Exception):
            fate = (key, reason.value, type(error).__name__, describe_error(error))
        else:
            self.outbox.finished.ends.append(End(at, "exit", *where, type(error).__name__))
            raise _Ended
        self.outbox.finished.letters.append(Letter(*at, *where, *fate))
        if self._stop_on_error:
            self.outbox.finished.ends.append(End(at, "on-error", *where, None))
            raise _Ended


def _redo(place: Place, lineage: Lineage, reason: Reason, error: BaseException, key: bytes) -> None:
    """Have a failure in trusting mode met again, isolated."""
    del place, lineage, reason, key
    raise Redo from error


def _consume(result: Any) -> list[Any]:
    return list(iterator_of(result))


def _all_made(items: list[Any], made: Callable[[Any], _Made]) -> list[_Made | None]:
    """Return the messages of a multi result; `None` in the place of those left out."""
    return [
        None if item is None else (item, item) if type(item) in ATOMS else made(item)
        for item in items
    ]


class _Ended(Exception):  # noqa: N818 - no error: user code ended the run
    """This flow makes no more calls."""
