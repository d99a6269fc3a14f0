"""Observing an application: every call of user code goes through a function of the observer.

    def around(site, call):
        def noted(*arguments):
            result = call(*arguments)
            calls.append((site.place, site.method, arguments, result))
            return result

        return noted

    engine.run(Case(instrument(application, around), records))

The observed application means the same as long as each function returns what the call returns and
raises what it raises. Engines run it as any other. Where to observe is decided once for each call
site, before the run, so a call that is not observed costs nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from wallaroo.aggregations import AggregationRecord
from wallaroo.components import Component, Generator
from wallaroo.topology import Application, ComponentUse, Node, StatePartition


@dataclass(frozen=True, slots=True)
class CallSite:
    """A place in an application where engines call user code.

    Args:
        method: what is called there: ``decode``, ``event_time``, a generator's ``initial_value``
            or ``apply``, ``partition`` (of a key extractor too), ``compute`` (with or without
            state, for one message or several), ``build``, an aggregation's
            ``initial_accumulator``, ``update``, ``combine`` or ``output``, ``encode``.
        component: the component, as the application has it.
        user: the node that calls it; for ``build`` the state partition.
        place: the node's index in `Application.nodes`; the state partition's name.
    """

    method: str
    component: Component
    user: Node | StatePartition
    place: int | str


Call: TypeAlias = Callable[..., Any]

Around: TypeAlias = Callable[[CallSite, Call], Call]
"""An observer: gets a call site and its call, and returns what engines call instead: a function of
the same arguments, or the call itself where there is nothing to observe.

A `compute` for several messages may return an iterator: what it does, it does while it is read.
"""


def instrument(application: Application, around: Around) -> Application:
    """Return the same application, its calls of user code observed.

    Components that are used twice have two call sites. What is pickled and unpickled is observed
    no more.

    Args:
        application: what to observe; it stays as it is, and may be observed already.
        around: called once for each call site: those of the state partitions, then those of the
            nodes, in order.
    """
    places = {id(node): index for index, node in enumerate(application.nodes)}

    def observed(use: ComponentUse) -> Component:
        component, user = use.component, use.user
        place = user.name if isinstance(user, StatePartition) else places[id(user)]
        calls: dict[str, Any] = {}
        for method, attribute in _methods(use).items():
            call = getattr(component, attribute)
            if call is not None:
                instead = around(CallSite(method, component, user, place), call)
                calls[attribute] = call if instead is call else _described(instead, call)
        return replace(component, **calls)

    return application.map_components(observed)


_METHODS = {
    "decoder": "decode",
    "event time": "event_time",
    "partition function": "partition",
    "computation": "compute",
    "encoder": "encode",
    "builder": "build",
}


def _methods(use: ComponentUse) -> dict[str, str]:
    """Return the methods that are called of a component, and the attributes that hold them."""
    if isinstance(use.component, AggregationRecord):
        rest = ("initial_accumulator", "combine", "output")
        return {"update": "call", **{method: method for method in rest}}
    if isinstance(use.component, Generator):
        return {"initial_value": "initial_value", "apply": "call"}
    return {_METHODS[use.role]: "call"}


def _described(instead: Call, call: Call) -> Call:
    """Return `instead`, with the annotations of `call`: an engine may read what type it returns."""
    return functools.update_wrapper(instead, call, assigned=("__annotations__",), updated=())
