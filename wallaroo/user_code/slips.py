"""Slips that no rule refuses: what they give is valid, and rarely meant. Each is logged once.

Seconds where nanoseconds count, and the builder's pair where the output alone is the result.
`wallaroo run` and `wallaroo.testing` log them; the pair only `wallaroo.testing`, because to look at
each result costs a call. User code that runs in other processes, such as Spark's workers, is not
observed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from wallaroo.components import Component, EventTime, StateComputation
from wallaroo.operations import Windowed
from wallaroo.times import MILLISECOND, has_unit
from wallaroo.topology import Application, ComponentUse, Step
from wallaroo.windows import show_duration

_YEAR_1971 = 365 * 86400 * 10**9  # nanoseconds
_LENGTHS = ("range", "slide", "gap", "delay", "timeout")

_log = logging.getLogger("wallaroo")


def slips_logged(application: Application, *, pairs: bool) -> Application:
    """Return the same application, which logs a warning at the first slip of each kind and place.

    Args:
        application: durations in it are looked at now, what user code gives while it runs.
        pairs: also look for the builder's pairs: that costs a call at each state computation.
            `isolated` mode has them as findings.
    """
    for where, length in _lengths(application):
        if 0 < length < MILLISECOND and not has_unit(length):
            _log.warning(
                "%s is %s: a bare number counts nanoseconds. Write: wallaroo.seconds(%d), or "
                "wallaroo.nanoseconds(%d) if that is meant",
                *(where, show_duration(length), length, length),
            )

    def logged(use: ComponentUse) -> Component:
        component = use.component
        if isinstance(component, EventTime) and not component.of_record:
            # Usual times are not looked at: an engine's fast path stays as it is.
            judged = _early_logged(getattr(use.user, "pipeline", ""), component.judged)
            return replace(component, judged=judged, usual=_YEAR_1971)
        if pairs and isinstance(component, StateComputation) and not component.pair:
            return replace(component, call=_results_observed(component, component.call))
        return component

    return application.map_components(logged)


def pair_slip(result: tuple[Any, ...] | list[Any], *, multi: bool) -> str | None:
    """Return what to say of a result that looks like the builder's ``(output, changed)``.

    Args:
        result: what a state computation of the pipeline form returned; of a multi one its items.
        multi: whether it gives several messages: then the first of a pair is a list, a tuple or
            `None`.
    """
    if len(result) != 2 or type(result[1]) is not bool:
        return None
    if multi and type(result[0]) not in (list, tuple, type(None)):
        return None
    output = "outputs" if multi else "output"
    return (
        f"it returned ({output}, {result[1]}): a pair of output and flag belongs to the builder's "
        f"form. Here the whole pair is what goes on. Write: return {output.upper()}; if the pair "
        "is the message that you mean, nothing is wrong"
    )


def _lengths(application: Application) -> Iterator[tuple[str, int]]:
    """Yield the durations that an application says, and where."""
    for source in application.sources.values():
        if source.config.idle_after is not None:
            yield f"source {source.pipeline!r}: idle_after", source.config.idle_after
        if source.config.max_ahead is not None:
            yield f"source {source.pipeline!r}: max_ahead", source.config.max_ahead
    for step in application.steps:
        if isinstance(step.operation, Windowed):
            windows = step.operation.windows
            for name in _LENGTHS:
                length = getattr(windows, name, None)
                if length is not None and (name != "slide" or length != windows.range):  # type: ignore[union-attr]  # what slides has a range
                    yield f"{_place(step)}: the windows' {name}", length
    for partition in application.partitions:
        if partition.expire_after is not None:
            yield f"state partition {partition.name!r}: expire_after", partition.expire_after


def _place(step: Step) -> str:
    return f"pipeline {step.pipeline!r}, step {step.name!r}"


def _early_logged(source: str, judged: Callable[[Any], int]) -> Callable[[Any], int]:
    said = False

    def early_logged(result: Any) -> int:
        nonlocal said
        time = judged(result)
        if time < _YEAR_1971 and not said:
            said = True
            _log.warning(
                "source %r: event_time gave %s, which is before 1971: an int counts nanoseconds "
                "since 1970-01-01. For seconds write: wallaroo.seconds(…)",
                *(source, result if type(result) is int else result.isoformat()),
            )
        return time

    return early_logged


def _results_observed(component: StateComputation, call: Callable[..., Any]) -> Callable[..., Any]:
    said = False

    def compute(message: Any, state: Any) -> Any:
        nonlocal said
        result = call(message, state)
        if (
            not said
            and type(result) is tuple
            and (slip := pair_slip(result, multi=component.multi))
        ):
            said = True
            _log.warning("step %r: %s", component.name, slip)
        return result

    return compute
