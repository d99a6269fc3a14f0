"""The components of an application: decoders, computations, encoders and so on, in one form.

Users give classes, instances or decorated functions. Each becomes one of the small frozen records
below: the user's `component`, the `call` an engine makes, and a `name` for people. The functions
ending in ``_of`` make the records and refuse components of the wrong kind or arity (build-1).

A record is pickled as its component and the values that were checked when the application was
built; the `call` is looked up again when it is unpickled. So a decorated function is pickled by
reference and an instance by value. The checks are not repeated: that would be the most expensive
part.
"""

from __future__ import annotations

import inspect
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from wallaroo.checks import (
    Call,
    answer_of,
    decoration,
    method_of,
    name_given_by,
    name_of,
    refuse_unlike_a_call,
    stateless_instance,
    takes,
)
from wallaroo.errors import WallarooParameterError
from wallaroo.frames import MAX_HEADER_LENGTH
from wallaroo.kafka_records import kafka_timestamp
from wallaroo.times import event_time_from, kafka_time_from

State = TypeVar("State", covariant=True)


@dataclass(frozen=True)
class Component:
    """A user's object, and the method of it that an engine calls."""

    component: Any
    name: str
    call: Call

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.component, self.name, *self._checked_values())

    def _checked_values(self) -> tuple[Any, ...]:
        return ()


@dataclass(frozen=True)
class Decoder(Component):
    """`call(payload: bytes) -> message | None`, and how its frames are delimited (frame-1)."""

    header_length: int
    payload_length: Callable[[bytes], int]

    def _checked_values(self) -> tuple[Any, ...]:
        return (self.header_length,)


@dataclass(frozen=True)
class KafkaDecoder(Component):
    """`call(value: bytes) -> message | None`; if `whole`, it gets the `KafkaRecord` (kafka-7)."""

    whole: bool

    def _checked_values(self) -> tuple[Any, ...]:
        return (self.whole,)


@dataclass(frozen=True)
class Encoder(Component):
    """`call(message) -> bytes | str | None` (sink-1); for a Kafka sink see kafka-13."""


@dataclass(frozen=True)
class Computation(Component):
    """`call(message)`: a message or `None` (compute-1); if `multi`, an iterable (compute-2)."""

    multi: bool

    def _checked_values(self) -> tuple[Any, ...]:
        return (self.multi,)


@dataclass(frozen=True)
class StateComputation(Component):
    """`call(message, state) -> (output, changed)`; if `multi`, `(outputs, changed)` (state-2).

    Without `pair` the call returns the output or outputs alone, and the state is kept (key-3).
    """

    multi: bool
    pair: bool = True

    def _checked_values(self) -> tuple[Any, ...]:
        return (self.multi, self.pair)


@dataclass(frozen=True)
class StateBuilder(Component):
    """`call() -> state`, once for each entity (state-1)."""


@dataclass(frozen=True)
class PartitionFunction(Component):
    """`call(message) -> key` (route-1); a key extractor is one too (key-1)."""


@dataclass(frozen=True)
class EventTime(Component):
    """`call(message) -> nanoseconds since 1970, or an aware datetime` (time-2).

    Args:
        judged: returns what the call gave as an event time; raises `BadTimeError`.
        usual: an engine need not ask `judged` about an `int` from here up to the last event time.
        of_record: the call gets the record of a Kafka topic, not the message (kafka-8).
    """

    judged: Callable[[Any], int] = event_time_from
    usual: int = 0
    of_record: bool = False

    def _checked_values(self) -> tuple[Any, ...]:
        return (self.of_record,)


@dataclass(frozen=True)
class Generator(Component):
    """`call(last) -> message | None`, and the first message (graph-4)."""

    initial_value: Call


def decoder_of(component: object) -> Decoder:
    """Return `component` as a decoder: `header_length()`, `payload_length(header)`, `decode(data)`.

    Raises:
        WallarooParameterError: it does not have these methods, or its header is not 1 to 8 bytes.
    """
    instance = stateless_instance(component, "a decoder", "decode", _OF_RECORDS)
    if hasattr(instance, _OF_RECORDS) and not hasattr(instance, "decode"):
        raise WallarooParameterError(
            f"{name_of(instance)} decodes records of Kafka, which only a KafkaSourceConfig has. "
            'Write: @wallaroo.decoder(header_length=4, length_fmt=">I")'
        )
    for method, parameters in (("header_length", 0), ("payload_length", 1), ("decode", 1)):
        method_of(instance, "a decoder", method, parameters)
    header_length = answer_of(instance, "header_length")
    if type(header_length) is not int or not 1 <= header_length <= MAX_HEADER_LENGTH:
        raise WallarooParameterError(
            f"decoder {name_of(instance)}: header_length() returned {header_length!r}, "
            f"expected an int from 1 to {MAX_HEADER_LENGTH} (frame-1)"
        )
    return Decoder(
        component, name_of(instance), instance.decode, header_length, instance.payload_length
    )


def kafka_decoder_of(component: object) -> KafkaDecoder:
    """Return `component` as a Kafka source's decoder: `decode_record(record)`, or `decode(data)`.

    Raises:
        WallarooParameterError: it has neither.
    """
    what = "a decoder"
    instance = stateless_instance(component, what, "decode", _OF_RECORDS)
    whole = hasattr(instance, _OF_RECORDS)
    call = method_of(instance, what, _OF_RECORDS if whole else "decode", 1)
    return KafkaDecoder(component, name_of(instance), call, whole)


def encoder_of(component: object) -> Encoder:
    """Return `component` as an encoder: `encode(message)`.

    Raises:
        WallarooParameterError: it is not an encoder.
    """
    instance = stateless_instance(component, "an encoder", "encode")
    return Encoder(component, name_of(instance), method_of(instance, "an encoder", "encode", 1))


def computation_of(component: object) -> Computation:
    """Return `component` as a computation: `name()`, `compute(data)` or `compute_multi(data)`.

    Raises:
        WallarooParameterError: it is not a computation; a state computation is the usual slip.
    """
    instance = stateless_instance(component, "a computation", "compute", "compute_multi")
    method, multi = _compute_method(instance, "a computation")
    name = name_given_by(instance, "a computation")
    call = getattr(instance, method)
    if not takes(call, 1) and takes(call, 2):
        raise WallarooParameterError(
            f"{name!r} is a state computation: its {method} takes (data, state). Expected a "
            f"computation whose {method} takes (data). Write: "
            f".to_stateful({name_of(component)}, STATE, STATE_NAME) or "
            f".to_state_partition({name_of(component)}, STATE, STATE_NAME, PARTITION_FUNCTION)"
        )
    return Computation(component, name, method_of(instance, "a computation", method, 1), multi)


def state_computation_of(component: object) -> StateComputation:
    """Return `component` as a state computation: `name()`, `compute(data, state)` or its multi.

    Raises:
        WallarooParameterError: it is not a state computation, or a class where an instance is
            meant.
    """
    what = "a state computation"
    if inspect.isclass(component):
        raise WallarooParameterError(
            f"{component.__name__} is a class; expected {what}'s instance. "
            f"Write: {component.__name__}()"
        )
    method, multi = _compute_method(component, what)
    name = name_given_by(component, what)
    call = getattr(component, method)
    if not takes(call, 2) and takes(call, 1):
        raise WallarooParameterError(
            f"{name!r} is a computation without state: its {method} takes (data). Expected a "
            f"state computation whose {method} takes (data, state). "
            f"Write: .to({name_of(component)})"
        )
    own_state = own_state_of(component) is not None
    call = method_of(component, what, method, 2, own_state=own_state)
    return StateComputation(component, name, call, multi, pair=not own_state)


@dataclass(frozen=True)
class OwnState(Generic[State]):
    """What a state computation of the pipeline form says of its state partition (key-3).

    Args:
        state: the state's class, or a builder whose `build()` returns the state.
        name: the state partition's name.
        expire_after: nanoseconds after the last visit at which an entity is gone; `None`: never.
    """

    state: Any
    name: str
    expire_after: int | None


def own_state_of(component: object) -> OwnState[Any] | None:
    """Return what the state computation says of its state; `None`: it is of the builder's form."""
    own = getattr(component, "own_state", None)
    return own if isinstance(own, OwnState) else None


def state_builder_of(component: object) -> StateBuilder:
    """Return `component` as a state builder: an instance with `build()`, or the state's class.

    Raises:
        WallarooParameterError: it is neither, or a builder's class where an instance is meant.
    """
    what = "a state builder"
    if inspect.isclass(component):
        if hasattr(component, "build"):
            raise WallarooParameterError(
                f"{component.__name__} is a class with a build method; expected {what}'s "
                f"instance, or the state's own class. Write: {component.__name__}()"
            )
        if not takes(component, 0):
            raise WallarooParameterError(
                f"the state's class {component.__name__} cannot be built by {component.__name__}()"
                ": its __init__ wants arguments. Give them defaults, or hand over a builder: an "
                "object whose build() returns the state"
            )
        return StateBuilder(component, component.__name__, component)
    if not hasattr(component, "build"):
        raise WallarooParameterError(
            f"{name_of(component)} is not a state builder: expected an object with build(), or the "
            "state's class. Write: class MyState: … and hand over MyState, not an instance of it"
        )
    return StateBuilder(component, name_of(component), method_of(component, what, "build", 0))


def partition_function_of(component: object) -> PartitionFunction:
    """Return `component` as a partition function: `partition(data)`.

    Raises:
        WallarooParameterError: it is not a partition function; a plain function is the usual slip.
    """
    instance = stateless_instance(component, "a partition function", *_KEY_METHODS)
    method = _key_method(instance)
    call = method_of(instance, "a partition function", method, 1)
    return PartitionFunction(component, name_of(instance), call)


def event_time_of(function: object, *, of_kafka: bool = False) -> EventTime:
    """Return `function`, which takes a message, as the function of event times (time-2).

    Args:
        function: of a Kafka source it may be `wallaroo.kafka_timestamp`, which takes the record.
        of_kafka: it is of a Kafka source.

    Raises:
        WallarooParameterError: it cannot be called with a message.
    """
    what = "an event time"
    if function is kafka_timestamp:
        if not of_kafka:
            raise WallarooParameterError(
                "event_time=kafka_timestamp: only records of Kafka have a timestamp of their own "
                "(kafka-8). Write a function (message) that returns nanoseconds since 1970"
            )
        return EventTime(function, name_of(function), kafka_timestamp, kafka_time_from, 0, True)
    if inspect.isclass(function) or not callable(function) or not takes(function, 1):
        raise WallarooParameterError(
            f"event_time={name_of(function)}: expected a function (message) that returns "
            "nanoseconds since 1970, or an aware datetime"
        )
    refuse_unlike_a_call(function, name_of(function), what, "event_time")
    return EventTime(function, name_of(function), function)


def generator_of(component: object) -> Generator:
    """Return `component` as a generator: `initial_value()` and `apply(last)` (graph-4).

    Raises:
        WallarooParameterError: it does not have these methods.
    """
    what = "a generator"
    instance = stateless_instance(component, what, "initial_value", "apply")
    initial = method_of(instance, what, "initial_value", 0)
    return Generator(component, name_of(instance), method_of(instance, what, "apply", 1), initial)


def decoder_format(length_fmt: str, header_length: int) -> struct.Struct:
    """Return `length_fmt` compiled, after checking that it describes `header_length` bytes.

    Raises:
        WallarooParameterError: it is not a `struct` format of one number and that size.
    """
    try:
        compiled = struct.Struct(length_fmt)
    except (struct.error, TypeError) as error:
        raise WallarooParameterError(
            f"length_fmt={length_fmt!r} is not a struct format ({error}); for 4 bytes write '>I'"
        ) from None
    if compiled.size != header_length:
        raise WallarooParameterError(
            f"length_fmt={length_fmt!r} describes {compiled.size} bytes, "
            f"header_length is {header_length}; for 4 bytes write header_length=4, length_fmt='>I'"
        )
    if [type(field) for field in compiled.unpack(bytes(compiled.size))] != [int]:
        raise WallarooParameterError(
            f"length_fmt={length_fmt!r} must yield one whole number, the payload's length"
        )
    return compiled


_KEY_METHODS = ("partition", "extract_key")
_OF_RECORDS = "decode_record"


def _key_method(instance: object) -> str:
    partition, extract_key = _KEY_METHODS
    return extract_key if hasattr(instance, extract_key) else partition


def _compute_method(component: object, what: str) -> tuple[str, bool]:
    single = hasattr(component, "compute")
    multi = hasattr(component, "compute_multi")
    if single and multi:
        raise WallarooParameterError(
            f"{name_of(component)} has both compute and compute_multi; {what} has one of them"
        )
    if not single and not multi:
        hint = ""
        if inspect.isroutine(component):
            kind = "state_computation" if "state" in what else "computation"
            hint = decoration(component, f'{kind}(name="…")')
        raise WallarooParameterError(
            f"{name_of(component)} is not {what}: it has neither compute nor compute_multi{hint}"
        )
    return ("compute_multi", True) if multi else ("compute", False)


def _restored(kind: type[Component], component: Any, name: str, *said: Any) -> Component:
    """Return an unpickled record, with its checked values and its call."""
    if kind is StateBuilder:
        call: Call = component if inspect.isclass(component) else component.build
        return StateBuilder(component, name, call)
    # Only stateless components may have been given as classes.
    instance: Any = component() if inspect.isclass(component) else component
    if kind is Decoder:
        (length,) = said
        return Decoder(component, name, instance.decode, length, instance.payload_length)
    if kind is KafkaDecoder:
        (whole,) = said
        return KafkaDecoder(
            component, name, getattr(instance, _OF_RECORDS if whole else "decode"), whole
        )
    if kind is Encoder:
        return Encoder(component, name, instance.encode)
    if kind is PartitionFunction:
        return PartitionFunction(component, name, getattr(instance, _key_method(instance)))
    if kind is EventTime:
        (of_record,) = said
        judged = kafka_time_from if of_record else event_time_from
        return EventTime(component, name, component, judged, 0, of_record)
    if kind is Generator:
        return Generator(component, name, instance.apply, instance.initial_value)
    multi = said[0]
    call = instance.compute_multi if multi else instance.compute
    return kind(component, name, call, *said)
