"""What is done with a message at each kind of node: a function for each, made for one flow.

Such a function knows all that does not change from message to message: the user's call, the place
to name in a dead letter, the functions of the nodes behind. It takes a message's lineage, a value
that it may hand to user code, and the message frozen.

A value of an exact immutable type is its own frozen form in both modes, and most messages are one:
that is looked at before a function is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wallaroo.keys import SINGLE_KEY
from wallaroo.topology import Node, Sink, Source, Stateful, Stateless
from wallaroo.trace import Lineage, Reason
from wallaroo_spark.wire.columns import Messages, Outputs
from wallaroo_spark.worker.plan import Component
from wallaroo_spark.worker.portable import ATOMS
from wallaroo_spark.worker.program import Place
from wallaroo_spark.worker.results import encoded, iterator_of, split_pair
from wallaroo_spark.worker.states import ABSENT, Redo, entity_id

if TYPE_CHECKING:
    from wallaroo_spark.worker.flow import Flow

Take = Callable[[Lineage, Any, Any], None]
"""Takes a message: its lineage, a value for user code, and its frozen form."""

Visit = Callable[[Lineage, bytes, Any, Any], None]
"""Takes a message to its entity: lineage, encoded key, value, frozen form."""

Made = tuple[Any, Any]
"""A new message: a value for user code, and its frozen form."""


def take_of(flow: Flow, index: int) -> Take:
    """Return the function of a node."""
    node: Node = flow.program.application.nodes[index]
    if isinstance(node, Source):
        return _one_from_one(flow, index, node.config.decoder.call, Reason.DECODE)
    if isinstance(node, Sink):
        return _encoder(flow, index, node)
    operation = node.operation
    if isinstance(operation, Stateful):
        return _route(flow, index, operation)
    if operation.computation.multi:
        return _many_from_one(flow, index, operation)
    return _one_from_one(flow, index, operation.computation.call, Reason.RAISED)


def _one_from_one(flow: Flow, index: int, call: Callable[[Any], Any], reason: Reason) -> Take:
    """Return the function of a decoder, or of a computation that gives one message."""
    place, printer, failed = flow.program.places[index], flow.printer, flow.failed
    name, call = place.name, flow.watched(call, place)
    made, follow = flow.maker(index), flow.follow(index)

    def take(lineage: Lineage, value: Any, frozen: Any) -> None:
        printer.step = name
        try:
            message = frozen = call(value)
            if message is None:
                return
            if type(message) not in ATOMS:
                message, frozen = made(message)
        except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
            failed(place, lineage, reason, error)
            return
        follow(lineage, message, frozen)

    return take


def _many_from_one(flow: Flow, index: int, operation: Stateless) -> Take:
    """Return the function of a multi computation."""
    place, printer, failed = flow.program.places[index], flow.printer, flow.failed
    name, call = place.name, flow.watched(operation.computation.call, place)
    consume, made = flow.watched(_consume, place), flow.maker(index)
    follow_items = flow.follow_items(index)

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


def _route(flow: Flow, index: int, operation: Stateful) -> Take:
    """Return what finds a message's key, and takes it to its entity or sends it there."""
    place, printer, failed = flow.program.places[index], flow.printer, flow.failed
    component = flow.program.component_of(operation)
    here = component is flow.here
    goes = _goes_on(flow, index) if here else _sends(flow, index, component)
    keys = flow.program.keys[operation.partition]
    if operation.route is None:
        single = keys.judge(SINGLE_KEY)
        return lambda lineage, value, frozen: goes(lineage, *single, value, frozen)
    known, judge = keys.known, keys.judge
    name, call = place.name, flow.watched(operation.route.call, place)

    def take(lineage: Lineage, value: Any, frozen: Any) -> None:
        printer.step = name
        try:
            key = call(value)
            memory = known.get(type(key))
            found = None if memory is None else memory.get(key)
            entity_key, number = judge(key) if found is None else found
        except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
            failed(place, lineage, Reason.RAISED, error)
            return
        goes(lineage, entity_key, number, value, frozen)

    return take


def _sends(flow: Flow, index: int, component: Component) -> Callable[..., None]:
    """Return what puts a message into the outbox, for the shard that holds its entity."""
    outbox = flow.outbox
    appends: dict[int, tuple[Callable[[Any], None], ...]] = {}

    def send(lineage: Lineage, key: bytes, number: int, _: Any, frozen: Any) -> None:
        found = appends.get(number)
        if found is None:
            run = Messages(index)
            outbox.messages.append((component.index, number, run))
            found = run.lineages.append, run.keys.append, run.messages.append
            appends[number] = found
        add_lineage, add_key, add_message = found
        add_lineage(lineage)
        add_key(key)
        add_message(frozen)

    return send


def _goes_on(flow: Flow, index: int) -> Callable[..., None]:
    """Return what takes a message whose key is known to its entity, which is here."""
    visit, again = flow.visit_at(index), flow.again

    def go(lineage: Lineage, key: bytes, _: int, value: Any, frozen: Any) -> None:
        visit(lineage, key, again(value, frozen), frozen)

    return go


def state_step(flow: Flow, index: int, operation: Stateful) -> Visit:
    """Return what takes a message whose key is known to a state step that is held here."""
    place, printer = flow.program.places[index], flow.printer
    name, multi = place.name, operation.computation.multi
    assert flow.here is not None
    assert flow.states is not None
    prefix = entity_id(flow.here, operation.partition, b"")
    states, keep, add = flow.states, flow.states.keep, flow.states.build
    application = flow.program.application
    build = flow.watched(application.partition[operation.partition].builder.call, place)
    call = flow.watched(operation.computation.call, place)
    consume, made = flow.watched(_consume, place), flow.maker(index)
    failed = flow.failed if flow.isolated else _redo
    follow, follow_items = flow.follow(index), flow.follow_items(index)

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


def _encoder(flow: Flow, index: int, sink: Sink) -> Take:
    place, printer, failed = flow.program.places[index], flow.printer, flow.failed
    name, call = place.name, flow.watched(sink.config.encoder.call, place)
    run = Outputs(index)
    flow.outbox.finished.outputs.append(run)
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


def _redo(place: Place, lineage: Lineage, reason: Reason, error: BaseException, key: bytes) -> None:
    """Have a failure in trusting mode met again, isolated."""
    del place, lineage, reason, key
    raise Redo from error


def _consume(result: Any) -> list[Any]:
    return list(iterator_of(result))


def _all_made(items: list[Any], made: Callable[[Any], Made]) -> list[Made | None]:
    """Return the messages of a multi result; `None` in the place of those left out."""
    return [
        None if item is None else (item, item) if type(item) in ATOMS else made(item)
        for item in items
    ]
