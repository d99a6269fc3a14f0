"""Copies by pickle round trip: in `isolated` mode no two calls share an object.

The round trip is the standard library's `pickle.dumps` at protocol 5 and `pickle.loads`; never
``__deepcopy__``. A value that survives it is *portable*: it means the same in another process,
which is what Spark needs.

For two kinds of value the result of a round trip is known, so none is made:

- *atoms*: exactly `str`, `bytes`, `int`, `float`, `bool` and `None`, and tuples of them. They
  cannot be changed, so each is its own copy.
- instances of *plain* classes, which define nothing about pickling, if their attributes are atoms,
  or lists and dicts of atoms that nothing else refers to. A round trip would make an empty instance
  and put copies of the attributes into it, and `_Plain` does just that.
"""

from __future__ import annotations

import copyreg
import operator
import pickle
from itertools import groupby
from types import GetSetDescriptorType
from typing import Any, Final

from wallaroo.judging import DeadLetterError
from wallaroo.topology import Codec
from wallaroo.trace import Reason
from wallaroo.user_code.failure import describe_error
from wallaroo_reference.user_calls import dead_letter_from, where_it_failed

PROTOCOL: Final = 5
ATOMS: Final = frozenset({str, bytes, int, float, bool, type(None)})
_ATTRIBUTES_OF_OBJECT = ("__reduce_ex__", "__reduce__", "__getstate__", "__getattribute__")
_HOOKS = ("__setstate__", "__getnewargs__", "__getnewargs_ex__", "__getattr__", "__slots__")


class UnportableError(DeadLetterError):
    """A value that does not survive a pickle round trip."""

    def __init__(self, error: str, raised: Exception) -> None:
        super().__init__(Reason.UNPORTABLE, error, failure=where_it_failed(raised))


class Frozen:
    """A value as it was when it was frozen; each call of `thaw` returns a new copy."""

    __slots__ = ("_first", "blob")

    def __init__(self, blob: bytes, first: Any) -> None:
        self.blob = blob
        # The copy that proved that the value survives; the first `thaw` returns it.
        self._first = first

    def thaw(self) -> Any:
        """Return a copy that nothing else refers to.

        Raises:
            UnportableError: the value survived the first round trip, but does not survive this one.
        """
        first = self._first
        if first is not None:
            self._first = None
            return first
        try:
            return self._load()
        except BaseException as error:
            if not isinstance(error, Exception):
                raise dead_letter_from(error, Reason.UNPORTABLE) from error
            raise UnportableError(
                f"a frozen value does not come back: {type(error).__name__}: "
                f"{describe_error(error)}",
                error,
            ) from error

    def packed(self) -> bytes:
        """Return the value as bytes, for a checkpoint."""
        return self.blob

    def same(self, value: Any) -> bool:
        """Whether `value` pickles to the same bytes; equal values may pickle to other bytes."""
        return pickle.dumps(value, PROTOCOL) == self.blob

    def _load(self) -> Any:
        return pickle.loads(self.blob)  # noqa: S301 - our own bytes, never the network's


class _Plain(Frozen):
    """An instance of a plain class; its attributes named in `nested` are flat lists or dicts."""

    __slots__ = ("attributes", "kind", "nested")

    def __init__(self, kind: type, attributes: dict[str, Any], nested: list[str]) -> None:
        self.kind = kind
        self.attributes = attributes
        self.nested = nested

    def thaw(self) -> Any:
        """Return a new instance with copies of the attributes, as `object`'s pickling does."""
        value: Any = object.__new__(self.kind)
        attributes = value.__dict__  # the class may have a __setattr__ that refuses
        attributes.update(self.attributes)
        for name in self.nested:
            attributes[name] = attributes[name].copy()
        return value

    def packed(self) -> bytes:
        """Return the value as bytes, for a checkpoint."""
        return pickle.dumps(self.thaw(), PROTOCOL)

    def same(self, value: Any) -> bool:
        """Whether `value` is of the same class and its attributes are the same objects."""
        now = value.__dict__
        if type(value) is not self.kind or now.keys() != self.attributes.keys():
            return False
        return all(
            now[name] is item or (name in self.nested and _same_flat(now[name], item))
            for name, item in self.attributes.items()
        )


def freeze(value: Any) -> Any:
    """Return `value` as it is now: the value itself if it is an atom, else `Frozen`.

    Raises:
        UnportableError: it does not survive a round trip.
    """
    kind = type(value)
    if kind in ATOMS:
        return value
    if kind is tuple:
        for item in value:
            if type(item) not in ATOMS:
                break
        else:
            return value
    else:
        plain = _plain.get(kind)
        if plain is None:
            if len(_plain) >= _CLASSES_REMEMBERED:
                _plain.clear()
            plain = _plain[kind] = _is_plain(kind)
        if plain:
            frozen = _freeze_plain(kind, value.__dict__)
            if frozen is not None:
                return frozen
    try:
        blob = pickle.dumps(value, PROTOCOL)
        return Frozen(blob, pickle.loads(blob))  # noqa: S301 - our own bytes
    except BaseException as error:
        if not isinstance(error, Exception):
            raise dead_letter_from(error, Reason.UNPORTABLE) from error
        raise UnportableError(
            f"a {kind.__module__}.{kind.__qualname__} does not survive pickling: "
            f"{type(error).__name__}: {describe_error(error)}",
            error,
        ) from error


class CodedCopies:
    """Copies by an application's own `serialize` and `deserialize` (key-5)."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def freeze(self, value: Any) -> Any:
        """Return `value` as it is now, of whatever type: its codec may refuse an atom too.

        Raises:
            UnportableError: it does not survive a round trip.
        """
        codec, kind = self._codec, type(value)
        try:
            blob = codec.serialize(value)
            if type(blob) is not bytes:
                raise TypeError(f"serialize returned a {type(blob).__name__}, not bytes")
            return _Coded(blob, codec.deserialize(blob), codec)
        except BaseException as error:
            if not isinstance(error, Exception):
                raise dead_letter_from(error, Reason.UNPORTABLE) from error
            raise UnportableError(
                f"a {kind.__module__}.{kind.__qualname__} does not survive the application's "
                f"serialize and deserialize: {type(error).__name__}: {describe_error(error)}",
                error,
            ) from error


class _Coded(Frozen):
    """A value as the application's `serialize` wrote it."""

    __slots__ = ("_codec",)

    def __init__(self, blob: bytes, first: Any, codec: Codec) -> None:
        super().__init__(blob, first)
        self._codec = codec

    def same(self, value: Any) -> bool:
        """Whether `value` is written to the same bytes."""
        return self._codec.serialize(value) == self.blob

    def _load(self) -> Any:
        return self._codec.deserialize(self.blob)


def _freeze_plain(kind: type, attributes: dict[str, Any]) -> _Plain | None:
    """Return an instance of a plain class, frozen; `None` if it needs a real round trip."""
    kept = attributes.copy()
    nested: list[str] = []
    for name, item in attributes.items():
        if type(name) is not str or name in _OWN_HOOKS:
            return None
        if type(item) not in ATOMS:
            if not _is_flat(item):
                return None
            # Two attributes may be the same list; a round trip would keep that.
            if nested and any(attributes[other] is item for other in nested):
                return None
            nested.append(name)
            kept[name] = item.copy()
    return _Plain(kind, kept, nested)


def _is_flat(value: Any) -> bool:
    """Whether `value` is exactly a list or dict, and holds atoms only.

    It checks runs of items of one type, since most lists have only one or two types: the fastest
    way to check every item.
    """
    if type(value) is dict:
        for kind, _ in groupby(value.values(), type):
            if kind not in ATOMS:
                return False
    elif type(value) is not list:
        return False
    for kind, _ in groupby(value, type):  # noqa: SIM110 - twice as fast as all() of a generator
        if kind not in ATOMS:
            return False
    return True


def _same_flat(first: Any, second: Any) -> bool:
    """Whether two flat values hold the same objects, a dict's in any order."""
    if type(first) is not type(second) or len(first) != len(second):
        return False
    if type(first) is list:
        return all(map(operator.is_, first, second))
    absent = object()
    return all(first.get(key, absent) is item for key, item in second.items())


def thaw(value: Any) -> Any:
    """Return a copy of what `freeze` was given."""
    return value.thaw() if isinstance(value, Frozen) else value


def packed(value: Any) -> bytes:
    """Return what `freeze` was given as bytes: pickled, or as the application's codec wrote it."""
    return value.packed() if isinstance(value, Frozen) else pickle.dumps(value, PROTOCOL)


class _Bare:
    """A class whose instances keep everything in ``__dict__``."""


_plain: dict[type, bool] = {}
"""Which classes are plain, found once for each."""

_CLASSES_REMEMBERED = 4096  # a bound: an application may create a new class for each message

_OWN_HOOKS = frozenset({*_ATTRIBUTES_OF_OBJECT, *_HOOKS, "__class__"})
"""Names that pickling would look up on the instance itself."""


def _is_plain(kind: type) -> bool:
    """Whether `kind` defines nothing about pickling, and is found under its name."""
    if type(kind) is not type or getattr(kind, "__new__", None) is not object.__new__:
        return False
    # If it is larger, it inherits from a class written in C, whose data is in no attribute.
    if kind in copyreg.dispatch_table or kind.__basicsize__ != _Bare.__basicsize__:
        return False
    if any(getattr(kind, name) is not getattr(object, name) for name in _ATTRIBUTES_OF_OBJECT):
        return False
    if any(name in base.__dict__ for base in kind.__mro__[:-1] for name in (*_HOOKS, "__class__")):
        return False
    dictionary = [base.__dict__["__dict__"] for base in kind.__mro__ if "__dict__" in base.__dict__]
    if list(map(type, dictionary)) != [GetSetDescriptorType]:  # it may define its own
        return False
    try:
        return pickle.loads(pickle.dumps(kind, PROTOCOL)) is kind  # noqa: S301 - our own bytes
    except Exception:  # noqa: BLE001 - not importable: pickling its instances says so too
        return False
