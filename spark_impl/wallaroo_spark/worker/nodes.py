"""What is done with a message at each kind of node: a function for each node, made for one flow.

Such a function knows what is the same for all messages: the user's call, the place to name in a
dead letter, the functions of the nodes behind. Its arguments are a message's lineage, a value for
user code, and the frozen message.

A value of an exact immutable type is its own frozen form in both modes, unless the application has
a codec. Most messages are such values, so this is checked before `freeze` is called.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable
from typing import Any

from wallaroo.components import EventTime
from wallaroo.judging import DeadLetterError, items_of, pair_of
from wallaroo.kafka import KafkaSourceConfig
from wallaroo.keys import decode_key, identity
from wallaroo.operations import Branch, KeyBy, Stateful, Stateless, Windowed
from wallaroo.times import BadTimeError, event_time_from, refuse_ahead
from wallaroo.trace import Reason
from wallaroo_spark.wire.lineages import Lineage
from wallaroo_spark.wire.outbox import Messages
from wallaroo_spark.worker.calls import SINGLE, Calls, Made
from wallaroo_spark.worker.plan import StateGroup
from wallaroo_spark.worker.program import Place
from wallaroo_spark.worker.states import ABSENT, NeedsIsolation, States, entity_id

TakeMessage = Callable[[Lineage, Any, Any], None]
"""Takes a message: its lineage, a value for user code, and its frozen form."""

TakeItems = Callable[[Lineage, list[Made | None]], None]
"""Takes the items of a multi result; `None` in the place of one that is left out."""

VisitEntity = Callable[[Lineage, bytes, Any, Any], None]
"""Takes a message to its entity: lineage, encoded key, value, frozen form."""

TakeKeyed = Callable[[Lineage, bytes, int, Any, Any], None]
"""Takes a message with a known key: lineage, encoded key, partition number, value, frozen form."""


def one_from_one(
    calls: Calls, index: int, call: Callable[[Any], Any], reason: Reason, follow: TakeMessage
) -> TakeMessage:
    """Return the function of a decoder, or of a computation that gives one message."""
    place, printer, failed = calls.program.places[index], calls.printer, calls.failed
    name, call = place.name, calls.reported(call, place)
    made, atoms = calls.maker(index), calls.program.copies.atoms

    def take(lineage: Lineage, value: Any, frozen: Any) -> None:
        printer.step = name
        try:
            message = frozen = call(value)
            if message is None:
                return
            if type(message) not in atoms:
                message, frozen = made(message)
        except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
            failed(place, lineage, reason, error)
            return
        follow(lineage, message, frozen)

    return take


def consumed(calls: Calls, config: KafkaSourceConfig[Any], decode: TakeMessage) -> TakeMessage:
    """Return the function of a Kafka source, which decodes a record's value, or the record.

    A tombstone goes to decoders of records only (kafka-7).
    """
    of_values, of_records = not config.whole, config.decoder.whole

    def take(lineage: Lineage, consumed: Any, _: Any) -> None:
        calls.record = consumed
        given = consumed if of_values or of_records else consumed.value
        if given is not None:
            decode(lineage, given, None)

    return take


def generated(calls: Calls, index: int, follow: TakeMessage) -> TakeMessage:
    """Return the function of a generator source: its values are messages (graph-4)."""
    place, failed = calls.program.places[index], calls.failed
    made, atoms = calls.maker(index), calls.program.copies.atoms

    def take(lineage: Lineage, value: Any, frozen: Any) -> None:
        frozen = value
        try:
            if type(value) not in atoms:
                value, frozen = made(value)
        except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
            failed(place, lineage, Reason.UNPORTABLE, error)
            return
        follow(lineage, value, frozen)

    return take


def timed(
    calls: Calls,
    index: int,
    event_time: tuple[EventTime, int | None],
    note_time: Callable[[int], None],
    follow: TakeMessage,
) -> TakeMessage:
    """Return the function that finds a decoded message's event time (time-2).

    Args:
        calls: how user code is called.
        index: the source's node.
        event_time: finds event times; how far these may be ahead of the arrival time (time-2).
        note_time: gets each event time before the message goes on.
        follow: takes the message to the nodes behind.
    """
    place, printer, failed = calls.program.places[index], calls.printer, calls.failed
    find, max_ahead = event_time
    name, call, again = find.name, calls.reported(find.call, place), calls.again

    def take(lineage: Lineage, value: Any, frozen: Any) -> None:
        printer.step = name
        try:
            result = call(calls.record if find.of_record else value)  # kafka-8
            try:
                time = event_time_from(result)
                if max_ahead is not None:
                    assert calls.times is not None  # time decides in this application
                    if time - calls.times.arrived > max_ahead:
                        refuse_ahead(time, max_ahead)
            except BadTimeError as error:
                raise DeadLetterError(Reason.BAD_TIME, str(error)) from None
        except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
            failed(place, lineage, Reason.RAISED, error)
            return
        note_time(time)
        follow(lineage, again(value, frozen), frozen)

    return take


def many_from_one(
    calls: Calls, index: int, operation: Stateless, follow_items: TakeItems
) -> TakeMessage:
    """Return the function of a multi computation."""
    place, printer, failed = calls.program.places[index], calls.printer, calls.failed
    name, call = place.name, calls.reported(operation.computation.call, place)
    consume, made = calls.reported(items_of, place), calls.maker(index)
    atoms = calls.program.copies.atoms

    def take(lineage: Lineage, value: Any, _: Any) -> None:
        printer.step = name
        try:
            # Consuming the result is part of the call (compute-2).
            items = _all_made(consume(call(value)), made, atoms)
        except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
            failed(place, lineage, Reason.RAISED, error)
            return
        follow_items(lineage, items)

    return take


def branch(operation: Branch, follow: TakeMessage) -> TakeMessage:
    """Return the function of a branch: its number enters the lineage."""
    number = operation.number

    def take(lineage: Lineage, value: Any, frozen: Any) -> None:
        follow((*lineage, number), value, frozen)

    return take


def collect(calls: Calls, follow: TakeMessage) -> TakeMessage:
    """Return the function that gives every message the same key."""

    def take(lineage: Lineage, value: Any, frozen: Any) -> None:
        _follow_with(calls, SINGLE, follow, lineage, value, frozen)

    return take


def key_by(calls: Calls, index: int, operation: KeyBy, follow: TakeMessage) -> TakeMessage:
    """Return the function that finds a message's key, which stays with the message."""
    place, printer, failed = calls.program.places[index], calls.printer, calls.failed
    judged_keys, judge = calls.program.keys[index].known, calls.program.keys[index].judge
    again = calls.again
    name, call = place.name, calls.reported(operation.route.call, place)

    def take(lineage: Lineage, value: Any, frozen: Any) -> None:
        printer.step = name
        try:
            candidate = call(value)
            memory = judged_keys.get(type(candidate))
            key, _ = (memory and memory.get(candidate)) or judge(candidate)
        except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
            failed(place, lineage, Reason.RAISED, error)
            return
        _follow_with(calls, key, follow, lineage, again(value, frozen), frozen)

    return take


def _follow_with(
    calls: Calls, key: bytes, follow: TakeMessage, lineage: Lineage, value: Any, frozen: Any
) -> None:
    """Take a message on with another key; after it, the earlier key is set again."""
    before, calls.key = calls.key, key
    follow(lineage, value, frozen)
    calls.key = before


def route(
    calls: Calls, index: int, operation: Stateful | Windowed, take_keyed: TakeKeyed
) -> TakeMessage:
    """Return the function that finds a message's key and takes the message to its entity."""
    place, printer, failed = calls.program.places[index], calls.printer, calls.failed
    keys = calls.program.keys[index]
    if operation.route is None:
        number_of = keys.number
        if operation.keyed:  # key-1

            def take_with_key(lineage: Lineage, value: Any, frozen: Any) -> None:
                take_keyed(lineage, calls.key, number_of(calls.key), value, frozen)

            return take_with_key
        single = SINGLE, number_of(SINGLE)  # route-6, key-2
        return lambda lineage, value, frozen: take_keyed(lineage, *single, value, frozen)
    judged_keys, encoded, numbered = keys.known, keys.encoded, keys.numbered
    name, call = place.name, calls.reported(operation.route.call, place)

    def take(lineage: Lineage, value: Any, frozen: Any) -> None:
        printer.step = name
        entity_key = None
        try:
            key = call(value)
            memory = judged_keys.get(type(key))
            judged = None if memory is None else memory.get(key)
            if judged is None:
                entity_key = encoded(key)
                judged = numbered(key, entity_key)
        except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
            failed(place, lineage, Reason.RAISED, error, entity_key)
            return
        encoded_key, number = judged  # `*judged` in the call takes half as long again
        take_keyed(lineage, encoded_key, number, value, frozen)

    return take


def to_outbox(calls: Calls, index: int, group: StateGroup) -> TakeKeyed:
    """Return the function that puts a message into the outbox, for its entity's shard."""
    outbox = calls.outbox
    appends: dict[int, tuple[Callable[[Any], None], ...]] = {}
    timed = calls.program.timed

    def send(lineage: Lineage, key: bytes, number: int, _: Any, frozen: Any) -> None:
        columns = appends.get(number)
        if columns is None:
            lineages: list[Lineage] = []
            run = Messages(index, lineages)
            outbox.messages.append((group.index, number, run))
            columns = (
                lineages.append,
                run.keys.append,
                run.messages.append,
                run.times.append,
            )
            appends[number] = columns
        add_lineage, add_key, add_message, add_times = columns
        add_lineage(lineage)
        add_key(key)
        add_message(frozen)
        if timed:
            add_times(calls.times)

    return send


def to_entity_here(calls: Calls, visit: VisitEntity) -> TakeKeyed:
    """Return the function that takes a message with a known key to its entity, held here."""
    again = calls.again

    def go(lineage: Lineage, key: bytes, _: int, value: Any, frozen: Any) -> None:
        visit(lineage, key, again(value, frozen), frozen)

    return go


def noted(visit: VisitEntity, visits: list[Hashable]) -> VisitEntity:
    """Return `visit`, which also notes whose entities are visited."""
    identities: dict[bytes, Hashable] = {}

    def visit_and_note(lineage: Lineage, key: bytes, value: Any, frozen: Any) -> None:
        key_identity = identities.get(key)
        if key_identity is None:
            key_identity = identities[key] = identity(decode_key(key))
        visits.append(key_identity)
        visit(lineage, key, value, frozen)

    return visit_and_note


def state_step(
    calls: Calls,
    index: int,
    operation: Stateful,
    held: tuple[StateGroup, States],
    follow: TakeMessage,
    follow_items: TakeItems,
) -> VisitEntity:
    """Return the function that calls a state computation with a message and its entity.

    Args:
        calls: how user code is called.
        index: the step's node.
        operation: the step's operation.
        held: the group that holds its entities, and the entities.
        follow: takes its output to the nodes behind.
        follow_items: takes the items of a multi output to the nodes behind.
    """
    place, printer = calls.program.places[index], calls.printer
    name, multi, pair = place.name, operation.computation.multi, operation.computation.pair
    group, states = held
    atoms = calls.program.copies.atoms
    prefix = entity_id(group, operation.partition, b"")
    keep, add = states.keep, states.build
    partition = calls.program.application.partition[operation.partition]
    expire_after = partition.expire_after
    build = calls.reported(partition.builder.call, place)
    call = calls.reported(operation.computation.call, place)
    consume, made = calls.reported(items_of, place), calls.maker(index)
    failed = calls.failed if calls.isolated else _needs_isolation

    def visit(lineage: Lineage, key: bytes, value: Any, _: Any) -> None:
        printer.step = name
        entity = prefix + key if prefix else key
        if expire_after is not None:
            assert calls.times is not None  # time decides in this application
            states.visit(entity, calls.times.arrived, expire_after)
        state = states[entity]
        try:
            if state is ABSENT:  # state-1
                state = add(entity, build())
            result = call(value, state)
            if not pair:  # key-3
                output, changed = result, True
            elif type(result) is tuple and len(result) == 2 and type(result[1]) is bool:
                output, changed = result
            else:
                output, changed = pair_of(result)
            frozen = output
            if multi:
                items = _all_made(consume(output), made, atoms)
            elif output is not None and type(output) not in atoms:
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


def _needs_isolation(
    place: Place, lineage: Lineage, reason: Reason, error: BaseException, key: bytes
) -> None:
    """Raise: the entity may be half changed, and only isolated mode keeps a copy of it."""
    del place, lineage, reason, key
    raise NeedsIsolation from error


def _all_made(
    items: list[Any], made: Callable[[Any], Made], atoms: Container[type]
) -> list[Made | None]:
    """Return the messages of a multi result, with `None` for items that are left out."""
    return [
        None if item is None else (item, item) if type(item) in atoms else made(item)
        for item in items
    ]
