"""The calls of user code while an engine runs a case: arguments and results, by place.

Engines may go through messages and steps in another order than the reference, as long as the same
comes out. So calls are kept by the place that made them: each node sees its messages in order.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeAlias

from wallaroo.engine import Engine
from wallaroo.user_code.calls import Call, CallSite, instrument
from wallaroo_conformance.cases.building import assemble, engine_case
from wallaroo_conformance.cases.case import ConformanceCase

Calls: TypeAlias = dict[int | str, list[str]]
"""For each place, a node's index or a state partition's name, its calls: a line each, in order."""

_LONGEST = 160  # characters of a value
_DEEPEST = 6
_NOT_SHOWN = ("initial_value", "apply", "initial_accumulator")


def calls_of(engine: Engine, case: ConformanceCase, options: dict[str, Any] | None = None) -> Calls:
    """Run a case and return the calls of its user code.

    They are empty where an engine runs user code in another process.
    """
    calls: Calls = {}

    def around(site: CallSite, call: Call) -> Call:
        if site.method in _NOT_SHOWN:
            return call

        def shown_call(*arguments: Any) -> Any:
            given = ", ".join([shown(one) for one in arguments])
            lines = calls.setdefault(site.place, [])
            try:
                result = call(*arguments)
            except BaseException as error:
                lines.append(f"{site.method}({given}) raises {type(error).__name__}")
                raise
            lines.append(f"{site.method}({given}) gives {shown(result)}")
            return result

        return shown_call

    with suppress(Exception):  # the run that counts has already reported a crash
        engine.run(engine_case(case, instrument(assemble(case), around), options))
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
