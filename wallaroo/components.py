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
from typing import Any

from wallaroo.errors import WallarooParameterError
from wallaroo.frames import MAX_HEADER_LENGTH

Call = Callable[..., Any]


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
class Encoder(Component):
    """`call(message) -> bytes | str | None` (sink-1)."""


@dataclass(frozen=True)
class Computation(Component):
    """`call(message)`: a message or `None` (compute-1); if `multi`, an iterable (compute-2)."""

    multi: bool

    def _checked_values(self) -> tuple[Any, ...]:
        return (self.multi,)


@dataclass(frozen=True)
class StateComputation(Component):
    """`call(message, state) -> (output, changed)`; if `multi`, `(outputs, changed)` (state-2)."""

    multi: bool

    def _checked_values(self) -> tuple[Any, ...]:
        return (self.multi,)


@dataclass(frozen=True)
class StateBuilder(Component):
    """`call() -> state`, once for each entity (state-1)."""


@dataclass(frozen=True)
class PartitionFunction(Component):
    """`call(message) -> key` (route-1)."""


def decoder_of(component: object) -> Decoder:
    """Return `component` as a decoder: `header_length()`, `payload_length(header)`, `decode(data)`.

    Raises:
        WallarooParameterError: it has not these methods, or its header is not 1 to 8 bytes.
    """
    instance = _stateless(component, "a decoder", "decode")
    for method, parameters in (("header_length", 0), ("payload_length", 1), ("decode", 1)):
        _method(instance, "a decoder", method, parameters)
    header_length = _answer(instance, "header_length")
    if type(header_length) is not int or not 1 <= header_length <= MAX_HEADER_LENGTH:
        raise WallarooParameterError(
            f"decoder {name_of(instance)}: header_length() returned {header_length!r}, "
            f"expected an int from 1 to {MAX_HEADER_LENGTH} (frame-1)"
        )
    return Decoder(
        component, name_of(instance), instance.decode, header_length, instance.payload_length
    )


def encoder_of(component: object) -> Encoder:
    """Return `component` as an encoder: `encode(message)`.

    Raises:
        WallarooParameterError: it is none.
    """
    instance = _stateless(component, "an encoder", "encode")
    return Encoder(component, name_of(instance), _method(instance, "an encoder", "encode", 1))


def computation_of(component: object) -> Computation:
    """Return `component` as a computation: `name()`, `compute(data)` or `compute_multi(data)`.

    Raises:
        WallarooParameterError: it is none; a state computation is the usual slip.
    """
    instance = _stateless(component, "a computation", "compute", "compute_multi")
    method, multi = _compute_method(instance, "a computation")
    name = _declared_name(instance, "a computation")
    call = getattr(instance, method)
    if not _takes(call, 1) and _takes(call, 2):
        raise WallarooParameterError(
            f"{name!r} is a state computation: its {method} takes (data, state). Expected a "
            f"computation whose {method} takes (data). Write: "
            f".to_stateful({name_of(component)}, STATE, STATE_NAME) or "
            f".to_state_partition({name_of(component)}, STATE, STATE_NAME, PARTITION_FUNCTION)"
        )
    return Computation(component, name, _method(instance, "a computation", method, 1), multi)


def state_computation_of(component: object) -> StateComputation:
    """Return `component` as a state computation: `name()`, `compute(data, state)` or its multi.

    Raises:
        WallarooParameterError: it is none, or a class where an instance is meant.
    """
    what = "a state computation"
    if inspect.isclass(component):
        raise WallarooParameterError(
            f"{component.__name__} is a class; expected {what}'s instance. "
            f"Write: {component.__name__}()"
        )
    method, multi = _compute_method(component, what)
    name = _declared_name(component, what)
    call = getattr(component, method)
    if not _takes(call, 2) and _takes(call, 1):
        raise WallarooParameterError(
            f"{name!r} is a computation without state: its {method} takes (data). Expected a "
            f"state computation whose {method} takes (data, state). "
            f"Write: .to({name_of(component)})"
        )
    return StateComputation(component, name, _method(component, what, method, 2), multi)


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
        if not _takes(component, 0):
            raise WallarooParameterError(
                f"the state's class {component.__name__} cannot be built by {component.__name__}()"
                ": its __init__ wants arguments. Give them defaults, or hand over a builder: an "
                "object whose build() returns the state"
            )
        return StateBuilder(component, component.__name__, component)
    if not hasattr(component, "build"):
        raise WallarooParameterError(
            f"{name_of(component)} is no state builder: expected an object with build(), or the "
            "state's class. Write: class MyState: … and hand over MyState, not an instance of it"
        )
    return StateBuilder(component, name_of(component), _method(component, what, "build", 0))


def partition_function_of(component: object) -> PartitionFunction:
    """Return `component` as a partition function: `partition(data)`.

    Raises:
        WallarooParameterError: it is none; a plain function is the usual slip.
    """
    instance = _stateless(component, "a partition function", "partition")
    call = _method(instance, "a partition function", "partition", 1)
    return PartitionFunction(component, name_of(instance), call)


def name_of(component: object) -> str:
    """Return a name for `component` in error messages: its function's or class's name."""
    name = getattr(component, "__name__", None)
    return name if isinstance(name, str) else type(component).__name__


def declared_name(component: object) -> str | None:
    """Return the result of the component's `name()`; `None` if it has no such method."""
    try:
        name = component.name()  # type: ignore[attr-defined]  # it may be anything
    except Exception:  # noqa: BLE001 - the user's code; what is wrong with it is said elsewhere
        return None
    return str(name) if isinstance(name, str) and name else None


def decoder_format(length_fmt: str, header_length: int) -> struct.Struct:
    """Return `length_fmt` compiled, after checking that it describes `header_length` bytes.

    Raises:
        WallarooParameterError: it is no `struct` format of one number and that size.
    """
    try:
        compiled = struct.Struct(length_fmt)
    except (struct.error, TypeError) as error:
        raise WallarooParameterError(
            f"length_fmt={length_fmt!r} is no struct format ({error}); for 4 bytes write '>I'"
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


def _stateless(component: object, what: str, *methods: str) -> Any:
    """Return the instance to call: stateless components may be given as classes."""
    if not inspect.isclass(component):
        if inspect.isroutine(component):
            decorators = {
                "a partition function": "partition",
                "a computation": 'computation(name="…")',
                "a decoder": 'decoder(header_length=4, length_fmt=">I")',
                "an encoder": "encoder",
            }
            raise WallarooParameterError(
                f"{name_of(component)} is a plain function; expected {what}. "
                f"Write: @wallaroo.{decorators[what]} above it"
            )
        return component
    if not any(hasattr(component, method) for method in methods):
        raise WallarooParameterError(
            f"{component.__name__} is no {what.split(' ', 1)[1]}: it has no {' or '.join(methods)}"
        )
    try:
        return component()
    except Exception as error:
        raise WallarooParameterError(
            f"{component.__name__} is a class and {component.__name__}() raised "
            f"{type(error).__name__}: {error}. Hand over an instance"
        ) from error


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
            hint = f'. Write: @wallaroo.{kind}(name="…") above it'
        raise WallarooParameterError(
            f"{name_of(component)} is no {what.split(' ', 1)[1]}: "
            f"it has neither compute nor compute_multi{hint}"
        )
    return ("compute_multi", True) if multi else ("compute", False)


def _declared_name(component: Any, what: str) -> str:
    _method(component, what, "name", 0)
    name = _answer(component, "name")
    if not isinstance(name, str) or not name:
        raise WallarooParameterError(
            f"{name_of(component)}: name() returned {name!r}, expected a non-empty str"
        )
    return str(name)


def _answer(component: Any, method: str) -> Any:
    """Return what a component's method returns, while the application is built."""
    try:
        return getattr(component, method)()
    except Exception as error:
        raise WallarooParameterError(
            f"{name_of(component)}: {method}() raised {type(error).__name__}: {error}"
        ) from error


def _method(component: object, what: str, method: str, parameters: int) -> Call:
    call = getattr(component, method, None)
    if not callable(call):
        raise WallarooParameterError(
            f"{name_of(component)} is no {what.split(' ', 1)[1]}: it has no method {method}"
        )
    _refuse_unlike_a_call(call, f"{name_of(component)}.{method}", what, method)
    if not _takes(call, parameters):
        names = {0: "no argument", 1: "one argument", 2: "two arguments, (data, state)"}
        raise WallarooParameterError(
            f"{name_of(component)}.{method}{_signature(call)} does not take {names[parameters]}, "
            f"as {what}'s does"
        )
    return call  # type: ignore[no-any-return]


def _refuse_unlike_a_call(call: Call, called: str, what: str, method: str) -> None:
    """Refuse async functions and generators: calling them does not run their code."""
    if inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call):
        raise WallarooParameterError(f"{called} is async, so that a call runs nothing. Write: def")
    if inspect.isgeneratorfunction(call) and (what, method) != ("a computation", "compute_multi"):
        if what == "a computation":
            hint = "compute_multi, or @wallaroo.computation_multi, for several messages"
        elif method == "compute_multi":
            hint = "return ([MESSAGE, …], CHANGED)"
        else:
            hint = "return"
        raise WallarooParameterError(
            f"{called} yields, so that a call returns a generator, which is not what {what} gives. "
            f"Write: {hint}"
        )


def _takes(call: Call, parameters: int) -> bool:
    try:
        inspect.signature(call).bind(*[None] * parameters)
    except TypeError:
        return False
    except ValueError:  # a builtin without a readable signature
        return True
    return True


def _signature(call: Call) -> str:
    try:
        return str(inspect.signature(call))
    except (TypeError, ValueError):
        return "(…)"


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
    if kind is Encoder:
        return Encoder(component, name, instance.encode)
    if kind is PartitionFunction:
        return PartitionFunction(component, name, instance.partition)
    (multi,) = said
    call = instance.compute_multi if multi else instance.compute
    return kind(component, name, call, multi)  # type: ignore[call-arg]  # both computations
