"""The decorator form of the API: plain functions in, components out.

A decorated object has the methods of the class-based API, can be called like the function it
wraps, keeps its docstring and signature, and pickles by reference.

>>> import wallaroo
>>> @wallaroo.computation(name="double")
... def double(number):
...     return 2 * number
>>> double(4), double.compute(4), double.name()
(8, 8, 'double')
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, Never, ParamSpec, TypeVar, overload

from wallaroo import kinds
from wallaroo.checks import takes
from wallaroo.components import OwnState, decoder_format
from wallaroo.errors import WallarooParameterError
from wallaroo.frames import MAX_HEADER_LENGTH, StructLength
from wallaroo.keys import Key

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

# A function's result; type checkers show these names where another type is returned.
ResultOfEncoder = TypeVar("ResultOfEncoder", bound=kinds.KafkaResult)
ResultOfPartition = TypeVar("ResultOfPartition", bound=Key)
ResultOfMulti = TypeVar("ResultOfMulti", bound=Iterable[Any] | None)


class Decorated(Generic[P, R]):
    """A decorated function; each subclass is one kind of component."""

    __name__: str
    __qualname__: str
    __wrapped__: Callable[P, R]
    _methods: ClassVar[tuple[str, ...]] = ()  # what engines call, each of which is the function

    def __init__(self, function: Callable[P, R]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        for method in self._methods:
            setattr(self, method, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the plain function."""
        return self._function(*args, **kwargs)

    def __reduce__(self) -> str:
        """Pickle by reference: as the function's name in its module."""
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<wallaroo {type(self).__name__.lower()} {self.__module__}.{self.__qualname__}>"


class DecodingFunction(Decorated[P, R]):
    """A decorated decoder."""

    _methods = ("decode",)
    decode: Callable[P, R]

    def __init__(self, function: Callable[P, R], header_length: int, length_fmt: str) -> None:
        super().__init__(function)
        self._header_length = header_length
        self.payload_length = StructLength(decoder_format(length_fmt, header_length))

    def header_length(self) -> int:
        """Return the header's length, in bytes."""
        return self._header_length


class RecordDecodingFunction(Decorated[P, R]):
    """A decorated decoder of a Kafka source, which gets whole records."""

    _methods = ("decode_record",)
    decode_record: Callable[P, R]


class EncodingFunction(Decorated[P, R]):
    """A decorated encoder."""

    _methods = ("encode",)
    encode: Callable[P, R]


class PartitioningFunction(Decorated[P, R]):
    """A decorated partition function."""

    _methods: ClassVar[tuple[str, ...]] = ("partition",)
    partition: Callable[P, R]


class KeyExtractingFunction(PartitioningFunction[P, R]):
    """A decorated key extractor."""

    _methods = ("partition", "extract_key")
    extract_key: Callable[P, R]


class _Named(Decorated[P, R]):
    own_state: OwnState[Any] | None = None  # of a state computation that says its state (key-3)

    def __init__(self, function: Callable[P, R], name: str) -> None:
        super().__init__(function)
        self._name = name

    def name(self) -> str:
        """Return the computation's name."""
        return self._name


class ComputingFunction(_Named[P, R]):
    """A decorated computation or state computation."""

    _methods = ("compute",)
    compute: Callable[P, R]


class MultiComputingFunction(_Named[P, R]):
    """A decorated multi computation or multi state computation."""

    _methods = ("compute_multi",)
    compute_multi: Callable[P, R]


class OwnStateFunction(ComputingFunction[P, R], Generic[P, R, S]):
    """A decorated state computation that says its state (key-3)."""

    own_state: OwnState[S]


class MultiOwnStateFunction(MultiComputingFunction[P, R], Generic[P, R, S]):
    """A decorated multi state computation that says its state (key-3)."""

    own_state: OwnState[S]


@overload
def decoder(
    header_length: int, length_fmt: str
) -> Callable[[Callable[P, R]], DecodingFunction[P, R]]: ...


@overload  # a type checker refuses it; at run time its error says what to write
def decoder(header_length: Never) -> Callable[[Callable[P, R]], DecodingFunction[P, R]]: ...


def decoder(
    header_length: int, length_fmt: str = ""
) -> Callable[[Callable[P, R]], DecodingFunction[P, R]]:
    """Make a decoder of a function ``(payload: bytes) -> message | None``.

    Args:
        header_length: bytes of a frame's header, 1 to 8.
        length_fmt: `struct` format that turns the header into the payload's length in bytes.

    Raises:
        WallarooParameterError: format and length do not fit, or it decorates something else.
    """
    if type(header_length) is not int or not 1 <= header_length <= MAX_HEADER_LENGTH:
        raise WallarooParameterError(
            "Write: @wallaroo.decoder(header_length=4, length_fmt='>I"
            f"'); header_length is an int from 1 to {MAX_HEADER_LENGTH}, not {header_length!r}"
        )
    decoder_format(length_fmt, header_length)  # refuses the default too, and says what to write

    def decorate(function: Callable[P, R]) -> DecodingFunction[P, R]:
        _expect(function, 1, "decoder(header_length=4, length_fmt='>I')", "(payload)")
        return DecodingFunction(function, header_length, length_fmt)

    return decorate


def kafka_decoder(function: Callable[P, R]) -> RecordDecodingFunction[P, R]:
    """Make a decoder of a function ``(record: KafkaRecord) -> message | None`` (kafka-7).

    Raises:
        WallarooParameterError: it decorates something else.
    """
    _expect(function, 1, "kafka_decoder", "(record)")
    return RecordDecodingFunction(function)


def encoder(function: Callable[P, ResultOfEncoder]) -> EncodingFunction[P, ResultOfEncoder]:
    """Make an encoder of a function ``(message) -> bytes | str | None``.

    For a Kafka sink it may also return ``(value, key)``, ``(value, key, partition)``, or a
    `KafkaOutput` (kafka-13).

    Raises:
        WallarooParameterError: it decorates something else.
    """
    _expect(function, 1, "encoder", "(message)")
    return EncodingFunction(function)


def partition(
    function: Callable[P, ResultOfPartition],
) -> PartitioningFunction[P, ResultOfPartition]:
    """Make a partition function of a function ``(message) -> key``.

    Raises:
        WallarooParameterError: it decorates something else.
    """
    _expect(function, 1, "partition", "(message)")
    return PartitioningFunction(function)


def key_extractor(
    function: Callable[P, ResultOfPartition],
) -> KeyExtractingFunction[P, ResultOfPartition]:
    """Make a key extractor of a function ``(message) -> key`` (key-1).

    Raises:
        WallarooParameterError: it decorates something else.
    """
    _expect(function, 1, "key_extractor", "(message)")
    return KeyExtractingFunction(function)


def computation(name: str) -> Callable[[Callable[P, R]], ComputingFunction[P, R]]:
    """Make a computation of a function ``(message) -> message | None``.

    Raises:
        WallarooParameterError: it has no name, or decorates something else.
    """
    return _named("computation", name, 1, ComputingFunction)


def computation_multi(
    name: str,
) -> Callable[[Callable[P, ResultOfMulti]], MultiComputingFunction[P, ResultOfMulti]]:
    """Make a computation of a function ``(message) -> iterable of messages | None``.

    Raises:
        WallarooParameterError: it has no name, or decorates something else.
    """
    return _named("computation_multi", name, 1, MultiComputingFunction)


@overload
def state_computation(
    name: str,
) -> Callable[[Callable[P, tuple[R, bool]]], ComputingFunction[P, tuple[R, bool]]]: ...


@overload
def state_computation(
    name: str,
    state: kinds.AnyState[S],
    state_name: str | None = None,
    expire_after: int | None = None,
) -> Callable[[Callable[P, R]], OwnStateFunction[P, R, S]]: ...


def state_computation(
    name: str,
    state: Any = None,
    state_name: str | None = None,
    expire_after: int | None = None,
) -> Callable[[Callable[P, Any]], Any]:
    """Make a state computation.

    Without `state` it belongs to `ApplicationBuilder`, and decorates a function ``(message, state)
    -> (message | None, changed)``. With it, it belongs to pipelines, and decorates a function
    ``(message, state) -> message | None``; what that leaves of the state is kept (key-3).

    Args:
        name: the computation's name.
        state: the state's class, or a builder whose `build()` returns the state.
        state_name: the state partition's name; computations that give the same share its entities.
            The computation's name unless given.
        expire_after: nanoseconds after its last visit at which an entity is gone (key-4).

    Raises:
        WallarooParameterError: it has no name, or decorates something else.
    """
    own = _own_state("state_computation", name, state, state_name, expire_after)
    make = ComputingFunction if own is None else OwnStateFunction
    return _named("state_computation", name, 2, make, own)


@overload
def state_computation_multi(
    name: str,
) -> Callable[
    [Callable[P, tuple[ResultOfMulti, bool]]],
    MultiComputingFunction[P, tuple[ResultOfMulti, bool]],
]: ...


@overload
def state_computation_multi(
    name: str,
    state: kinds.AnyState[S],
    state_name: str | None = None,
    expire_after: int | None = None,
) -> Callable[[Callable[P, ResultOfMulti]], MultiOwnStateFunction[P, ResultOfMulti, S]]: ...


def state_computation_multi(
    name: str,
    state: Any = None,
    state_name: str | None = None,
    expire_after: int | None = None,
) -> Callable[[Callable[P, Any]], Any]:
    """Make a state computation that gives several messages, as an iterable.

    The function is ``(message, state) -> (iterable | None, changed)`` without `state`, and
    ``(message, state) -> iterable | None`` with it; see `state_computation`.

    Raises:
        WallarooParameterError: it has no name, or decorates something else.
    """
    own = _own_state("state_computation_multi", name, state, state_name, expire_after)
    make = MultiComputingFunction if own is None else MultiOwnStateFunction
    return _named("state_computation_multi", name, 2, make, own)


def _own_state(
    decorator: str, name: str, state: Any, state_name: str | None, expire_after: int | None
) -> OwnState[Any] | None:
    if state is not None:
        return OwnState(state, name if state_name is None else state_name, expire_after)
    if state_name is not None or expire_after is not None:
        said = "state_name" if state_name is not None else "expire_after"
        raise WallarooParameterError(
            f"@wallaroo.{decorator}(…, {said}=…) has no state. Write: state=STATE beside it, for "
            f"pipelines; for the builder, give {said} to to_state_partition"
        )
    return None


def _named(
    decorator: str,
    name: str,
    parameters: int,
    make: Callable[[Callable[P, R], str], Any],
    own_state: OwnState[Any] | None = None,
) -> Callable[[Callable[P, R]], Any]:
    if not isinstance(name, str) or not name:
        given = getattr(name, "__name__", repr(name))
        raise WallarooParameterError(
            f"@wallaroo.{decorator} wants a name, not {given}; "
            f'write: @wallaroo.{decorator}(name="…")'
        )

    def decorate(function: Callable[P, R]) -> Any:
        shape = "(message)" if parameters == 1 else "(message, state)"
        _expect(function, parameters, f'{decorator}(name="{name}")', shape)
        made = make(function, name)
        made.own_state = own_state
        return made

    return decorate


def _expect(function: object, parameters: int, decorator: str, shape: str) -> None:
    if not inspect.isroutine(function):
        kind = "class" if inspect.isclass(function) else type(function).__name__
        raise WallarooParameterError(
            f"@wallaroo.{decorator} decorates a function {shape}, not a {kind}"
        )
    if not takes(function, parameters):
        name = getattr(function, "__name__", "the function")
        raise WallarooParameterError(
            f"@wallaroo.{decorator} decorates a function {shape}; "
            f"{name}{inspect.signature(function)} does not take that"
        )
