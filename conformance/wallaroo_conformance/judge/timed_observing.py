"""What a timed case does on the reference: its trace, and the calls of user code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from wallaroo.components import Component
from wallaroo.engine import Engine
from wallaroo.topology import Application, ComponentUse
from wallaroo.trace import Trace
from wallaroo_conformance.cases.building import assemble, engine_case
from wallaroo_conformance.cases.case import ConformanceCase

RAISED = "raised"
"""The result of a call that raised."""


class TimedCall(NamedTuple):
    """A call of user code.

    Args:
        role: a method of an aggregation, or the role of another component.
        user: the node, or the state partition, that calls it.
        arguments: what it was called with.
        result: its result; the text ``raised`` if it raised.
    """

    role: str
    user: Any
    arguments: tuple[Any, ...]
    result: Any


@dataclass(frozen=True)
class TimedObservation:
    """A timed case, its application, its trace, and the calls of user code."""

    case: ConformanceCase
    application: Application
    trace: Trace
    calls: tuple[TimedCall, ...]


def observe_timed(reference: Engine, cases: Sequence[ConformanceCase]) -> list[TimedObservation]:
    """Run timed cases on the reference engine, isolated, and watch the calls."""
    observations = []
    for case in cases:
        calls: list[TimedCall] = []
        application = assemble(case)
        watched = application.map_components(_watcher(calls))
        meant = replace(case, isolation="isolated")
        thorough = {"thorough": case.isolation == "trusting"}
        trace = reference.run(engine_case(meant, watched, thorough))
        observations.append(TimedObservation(case, application, trace, tuple(calls)))
    return observations


def _watcher(calls: list[TimedCall]) -> Callable[[ComponentUse], Component]:
    def watched(role: str, user: Any, call: Any) -> Any:
        def calling(*arguments: Any) -> Any:
            try:
                result = call(*arguments)
            except BaseException:
                calls.append(TimedCall(role, user, arguments, RAISED))
                raise
            calls.append(TimedCall(role, user, arguments, result))
            return result

        return calling

    def watch(use: ComponentUse) -> Any:
        record: Any = use.component
        if use.role != "aggregation":
            return replace(record, call=watched(use.role, use.user, record.call))
        methods = {
            name: watched(name, use.user, getattr(record, name))
            for name in ("combine", "output")
            if getattr(record, name) is not None
        }
        return replace(record, call=watched("update", use.user, record.call), **methods)

    return watch
