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
from typing import Any, Generic, Never, ParamSpec, TypeVar, overload

from wallaroo.components import decoder_format
from wallaroo.errors import WallarooParameterError
from wallaroo.frames import MAX_HEADER_LENGTH, StructLength
from wallaroo.keys import Key

P = ParamSpec("P")
R = TypeVar("R")

# A function's result; type checkers show these names where another type is returned.
ResultOfEncoder = TypeVar("ResultOfEncoder", bound=bytes | str | None)
ResultOfPartition = TypeVar("ResultOfPartition", bound=Key)
ResultOfMulti = TypeVar("ResultOfMulti", bound=Iterable[Any] | None)


class Decorated(Generic[P, R]):
    """A decorated function; each subclass is one kind of component."""

    __name__: str
    __qualname__: str
    __wrapped__: Callable[P, R]

    def __init__(self, function: Callable[P, R]) -> None:
        functools.update_wrapper(self, function)
        self._function = function

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

    def __init__(self, function: Callable[P, R], header_length: int, length_fmt: str) -> None:
        super().__init__(function)
        self._header_length = header_length
        self.payload_length = StructLength(decoder_format(length_fmt, header_length))
        self.decode = function

    def header_length(self) -> int:
        """Return the header's length, in bytes."""
        return self._header_length


class EncodingFunction(Decorated[P, R]):
    """A decorated encoder."""

    def __init__(self, function: Callable[P, R]) -> None:
        super().__init__(function)
        self.encode = function


class PartitioningFunction(Decorated[P, R]):
    """A decorated partition function."""

    def __init__(self, function: Callable[P, R]) -> None:
        super().__init__(function)
        self.partition = function


class _Named(Decorated[P, R]):
    def __init__(self, function: Callable[P, R], name: str) -> None:
        super().__init__(function)
        self._name = name

    def name(self) -> str:
        """Return the computation's name."""
        return self._name


class ComputingFunction(_Named[P, R]):
    """A decorated computation or state computation."""

    def __init__(self, function: Callable[P, R], name: str) -> None:
        super().__init__(function, name)
        self.compute = function


class MultiComputingFunction(_Named[P, R]):
    """A decorated multi computation or multi state computation."""

    def __init__(self, function: Callable[P, R], name: str) -> None:
        super().__init__(function, name)
        self.compute_multi = function


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
        WallarooParameterError: format and length do not fit, or it decorates no such function.
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


def encoder(function: Callable[P, ResultOfEncoder]) -> EncodingFunction[P, ResultOfEncoder]:
    """Make an encoder of a function ``(message) -> bytes | str | None``.

    Raises:
        WallarooParameterError: it decorates no such function.
    """
    _expect(function, 1, "encoder", "(message)")
    return EncodingFunction(function)


def partition(
    function: Callable[P, ResultOfPartition],
) -> PartitioningFunction[P, ResultOfPartition]:
    """Make a partition function of a function ``(message) -> key``.

    Raises:
        WallarooParameterError: it decorates no such function.
    """
    _expect(function, 1, "partition", "(message)")
    return PartitioningFunction(function)


def computation(name: str) -> Callable[[Callable[P, R]], ComputingFunction[P, R]]:
    """Make a computation of a function ``(message) -> message | None``.

    Raises:
        WallarooParameterError: it has no name, or decorates no such function.
    """
    return _named("computation", name, 1, ComputingFunction)


def computation_multi(
    name: str,
) -> Callable[[Callable[P, ResultOfMulti]], MultiComputingFunction[P, ResultOfMulti]]:
    """Make a computation of a function ``(message) -> iterable of messages | None``.

    Raises:
        WallarooParameterError: it has no name, or decorates no such function.
    """
    return _named("computation_multi", name, 1, MultiComputingFunction)


def state_computation(
    name: str,
) -> Callable[[Callable[P, tuple[R, bool]]], ComputingFunction[P, tuple[R, bool]]]:
    """Make a state computation of a function ``(message, state) -> (message | None, changed)``.

    Raises:
        WallarooParameterError: it has no name, or decorates no such function.
    """
    return _named("state_computation", name, 2, ComputingFunction)


def state_computation_multi(
    name: str,
) -> Callable[
    [Callable[P, tuple[ResultOfMulti, bool]]],
    MultiComputingFunction[P, tuple[ResultOfMulti, bool]],
]:
    """Make a state computation of a function ``(message, state) -> (iterable | None, changed)``.

    Raises:
        WallarooParameterError: it has no name, or decorates no such function.
    """
    return _named("state_computation_multi", name, 2, MultiComputingFunction)


def _named(
    decorator: str, name: str, parameters: int, make: Callable[[Callable[P, R], str], Any]
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
        return make(function, name)

    return decorate


def _expect(function: object, parameters: int, decorator: str, shape: str) -> None:
    if not inspect.isroutine(function):
        kind = "class" if inspect.isclass(function) else type(function).__name__
        raise WallarooParameterError(
            f"@wallaroo.{decorator} decorates a function {shape}, not a {kind}"
        )
    try:
        inspect.signature(function).bind(*[None] * parameters)
    except TypeError:
        name = getattr(function, "__name__", "the function")
        raise WallarooParameterError(
            f"@wallaroo.{decorator} decorates a function {shape}; "
            f"{name}{inspect.signature(function)} does not take that"
        ) from None
    except ValueError:  # a builtin without a readable signature
        return
