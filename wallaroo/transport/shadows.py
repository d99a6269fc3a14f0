"""Stored states as objects, where the application's code is not there.

States are shown as canonical structure without running the application's code: a class that is not
in the standard library is replaced by a *shadow*, which has its name and keeps what pickle gives
it. So the structure is that of `wallaroo.canonical`, with one exception: if a class's
``__reduce__`` names a function that makes its objects, the function's name is in the place of the
type's.
"""

from __future__ import annotations

import base64
import copyreg
import io
import pickle
from typing import Any

from wallaroo.canonical import structure

_MOST_VALUES, _MOST_VALUES_A_BYTE = 1 << 20, 16
_OPEN = {  # the names in these modules that only make values
    "builtins": {"bytearray", "complex", "frozenset", "object", "range", "set", "slice"},
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque"},
    "copyreg": {"_reconstructor", "__newobj__", "__newobj_ex__"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "fractions": {"Fraction"},
    "uuid": {"UUID"},
    "_codecs": {"encode"},
}


def structure_of(data: bytes) -> Any:
    """Return the canonical structure of a pickled state; of other bytes ``["stored", base64]``.

    Also of a state that shares objects so often that its structure has far more values than bytes.
    """
    try:
        most = max(_MOST_VALUES, _MOST_VALUES_A_BYTE * len(data))
        return structure(_Unpickler(io.BytesIO(data)).load(), most)
    except Exception:  # noqa: BLE001 - written by an application's own codec, or not shown by shadows
        return ["stored", base64.b64encode(data).decode()]


def state_of(data: bytes) -> Any:
    """Return a pickled state as an object of its class; if the class is gone, as a `_Gone`.

    Raises:
        Exception: it was not pickled, or a class of the application refuses.
    """
    return _Forgiving(io.BytesIO(data)).load()


class _Unpickler(pickle.Unpickler):
    """Makes shadows of the application's objects."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class or function that is safe to use, or a shadow of it."""
        if name in _OPEN.get(module, ()):
            return super().find_class(module, name)
        return _shadow(module, name)


class _Forgiving(pickle.Unpickler):
    """Makes the application's objects, and others of those whose class is gone."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class or function, or what stands for it if it is not there."""
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError):
            return _shadow(module, name, _Gone)


def _shadow(module: str, name: str, base: type | None = None) -> Any:
    space = {"__module__": module, "__qualname__": name}
    return type(name.rpartition(".")[2], (base or _Shadow,), space)


class _Gone:
    """An object whose class is gone: it has the attributes that were stored, and no others.

    If something else was stored, it is in `__arguments__` (of ``__new__``), `__items__` (of a
    list's subclass), `__pairs__` (of a dict's subclass), or `__state__` (which is not a dict).
    """

    def __new__(cls, *arguments: Any, **_: Any) -> _Gone:
        made = super().__new__(cls)
        if arguments:
            made.__dict__["__arguments__"] = arguments
        return made

    def __setstate__(self, state: Any) -> None:
        parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)  # with slots
        if all(part is None or isinstance(part, dict) for part in parts):
            for part in parts:
                self.__dict__.update(part or {})
        else:
            self.__dict__["__state__"] = state

    def __getattr__(self, name: str) -> Any:
        if name == "extend":  # pickle asks before the object has attributes of its own
            return self.__dict__.setdefault("__items__", []).extend
        raise AttributeError(f"{type(self).__qualname__!r} object has no attribute {name!r}")

    def __setitem__(self, key: Any, value: Any) -> None:
        self.__dict__.setdefault("__pairs__", {})[key] = value


class _Shadow:
    """An object of a class that is not available here."""

    def __new__(cls, *arguments: Any, **_: Any) -> _Shadow:
        made = super().__new__(cls)
        made.arguments = arguments
        made.state = None
        made.items = []
        made.pairs = {}
        return made

    arguments: tuple[Any, ...]
    state: Any
    items: list[Any]
    pairs: dict[Any, Any]

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__.get("state")
        if isinstance(state, dict) and name in state:
            return state[name]
        raise AttributeError(name)

    def append(self, item: Any) -> None:
        """Take an item of a list's subclass."""
        self.items.append(item)

    def extend(self, items: Any) -> None:
        """Take items of a list's subclass."""
        self.items.extend(items)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.pairs[key] = value

    def __reduce_ex__(self, protocol: Any) -> Any:
        items = iter(self.items) if self.items else None
        pairs = iter(self.pairs.items()) if self.pairs else None
        made = (type(self), *self.arguments)
        return copyreg.__newobj__, made, self.state, items, pairs  # type: ignore[attr-defined]  # typeshed leaves it out
