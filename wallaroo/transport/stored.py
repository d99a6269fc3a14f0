"""A checkpoint on disk, as `wallaroo checkpoint` shows and migrates it, whichever engine wrote it.

An engine whose checkpoints can be looked at has a method ``stored(directory)``, which returns a
`StoredCheckpoint`. Nothing is changed, and a run may be using the checkpoint. A migration makes a
new checkpoint beside the old one: all but the states is copied.

States are shown as canonical structure without running the application's code: a class that is not
in the standard library is replaced by a *shadow*, which has its name and keeps what pickle gives
it. So the structure is that of `wallaroo.canonical`, with one exception: if a class's
``__reduce__`` names a function that makes its objects, the function's name is in the place of the
type's.
"""

from __future__ import annotations

import base64
import contextlib
import copyreg
import io
import os
import pickle
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from wallaroo.canonical import structure
from wallaroo.keys import Key, decode_key, key_to_json
from wallaroo.trace import Entity
from wallaroo.transport.checkpoint import LOCK, CheckpointDirectory, CheckpointError
from wallaroo.transport.input_log import InputLogError
from wallaroo.transport.log_directory import LogEnds, ends, read
from wallaroo.transport.old_states import FreshStates, Place
from wallaroo.transport.private import make_private, sync_directory
from wallaroo.transport.stamps import Stamp
from wallaroo.transport.stored_state import StoredState, windows_from, with_parts
from wallaroo.windowing.kinds import Count, kind_of
from wallaroo.windows import windows_of

_PROTOCOL = 5  # of pickle, as both engines store states
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

Change: TypeAlias = Callable[[str, Key, Any], Any]
"""Takes a state partition's name, a key and a state; returns the new state.

Also a window step's name, the key of an open window, and an accumulator of it. Where the
application has its own `serialize`, states are bytes: what that has made."""


@dataclass(frozen=True)
class LogPart:
    """The input log of a checkpoint.

    Args:
        ends: where it begins and ends, and whose it is.
        size: bytes of its files.
        torn: what is wrong at its end, if an append was cut off there; a restart drops it.
    """

    ends: LogEnds
    size: int
    torn: str | None


def look_at_log(directory: Path) -> LogPart:
    """Return what an input log holds, after reading all of it.

    Raises:
        InputLogError: it is damaged.
    """
    try:
        files, torn = read(directory)
    except OSError as error:
        raise InputLogError(
            f"the input log {directory} cannot be read: {error.strerror}"
        ) from error
    size = sum([file.size for file in files])
    said = None if torn is None else f"{files[-1].path}: {torn}"
    return LogPart(ends(files), size, said)


@dataclass(frozen=True)
class Overview:
    """What a checkpoint holds.

    Args:
        position: number of the first record whose effect is not in the state.
        at: when the state was stored, in nanoseconds since 1970; `None`: never yet.
        sizes: bytes of its parts, by name.
        entities: their number by state partition; `None`: the engine cannot tell.
        windows: number of open windows' parts by step.
        outputs: number of outputs that came of the records before the position, by sink.
    """

    position: int
    at: int | None
    sizes: Mapping[str, int]
    entities: Mapping[str, int] | None
    windows: Mapping[str, int] = field(default_factory=dict)
    outputs: Mapping[str, int] = field(default_factory=dict)


class StoredCheckpoint(Protocol):
    """An engine's part of a checkpoint."""

    def stamps(self) -> Iterator[tuple[Path, Stamp]]:
        """Yield the files that say whose this part is, and what they say (recover-3).

        Raises:
            WallarooError: one is damaged.
        """

    def position(self) -> int:
        """Return the number of the first record whose effect is not in the state.

        Raises:
            WallarooError: it is damaged.
        """

    def overview(self) -> Overview:
        """Return what it holds.

        Raises:
            WallarooError: it is damaged.
        """

    def entities(self) -> Iterator[Entity]:
        """Yield the entities, their states as canonical structure.

        Raises:
            WallarooError: it is damaged, or the engine cannot tell.
        """

    def verify(self) -> str:
        """Read everything, and return what only the engine itself can read; empty: nothing.

        Raises:
            WallarooError: something is damaged.
        """

    def state(self) -> StoredState:
        """Return all of the state.

        Raises:
            WallarooError: it is damaged.
        """

    def migrate(self, target: Path, migration: Migration) -> int:
        """Write a new checkpoint whose states are what a migration makes of these.

        Args:
            target: a directory that does not exist.
            migration: makes the new states.

        Returns:
            The number of states and accumulators.

        Raises:
            WallarooError: it cannot be written, or the engine cannot migrate.
        """


@dataclass(frozen=True)
class StoredWindow:
    """An open window.

    Args:
        step: the window step's name.
        key: the window's key.
        start, end: its bounds, in nanoseconds since 1970.
        messages: how many there are in it; `None`: not a count window, so that is not stored.
        accumulators: as canonical structure; of windows that overlap one for each pane, in order.
    """

    step: str
    key: Key
    start: int
    end: int
    messages: int | None
    accumulators: Sequence[Any]

    def to_json(self) -> dict[str, Any]:
        """Return the window as JSON."""
        form = {name: value for name, value in vars(self).items() if value is not None}
        return {**form, "key": key_to_json(self.key)}


def stored_windows(state: StoredState) -> Iterator[StoredWindow]:
    """Yield the open windows of a stored state, step by step, in order of their encoded keys."""
    for step, key, form in sorted(state.windows, key=lambda one: (one.step, one.key)):
        place, watermark = state.steps[step], state.watermarks[step]
        kind = kind_of(windows_of(place.shape))
        windows = windows_from(form, kind, watermark, structure_of)
        messages = windows.number if isinstance(windows, Count) else None
        for one in kind.open(key, windows):
            parts = list(one.parts)
            yield StoredWindow(place.name, decode_key(key), one.start, one.end, messages, parts)


# -- migration -------------------------------------------------------------------------------------


@contextlib.contextmanager
def copied_beside(directory: Path, target: Path, engine: str) -> Iterator[Path]:
    """Copy a checkpoint without the engine's own part, which the block writes.

    No run can use the checkpoint meanwhile. The copy gets its name only if the block succeeds.

    Args:
        directory: the checkpoint.
        target: a directory that does not exist.
        engine: the name of the engine's part.

    Yields:
        The copy, under another name.

    Raises:
        CheckpointError: the target exists or cannot be written, or the checkpoint is in use.
    """
    partial = target.with_name(target.name + ".new")
    if target.exists():
        raise CheckpointError(f"{target} exists already: move it elsewhere")
    old = CheckpointDirectory(directory, engine)
    try:
        shutil.rmtree(partial, ignore_errors=True)
        make_private(partial)
        for one in directory.iterdir():
            if one.is_dir() and one != old.own_part:
                shutil.copytree(one, partial / one.name)
            elif one.is_file() and one.name != LOCK:
                shutil.copy(one, partial / one.name)
        yield partial
        os.sync()  # every file of the copy is on the disk before its name is
        partial.rename(target)
        sync_directory(target.parent)
    except OSError as error:
        raise CheckpointError(f"{target} cannot be written: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # it is still there if something failed
        old.close()


class Migration:
    """Makes new states of stored ones by a function of the user's, and checks what it returns.

    Args:
        change: the function.
        fresh: what the application builds today; `None`: it is not known.

    Attributes:
        changed: number of states and accumulators that are others now.
    """

    def __init__(self, change: Change, fresh: FreshStates | None = None) -> None:
        self.changed = 0
        self._change = change
        self._fresh = fresh

    def migrated(self, state: StoredState, *, coded: bool) -> StoredState:
        """Return a whole state with what the function makes of each state and accumulator.

        Args:
            state: the state.
            coded: see `new_state`.

        Raises:
            CheckpointError: see `new_state`.
        """
        entities = [
            one._replace(
                state=self.new_state(
                    Place(one.partition), decode_key(one.key), one.state, coded=coded
                )
            )
            for one in state.entities
        ]
        windows = []
        for one in state.windows:
            change = partial(
                self.new_state, state.steps[one.step], decode_key(one.key), coded=coded
            )
            windows.append(one._replace(form=with_parts(one.form, change)))
        return replace(state, entities=entities, windows=windows)

    def new_state(self, place: Place, key: Key, data: bytes, *, coded: bool) -> bytes:
        """Return what the function makes of a stored state, or accumulator, as it is stored.

        Args:
            place: where it is.
            key: its key.
            data: the state.
            coded: the application's `serialize` has made it: the function takes and returns its
                bytes.

        Raises:
            CheckpointError: it cannot be loaded or pickled, the function raised, or what it
                returned is not what the application builds.
        """
        try:
            new = self._made(place, key, data, coded)
        except (Exception, SystemExit) as error:
            unknown = isinstance(error, pickle.PicklingError) and self._fresh is None
            raise CheckpointError(
                f"{place}, key {key!r:.80} cannot be migrated: "
                f"{type(error).__name__}: {error}"
                + ". Name the application that has the class with --app"
                * unknown
            ) from error
        self.changed += new != data if coded else structure_of(new) != structure_of(data)
        return new

    def _made(self, place: Place, key: Key, data: bytes, coded: bool) -> bytes:
        new = self._change(place.name, key, data if coded else state_of(data))
        if coded and not isinstance(new, bytes):
            raise TypeError(
                "the application has its own serialize, so the new state must be bytes, not "
                f"{new!r:.80}"
            )
        stored: bytes = new if coded else pickle.dumps(new, _PROTOCOL)
        if self._fresh is not None and (why := self._fresh.refusal(place, stored)):
            raise TypeError(f"the function's result {why}")
        return stored


# -- shadows ---------------------------------------------------------------------------------------


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
