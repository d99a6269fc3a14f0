"""What components are checked for when an application is built, and what they are called.

Every check raises `WallarooParameterError`, which says what was expected and, for the usual slips,
the line to write instead (build-1).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from wallaroo.errors import WallarooParameterError

C = TypeVar("C")
Call = Callable[..., Any]

_NUMBERS = ("no argument", "one argument", "two arguments, (data, state)", "three arguments")
_ARGUMENTS = {
    ("update", 2): "two arguments, (message, accumulator)",
    ("combine", 2): "two arguments, (earlier, later)",
    ("output", 2): "two arguments, (key, accumulator)",
}


def checked_at(where: str, of: Callable[[object], C], component: object) -> C:
    """Return `of(component)`; the error of its refusal says where the component stands.

    Raises:
        WallarooParameterError: it is refused.
    """
    try:
        return of(component)
    except WallarooParameterError as error:
        raise WallarooParameterError(f"{where}: {error}") from error.__cause__


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


def stateless_instance(component: object, what: str, *methods: str) -> Any:
    """Return the instance to call: stateless components may be given as classes.

    Args:
        component: a class, which has one of `methods`, or an instance.
        what: what it should be, for errors: ``a decoder``.
        methods: names.
    """
    if not inspect.isclass(component):
        if inspect.isroutine(component):
            decorators = {
                "a partition function": "partition",
                "a computation": 'computation(name="…")',
                "a decoder": 'decoder(header_length=4, length_fmt=">I")',
                "an encoder": "encoder",
            }
            hint = decoration(component, decorators[what]) if what in decorators else ""
            raise WallarooParameterError(
                f"{name_of(component)} is a plain function; expected {what}{hint}"
            )
        return component
    if not any(hasattr(component, method) for method in methods):
        raise WallarooParameterError(
            f"{component.__name__} is not {what}: it has no {' or '.join(methods)}"
        )
    try:
        return component()
    except Exception as error:
        raise WallarooParameterError(
            f"{component.__name__} is a class and {component.__name__}() raised "
            f"{type(error).__name__}: {error}. Hand over an instance"
        ) from error


def decoration(function: object, decorator: str) -> str:
    """Return the end of an error about a plain function where a decorated one is meant."""
    if name_of(function) != "<lambda>":
        return f". Write: @wallaroo.{decorator} above it"
    return (
        f". A lambda has no line above it; write: @wallaroo.{decorator}, and below it def NAME(…)"
    )


def name_given_by(component: Any, what: str) -> str:
    """Return what the component's `name()` returns, a non-empty str."""
    method_of(component, what, "name", 0)
    name = answer_of(component, "name")
    if not isinstance(name, str) or not name:
        raise WallarooParameterError(
            f"{name_of(component)}: name() returned {name!r}, expected a non-empty str"
        )
    return str(name)


def answer_of(component: Any, method: str) -> Any:
    """Return what a component's method returns, while the application is built."""
    try:
        return getattr(component, method)()
    except Exception as error:
        raise WallarooParameterError(
            f"{name_of(component)}: {method}() raised {type(error).__name__}: {error}"
        ) from error


def method_of(
    component: object, what: str, method: str, parameters: int, *, own_state: bool = False
) -> Call:
    """Return the component's method of that name, which takes `parameters` arguments.

    Args:
        component: what has the method.
        what: what it should be, for errors: ``a decoder``.
        method: the method's name.
        parameters: how many arguments it takes.
        own_state: it is a state computation that says its state, and returns its output alone.
    """
    call = getattr(component, method, None)
    if not callable(call):
        raise WallarooParameterError(
            f"{name_of(component)} is not {what}: it has no method {method}"
        )
    refuse_unlike_a_call(call, f"{name_of(component)}.{method}", what, method, own_state=own_state)
    if not takes(call, parameters):
        names = _ARGUMENTS.get((method, parameters)) or _NUMBERS[parameters]
        raise WallarooParameterError(
            f"{name_of(component)}.{method}{_signature(call)} does not take {names}, "
            f"as {what}'s does"
        )
    return call  # type: ignore[no-any-return]


def refuse_unlike_a_call(
    call: Call, called: str, what: str, method: str, *, own_state: bool = False
) -> None:
    """Refuse async functions and generators: calling them does not run their code.

    A generator function may stand where an iterable of messages is the result (compute-2, key-3).
    """
    if inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call):
        raise WallarooParameterError(f"{called} is async, so that a call runs nothing. Write: def")
    alone = what == "a computation" or own_state  # the output without a flag
    if inspect.isgeneratorfunction(call) and not (alone and method == "compute_multi"):
        if alone:
            kind = "state_computation" if own_state else "computation"
            hint = f"compute_multi, or @wallaroo.{kind}_multi, for several messages"
        elif method == "compute_multi":
            hint = "return ([MESSAGE, …], CHANGED)"
        else:
            hint = "return"
        raise WallarooParameterError(
            f"{called} yields, so that a call returns a generator, which is not what {what} gives. "
            f"Write: {hint}"
        )


def takes(call: Call, parameters: int) -> bool:
    """Whether `call` takes `parameters` positional arguments."""
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
