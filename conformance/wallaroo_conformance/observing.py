"""What a case does on the reference engine: its trace, and the calls it made of user code.

The calls tell which preconditions of which rules a case truly meets: that a computation *did* say
``changed=False`` after altering the state, not only that one is in the application.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from wallaroo.engine import Engine
from wallaroo.trace import Trace
from wallaroo_conformance.building import assemble, engine_case
from wallaroo_conformance.case import ConformanceCase


class Call(NamedTuple):
    """A call of user code.

    Args:
        role: ``decode``, ``compute``, ``build``, ``route`` or ``encode``.
        place: the pipeline's name; for ``build`` the state partition's.
        position: the step's, or the sink's index.
        kind: what came of it: ``raised``, or what `_kind` says of the result.
        key: the result, of ``route``.
        mutable: whether a message that could be altered was handed over.
    """

    role: str
    place: str
    position: int
    kind: str
    key: Any
    mutable: bool


@dataclass(frozen=True)
class Observation:
    """A case, what it means, and which calls showed it."""

    case: ConformanceCase
    trace: Trace
    calls: tuple[Call, ...]


def observe(reference: Engine, cases: Sequence[ConformanceCase]) -> list[Observation]:
    """Run cases on the reference engine, isolated, and watch the calls.

    A case meant for `trusting` mode is looked through thoroughly for findings, as that mode is
    promised only to applications without any.
    """
    observations = []
    for case in cases:
        calls: list[Call] = []
        application = assemble(case, _watcher(calls))
        meant = case if case.isolation == "isolated" else replace(case, isolation="isolated")
        thorough = {"thorough": case.isolation == "trusting"}
        trace = reference.run(engine_case(meant, application, thorough))
        observations.append(Observation(case, trace, tuple(calls)))
    return observations


def _watcher(calls: list[Call]) -> Any:
    def watch(role: str, place: str, position: int, record: Any) -> Any:
        call = record.call

        def watched(*arguments: Any) -> Any:
            mutable = bool(arguments) and isinstance(arguments[0], (list, dict))
            try:
                result = call(*arguments)
            except BaseException:
                calls.append(Call(role, place, position, "raised", None, mutable))
                raise
            key = result if role == "route" else None
            calls.append(Call(role, place, position, _kind(result), key, mutable))
            return result

        return replace(record, call=watched)

    return watch


def _kind(result: Any) -> str:
    """Return what a result is, as far as rules make a difference."""
    if type(result) is tuple and len(result) == 2 and type(result[1]) is bool:
        return f"{_kind(result[0])}, {result[1]}"
    if result is None:
        return "none"
    try:
        if isinstance(result, (list, tuple)):
            return _items_kind(result)
        truth = bool(result)
    except Exception:  # noqa: BLE001 - an operator's own __bool__ may raise anything
        return "value"
    return "value" if truth else "falsy"


def _items_kind(items: Sequence[Any]) -> str:
    if not items:
        return "empty"
    gaps = any(item is None for item in items)
    falsy = any(item is not None and not item for item in items)
    return f"{'falsy ' if falsy else ''}{'gaps' if gaps else 'list'}"
