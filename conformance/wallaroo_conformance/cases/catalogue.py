"""The catalogue as data: what each operator does, shown by inputs and their results.

It is for authors of an engine in another language: they implement operators until the vectors
agree, and refuse cases with other operators. Values are canonical structures
(`wallaroo.canonical.structure`), keys are type-tagged as in traces.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import wallaroo
from wallaroo.aggregations import AggregationRecord, WindowBounds, aggregation_of
from wallaroo.canonical import structure_or_kind
from wallaroo.components import (
    computation_of,
    encoder_of,
    partition_function_of,
    state_builder_of,
    state_computation_of,
)
from wallaroo.judging import BadResultError, items_of
from wallaroo.kafka_records import KafkaRecord
from wallaroo.keys import BadKeyError, encode_key, key_to_json
from wallaroo.records import Consumed
from wallaroo_conformance.cases.operators import (
    AGGREGATIONS,
    BUILDERS,
    COMPUTATIONS,
    DECODERS,
    ENCODERS,
    EVENT_TIMES,
    KEY_LISTS,
    KEYS,
    MULTI_COMPUTATIONS,
    ROUTES,
    STATE_COMPUTATIONS,
    STATE_MULTI_COMPUTATIONS,
    Table,
    Trait,
)
from wallaroo_conformance.cases.operators.aggregations import Unreadable
from wallaroo_conformance.cases.operators.marks import MARKS
from wallaroo_conformance.cases.operators.triples import decoded
from wallaroo_conformance.cases.readable import operator_text
from wallaroo_conformance.cases.records import input_log_of
from wallaroo_conformance.cases.tour import ENDING, GOING_ON, TRIPLES, of_topics

FORMAT = "wallaroo-catalogue/1"

_PAYLOADS = (*GOING_ON, *ENDING)
_PANES = [text for mark in MARKS for text in (("m", f"1{mark}", "m"), ("m", "m", f"1{mark}"))]
"""Texts of the messages of two panes: of the first and second, and of the third."""


def catalogue() -> dict[str, Any]:
    """Return the catalogue as JSON values."""
    return {"format": FORMAT, "operators": [*_operators()], "marks": MARKS}


def _operators() -> Iterator[dict[str, Any]]:
    for name, decoder in DECODERS.items():
        if DECODERS.has(name, Trait.OF_TOPIC):
            reads = wallaroo.KafkaSourceConfig("IN-0", "127.0.0.1:9092", decoder).decoder
            vectors = [_message_vector(reads, record) for record in _records()]
            yield {**_described(DECODERS, name, "decoder of records"), "vectors": vectors}
            continue
        record = wallaroo.TCPSourceConfig("127.0.0.1", 0, decoder).decoder
        payloads = TRIPLES if DECODERS.has(name, Trait.OF_TRIPLES) else _PAYLOADS
        vectors = [_message_vector(record, payload) for payload in payloads]
        framing = {"header_length": record.header_length}
        yield {**_described(DECODERS, name, "decoder"), **framing, "vectors": vectors}
    for table, kind, record_of, vector in _SHOWN_BY_MESSAGES:
        for name in table:
            made = record_of(_component(table, name))
            vectors = [vector(made, message) for message in _messages(table, name)]
            known_as = "computation" in kind and not table.has(name, Trait.OF_STEP)
            step = {"step": made.name} if known_as else {}  # its name in dead letters
            kind_of_it = "key extractor" if name in KEYS else kind
            yield {**_described(table, name, kind_of_it), **step, "vectors": vectors}
    for name, component in BUILDERS.items():
        built = _outcome(_copy(state_builder_of(component)).call)
        yield {**_described(BUILDERS, name, "builder"), "vectors": [built]}
    for name, function in EVENT_TIMES.items():
        shown = _records() if EVENT_TIMES.has(name, Trait.OF_TOPIC) else _triples()
        vectors = [_vector(one, function, _copy(one)) for one in shown]
        yield {**_described(EVENT_TIMES, name, "event time"), "vectors": vectors}
    for name in AGGREGATIONS:
        aggregation = aggregation_of(_component(AGGREGATIONS, name))
        rows = [[["a", 5 + at, text] for at, text in enumerate(texts)] for texts in _PANES]
        vectors = [_aggregation_vector(aggregation, messages) for messages in rows]
        yield {**_described(AGGREGATIONS, name, "aggregation"), "vectors": vectors}
    for name, listed in KEY_LISTS.items():
        kind = "key list, 64-bit" if listed.u64 else "key list"
        yield {"name": name, "kind": kind, "keys": [key_to_json(key) for key in listed.keys]}


def _component(table: Table, name: str) -> Any:
    return table[name]("step") if table.has(name, Trait.OF_STEP) else table[name]


def _aggregation_vector(made: AggregationRecord, messages: list[Any]) -> dict[str, Any]:
    """Return what an aggregation does with two panes, of two messages and of one."""
    calls: list[dict[str, Any]] = []

    def called(method: str, call: Callable[..., Any], *arguments: Any) -> Any:
        kept: list[Any] = []  # the result, unless it raises

        def keep(*given: Any) -> Any:
            kept.append(call(*given))
            return kept[0]

        shown = [structure_or_kind(argument) for argument in arguments]
        after = {"arguments": shown, **_outcome(keep, *arguments)}
        accumulator = arguments[1] if method == "update" else arguments[0]
        after["accumulator"] = structure_or_kind(accumulator)
        calls.append({"call": method, **after})
        # None means that the accumulator was altered in place (window-4).
        return kept[0] if kept and kept[0] is not None else accumulator

    panes = []
    for pane in (messages[:2], messages[2:3]):
        accumulator = _copy(made.initial_accumulator())
        for message in pane:
            accumulator = called("update", made.call, _copy(message), accumulator)
        panes.append(accumulator)
    if made.combine is not None:
        panes = [called("combine", made.combine, *panes)]
    bounds = (WindowBounds(0, 10),) if made.wants_window else ()
    outcome = _outcome(made.output, "a", panes[0], *bounds)
    return {"initial": structure_or_kind(made.initial_accumulator()), "calls": calls,
            "output": {"key": key_to_json("a"), "start": 0, "end": 10, **outcome}}  # fmt: skip


def _described(table: Table, name: str, kind: str) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "does": _first_line(table[name]),
        "traits": sorted(trait.name.lower() for trait in table.traits[name]),
        "python": operator_text(table[name]),
        **(
            {"arguments": [*map(structure_or_kind, table.arguments[name])]}
            if table.arguments.get(name)
            else {}
        ),
    }


def _first_line(component: Any) -> str:
    text = component.__doc__ or type(component).__doc__ or ""
    return str(text).strip().partition("\n")[0]


def _messages(table: Table, name: str) -> list[Any]:
    """Return messages that an operator is shown with; each call gets a copy."""
    if table.has(name, Trait.OF_TRIPLES) or table.has(name, Trait.OF_TOPIC):
        return _triples()
    made = [DECODERS["anything"](payload) for payload in _PAYLOADS]
    return [message for message in made if message is not None]


def _triples() -> list[Any]:
    """Return messages of three parts; not those of which there is no copy."""
    messages = [decoded(payload) for payload in TRIPLES if payload.count(b" ") == 2]
    return [message for message in messages if not isinstance(message, Unreadable)]


def _records() -> list[KafkaRecord]:
    """Return records of a topic, and a tombstone."""
    log = input_log_of(next(of_topics()))
    return [entry.record for entry in log if isinstance(entry, Consumed)]


def _message_vector(record: Any, message: Any) -> dict[str, Any]:
    return _vector(message, _copy(record).call, _copy(message))


def _vector(shown: Any, call: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    return {"message": structure_or_kind(shown), **_outcome(call, *arguments)}


def _key_vector(route: Any, message: Any) -> dict[str, Any]:
    keys: list[Any] = []
    outcome = _outcome(lambda: keys.append(_copy(route).call(_copy(message))))
    if keys:
        try:
            encode_key(keys[0])
            outcome = {"gives": key_to_json(keys[0])}
        except BadKeyError:
            outcome = {"gives": "no key"}
    return {"message": structure_or_kind(message), **outcome}


def _state_vector(stateful: Any, message: Any) -> dict[str, Any]:
    """Return what two calls with one message do to a new state."""
    state = _copy(state_builder_of(BUILDERS["Notebook"])).call()
    calls = []
    for _ in range(2):
        outcome = _outcome(_copy(stateful).call, _copy(message), state)
        calls.append({**outcome, "state": structure_or_kind(state)})
    return {"message": structure_or_kind(message), "calls": calls}


def _outcome(call: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    try:
        result = call(*arguments)
        if hasattr(result, "__next__"):
            result = items_of(result)
        return {"gives": structure_or_kind(result)}
    except BadResultError:
        return {"gives": "no result"}
    except BaseException as error:  # noqa: BLE001 - operators raise what user code can raise
        return {"raises": type(error).__name__}


def _copy(given: Any) -> Any:
    """Return a copy of a message, or of a component, which may keep something from a call."""
    return pickle.loads(pickle.dumps(given))  # noqa: S301 - our own bytes


_SHOWN_BY_MESSAGES: tuple[tuple[Table, str, Callable[[Any], Any], Callable[..., Any]], ...] = (
    (ENCODERS, "encoder", encoder_of, _message_vector),
    (COMPUTATIONS, "computation", computation_of, _message_vector),
    (MULTI_COMPUTATIONS, "multi computation", computation_of, _message_vector),
    (ROUTES, "partition function", partition_function_of, _key_vector),
    (STATE_COMPUTATIONS, "state computation", state_computation_of, _state_vector),
    (STATE_MULTI_COMPUTATIONS, "multi state computation", state_computation_of, _state_vector),
)
"""Tables with what operators are called, how they become components, and what shows them."""
