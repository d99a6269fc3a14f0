"""The canonical structure of a state entity: what two engines compare.

Qualified type and contents through ``__reduce_ex__``; sets sorted, the order of a dict and the
sharing of objects ignored, floats by their bits. Never ``__eq__``, which user code may define, and
never pickle's bytes, which depend on how an object was made.
"""

from __future__ import annotations

import base64
import copyreg
import math
import struct
from types import FunctionType, ModuleType
from typing import Any

from wallaroo.text import survives_json
from wallaroo.trace import canonical_json

_PROTOCOL = 4
_SIZED = frozenset({dict, frozenset, list, set, tuple})


def structure(value: object, most: float = math.inf) -> Any:
    """Return the canonical structure of `value`, made of JSON values.

    Every object becomes a list whose first item is its qualified type. An object that contains
    itself becomes ``["cycle", levels up]``.

    Args:
        value: the object.
        most: about how many values may be in it. An object that is shared counts each time: lists
            that hold each other twice, level by level, have a structure that nobody can write down.

    Raises:
        TypeError: `value`, or something in it, cannot be reduced (it could not be pickled either).
        RecursionError: it is nested too deeply.
        OverflowError: it has more values.
    """
    return _structure(value, _Above(most))


class _Above(list[int]):
    """The ids of the objects around one.

    Attributes:
        left: number of values that may still come.
    """

    def __init__(self, left: float) -> None:
        super().__init__()
        self.left = left


def structure_or_kind(value: object) -> Any:
    """Return the structure of `value`, or only its type if its structure cannot be computed.

    In `trusting` mode a state is never pickled, so it may be impossible to pickle, or nested too
    deeply. The trace then lists the type, and the run goes on.
    """
    try:
        return structure(value)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - user code in __reduce_ex__ may raise
        reason = "too deep" if isinstance(error, RecursionError) else "unportable"
        return [reason, f"{type(value).__module__}.{type(value).__qualname__}"]


def _structure(value: object, above: _Above) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return _text(value)  # type: ignore[arg-type]
    if kind is int:
        return ["int", f"{value:#x}"]
    if kind is float:
        return ["float", struct.pack(">d", value).hex()]
    if kind is complex:
        assert isinstance(value, complex)
        return ["complex", struct.pack(">dd", value.real, value.imag).hex()]
    if kind is bytes or kind is bytearray:
        return [kind.__name__, base64.b64encode(value).decode("ascii")]  # type: ignore[arg-type]
    if isinstance(value, (type, FunctionType, ModuleType)):
        return ["global", f"{getattr(value, '__module__', '')}.{_qualified(value)}"]
    if id(value) in above:
        return ["cycle", len(above) - above.index(id(value))]
    above.left -= 1 + (len(value) if kind in _SIZED else 0)  # type: ignore[arg-type]  # they have a length
    if above.left < 0:
        raise OverflowError("it has too many values")
    above.append(id(value))
    try:
        return _contents(value, kind, above)
    finally:
        above.pop()


def _text(value: str) -> list[str]:
    if survives_json(value):
        return ["str", value]
    return ["utf-8", base64.b64encode(value.encode("utf-8", "surrogatepass")).decode("ascii")]


def _contents(value: Any, kind: type, above: _Above) -> Any:
    if kind is list or kind is tuple:
        return [kind.__name__, [_structure(item, above) for item in value]]
    if kind is dict:
        return ["dict", _sorted_pairs(value.items(), above)]
    if kind is set or kind is frozenset:
        return [kind.__name__, _sorted([_structure(item, above) for item in value])]
    reduced = _reduce(value, kind)
    if isinstance(reduced, str):
        # As pickle does it: an instance may name the module in which it is found.
        return ["global", f"{getattr(value, '__module__', kind.__module__)}.{reduced}"]
    callable_, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    form: list[Any] = [
        f"{kind.__module__}.{kind.__qualname__}",
        _structure(callable_, above),
        [_structure(argument, above) for argument in arguments],
        _state(state, above),
    ]
    if isinstance(value, (set, frozenset)):
        # A subclass of set reduces to a list of its items, in hash order.
        form[2] = [_sorted_list(argument) for argument in form[2]]
    form.append(None if items is None else [_structure(item, above) for item in items])
    form.append(None if pairs is None else _sorted_pairs(pairs, above))
    return form


def _state(state: object, above: _Above) -> Any:
    # An attribute dict is not an object of the user's: as a level in `above` it would hide cycles.
    # An empty one is left out: an exception gets one as soon as its `__dict__` is read.
    if type(state) is dict:
        return ["dict", _sorted_pairs(state.items(), above)] if state else None
    return _structure(state, above)


def _reduce(value: object, kind: type) -> Any:
    reducer = copyreg.dispatch_table.get(kind)
    return reducer(value) if reducer is not None else value.__reduce_ex__(_PROTOCOL)


def _sorted_pairs(pairs: Any, above: _Above) -> list[Any]:
    return _sorted([[_structure(key, above), _structure(item, above)] for key, item in pairs])


def _sorted_list(form: Any) -> Any:
    return ["list", _sorted(form[1])] if isinstance(form, list) and form[0] == "list" else form


def _sorted(forms: list[Any]) -> list[Any]:
    return sorted(forms, key=canonical_json)


def _qualified(value: Any) -> str:
    return str(getattr(value, "__qualname__", getattr(value, "__name__", "")))
