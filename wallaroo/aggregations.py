"""Aggregations: what is computed over the messages of a window (window-4).

>>> import wallaroo
>>> class Total:
...     def initial_accumulator(self):
...         return 0
...     def update(self, message, accumulator):
...         return accumulator + message
...     def combine(self, earlier, later):
...         return earlier + later
...     def output(self, key, accumulator):
...         return (key, accumulator)
>>> aggregation_of(Total).name
'Total'
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from wallaroo.checks import (
    Call,
    checked_at,
    declared_name,
    method_of,
    name_given_by,
    stateless_instance,
    takes,
)
from wallaroo.components import Component

_WHAT = "an aggregation"

In = TypeVar("In")
Acc = TypeVar("Acc")


class Aggregation(Generic[In, Acc]):
    """The base class of aggregations in published applications; it adds nothing."""


@dataclass(frozen=True)
class WindowBounds:
    """What `output` gets as its third argument: the window `[start, end)`.

    Args:
        start: in nanoseconds since 1970.
        end: in nanoseconds since 1970.
    """

    start: int
    end: int


@dataclass(frozen=True)
class AggregationRecord(Component):
    """An aggregation; `call` is its `update(message, accumulator) -> accumulator | None`.

    Args:
        initial_accumulator: `() -> accumulator`.
        combine: `(earlier, later) -> accumulator | None`; `None` if the aggregation has none.
        output: `(key, accumulator)` or `(key, accumulator, window)` `-> message | None`.
        wants_window: `output` takes the window too.
    """

    initial_accumulator: Call
    combine: Call | None
    output: Call
    wants_window: bool

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.component, self.name, self.wants_window)


def aggregation_of(component: object) -> AggregationRecord:
    """Return `component`, a class or an instance, as an aggregation (window-4).

    Raises:
        WallarooParameterError: it is not an aggregation.
    """
    if inspect.isclass(component):
        instance = stateless_instance(component, _WHAT, "initial_accumulator", "update", "output")
    else:
        instance = component
    name = declared_name(instance)
    if name is None:
        return _checked(component, instance)
    return checked_at(f"aggregation {name!r}", lambda one: _checked(one, instance), component)


def _checked(component: Any, instance: Any) -> AggregationRecord:
    for method, parameters in (("initial_accumulator", 0), ("update", 2)):
        method_of(instance, _WHAT, method, parameters)
    if hasattr(instance, "combine"):
        method_of(instance, _WHAT, "combine", 2)
    output = getattr(instance, "output", None)
    wants_window = callable(output) and takes(output, 3)
    method_of(instance, _WHAT, "output", 3 if wants_window else 2)
    named = hasattr(instance, "name")
    name = name_given_by(instance, _WHAT) if named else type(instance).__name__
    return _record(component, instance, name, wants_window)


def _record(component: Any, instance: Any, name: str, wants_window: bool) -> AggregationRecord:
    return AggregationRecord(
        component,
        name,
        instance.update,
        instance.initial_accumulator,
        getattr(instance, "combine", None),
        instance.output,
        wants_window,
    )


def _restored(component: Any, name: str, wants_window: bool) -> AggregationRecord:
    """Return an unpickled record, without checking it again."""
    instance = component() if inspect.isclass(component) else component
    return _record(component, instance, name, wants_window)
