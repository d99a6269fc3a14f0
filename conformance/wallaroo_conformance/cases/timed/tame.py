"""Components of timed cases that alter nothing that is not theirs, for `trusting` mode.

Seen from outside they do what the others do. That mode promises its rules only to applications
without findings: whose components alter no message, and no state or accumulator before they fail.
"""

from __future__ import annotations

from typing import Any

from wallaroo.aggregations import aggregation_of
from wallaroo.components import (
    Component,
    event_time_of,
    own_state_of,
    partition_function_of,
    state_computation_of,
)
from wallaroo.topology import Application, ComponentUse
from wallaroo_conformance.cases.timed.operators import (
    ByNumber,
    Remember,
    RememberEach,
    RememberEachPair,
    RememberPair,
    Texts,
    own_time,
    time_that_alters,
)


def tamed(application: Application) -> Application:
    """Return the application with tame components."""
    return application.map_components(_tamed)


def _tamed(use: ComponentUse) -> Component:
    component = use.component.component
    if component is time_that_alters:
        return event_time_of(own_time)
    kind = type(component)
    if kind is Texts:
        return aggregation_of(_TameTexts(component.step))
    if kind is ByNumber:
        return partition_function_of(_TameByNumber(component.__name__))
    if kind in _STATEFUL:
        made = _STATEFUL[kind](component.step)
        if own_state_of(component) is not None:
            object.__setattr__(made, "own_state", own_state_of(component))
        return state_computation_of(made)
    return use.component


class _TameTexts(Texts):
    def update(self, message: Any, accumulator: Any) -> None:
        if "u" in message[2]:
            raise ValueError("u")
        accumulator.append(message[2])

    def combine(self, earlier: Any, later: Any) -> None:
        if any("c" in text for text in later):
            raise ValueError("c")
        earlier += later

    def output(self, key: Any, accumulator: Any, window: Any) -> Any:
        return super().output(key, list(accumulator), window)


class _TameByNumber(ByNumber):
    def extract_key(self, message: Any) -> Any:
        return super().extract_key(list(message))


class _TameRemember(Remember):
    def compute(self, message: Any, tally: Any) -> Any:
        _refuse(message)
        return super().compute(message, tally)


class _TameRememberEach(RememberEach):
    def compute_multi(self, message: Any, tally: Any) -> Any:
        _refuse(message)
        return super().compute_multi(message, tally)


class _TameRememberPair(RememberPair):
    def compute(self, message: Any, tally: Any) -> Any:
        _refuse(message)
        return super().compute(message, tally)


class _TameRememberEachPair(RememberEachPair):
    def compute_multi(self, message: Any, tally: Any) -> Any:
        _refuse(message)
        return super().compute_multi(message, tally)


_STATEFUL: dict[type, Any] = {
    Remember: _TameRemember,
    RememberEach: _TameRememberEach,
    RememberPair: _TameRememberPair,
    RememberEachPair: _TameRememberEachPair,
}


def _refuse(message: Any) -> None:
    """Fail before the state is altered."""
    if "s" in message[2]:
        raise ValueError("s")
