"""Following: notes the arguments and results of user code while an engine runs a case, by node.

Engines may go through messages and steps in another order than the reference, as long as the same
comes out. So calls are kept by the node that made them: each node sees its messages in order.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

from wallaroo.engine import Engine
from wallaroo.topology import Application, ComponentUse, StatePartition
from wallaroo_conformance.cases.building import assemble, engine_case
from wallaroo_conformance.cases.case import ConformanceCase

Place: TypeAlias = tuple[str, int | str]
"""``node`` and its index in the application, or ``state`` and a state partition's name."""

Calls: TypeAlias = dict[Place, list[str]]
"""For each place the calls of its user code, one line each, in their order."""

_LONGEST = 160  # characters of a value
_DEEPEST = 6


def followed(engine: Engine, case: ConformanceCase, options: dict[str, Any] | None = None) -> Calls:
    """Run a case and return the calls of its user code.

    They are empty where an engine runs user code in another process.
    """
    calls: Calls = {}
    application = assemble(case)
    watched = application.map_components(_watcher(application, calls))
    with suppress(Exception):  # the run that counts has already reported a crash
        engine.run(engine_case(case, watched, options))
    return calls


def shown(value: Any, depth: int = 0) -> str:
    """Return a value for people, without calling user code such as its own `repr`."""
    text = _shown(value, depth)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _shown(value: Any, depth: int) -> str:
    kind = type(value)
    if value is None or kind in (str, bytes, bool, float):
        return repr(value)
    if kind is int:
        return repr(value) if value.bit_length() < 4 * _LONGEST else hex(value)
    if depth == _DEEPEST:
        return "…"
    if kind in (list, tuple, set, frozenset):
        items = ", ".join([_shown(item, depth + 1) for item in list(value)[:_LONGEST]])
        ends = "[]" if kind is list else "()" if kind is tuple else "{}"
        return f"{ends[0]}{items}{',' if kind is tuple and len(value) == 1 else ''}{ends[1]}"
    if kind is dict:
        pairs = [f"{_shown(k, depth + 1)}: {_shown(v, depth + 1)}" for k, v in value.items()]
        return f"{{{', '.join(pairs)}}}"
    name = type.__getattribute__(kind, "__name__")
    try:
        fields = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return f"<{name}>"
    parts = [f"{field}={_shown(one, depth + 1)}" for field, one in fields.items()]
    return f"{name}({', '.join(parts)})"


def _watcher(application: Application, calls: Calls) -> Callable[[ComponentUse], Any]:
    numbers = {id(node): index for index, node in enumerate(application.nodes)}

    def watched(name: str, place: Place, call: Any) -> Any:
        def calling(*arguments: Any) -> Any:
            given = ", ".join([shown(one) for one in arguments])
            lines = calls.setdefault(place, [])
            try:
                result = call(*arguments)
            except BaseException as error:
                lines.append(f"{name}({given}) raises {type(error).__name__}")
                raise
            lines.append(f"{name}({given}) gives {shown(result)}")
            return result

        return calling

    def watch(use: ComponentUse) -> Any:
        record: Any = use.component
        user = use.user
        place: Place = (
            ("state", user.name)
            if isinstance(user, StatePartition)
            else ("node", numbers[id(user)])
        )
        if use.role == "generator":
            return record
        if use.role != "aggregation":
            return replace(record, call=watched(use.role, place, record.call))
        methods = {
            name: watched(name, place, getattr(record, name))
            for name in ("combine", "output")
            if getattr(record, name) is not None
        }
        return replace(record, call=watched("update", place, record.call), **methods)

    return watch
