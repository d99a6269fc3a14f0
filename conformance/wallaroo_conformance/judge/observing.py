"""What a case does on the reference engine: its trace, and the calls it made of user code.

The calls tell which preconditions of rules a case really meets: that a computation *did* say
``changed=False`` after altering the state, not only that the application has such a computation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from wallaroo.engine import Engine
from wallaroo.topology import ComponentUse, Source, StatePartition, Step
from wallaroo.trace import Trace
from wallaroo_conformance.cases.building import assemble, engine_case
from wallaroo_conformance.cases.case import ConformanceCase

Result: TypeAlias = Literal["raised", "none", "empty", "falsy", "value", "items"]
"""The result of a call: `empty` and `items` for lists and tuples; `falsy` for other values that are
false, or cannot be tested for truth."""


_ROLES = {
    "decoder": "decode",
    "computation": "compute",
    "builder": "build",
    "partition function": "route",
    "encoder": "encode",
}


class Call(NamedTuple):
    """A call of user code.

    Args:
        role: ``decode``, ``compute``, ``build``, ``route`` or ``encode``.
        place: the pipeline's name; for ``build`` the state partition's.
        position: the step's, or the sink's index.
        result: its result; of a pair of output and flag, the output.
        changed: the flag, if it is such a pair.
        gaps: whether the items have `None` among them.
        falsy: whether the items have false ones among them.
        key: what it returned, of ``route``.
        mutable: whether a message that could be altered was handed over.
    """

    role: str
    place: str
    position: int
    result: Result
    changed: bool | None
    gaps: bool
    falsy: bool
    key: Any
    mutable: bool


@dataclass(frozen=True)
class Observation:
    """A case, its trace, and the calls of user code."""

    case: ConformanceCase
    trace: Trace
    calls: tuple[Call, ...]


def observe(reference: Engine, cases: Sequence[ConformanceCase]) -> list[Observation]:
    """Run cases on the reference engine, isolated, and watch the calls.

    A case for `trusting` mode is searched thoroughly for findings, because that mode is promised
    only to applications without any.
    """
    observations = []
    for case in cases:
        calls: list[Call] = []
        application = assemble(case).map_components(_watcher(calls))
        meant = case if case.isolation == "isolated" else replace(case, isolation="isolated")
        thorough = {"thorough": case.isolation == "trusting"}
        trace = reference.run(engine_case(meant, application, thorough))
        observations.append(Observation(case, trace, tuple(calls)))
    return observations


def _watcher(calls: list[Call]) -> Callable[[ComponentUse], Any]:
    def watch(use: ComponentUse) -> Any:
        call = use.component.call
        role, user = _ROLES[use.role], use.user
        if isinstance(user, StatePartition):
            place, position = user.name, 0
        elif isinstance(user, Source):
            place, position = user.pipeline, -1
        else:
            place = user.pipeline
            position = user.position if isinstance(user, Step) else user.index

        def watched(*arguments: Any) -> Any:
            mutable = bool(arguments) and _is_mutable(arguments[0])
            try:
                result = call(*arguments)
            except BaseException:
                calls.append(
                    Call(role, place, position, "raised", None, False, False, None, mutable)
                )
                raise
            key = result if role == "route" else None
            changed = None
            output = result
            if type(result) is tuple and len(result) == 2 and type(result[1]) is bool:
                output, changed = result
            kind, gaps, falsy = _kind(output)
            calls.append(Call(role, place, position, kind, changed, gaps, falsy, key, mutable))
            return result

        return replace(use.component, call=watched)

    return watch


def _kind(result: Any) -> tuple[Result, bool, bool]:
    """Return the kind of a result; and of items, whether `None` or other false values are there."""
    if result is None:
        return "none", False, False
    try:
        if isinstance(result, (list, tuple)):
            gaps = any(item is None for item in result)
            falsy = any(item is not None and is_false(item) for item in result)
            return "items" if result else "empty", gaps, falsy
    except Exception:  # noqa: BLE001 - an operator's own __iter__ may raise anything
        return "value", False, False
    return "falsy" if is_false(result) else "value", False, False


def is_false(value: Any) -> bool:
    """Whether a value is false, or cannot be tested for truth at all."""
    if value is NotImplemented:  # the test is a warning, and from Python 3.14 on an error
        return True
    try:
        return not value
    except Exception:  # noqa: BLE001 - an operator's own __bool__ may raise anything
        return True


def _is_mutable(value: Any) -> bool:
    """Whether a message can be altered, or one of a tuple's items."""
    if isinstance(value, tuple):
        return any(map(_is_mutable, value))
    return isinstance(value, (list, dict, set))
