"""An entity as it is stored: reading it back, and the error when that fails."""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from wallaroo.copying import PROTOCOL, copies_by
from wallaroo.errors import WallarooError
from wallaroo.loading import MODULE_PREFIX
from wallaroo.text import escaped
from wallaroo.topology import Application
from wallaroo.user_code.failure import describe_error
from wallaroo_spark.worker.plan import Component

_EARLIER_NAME = re.compile(rf"({MODULE_PREFIX}\w+)_[0-9a-f]{{12}}")


class Stored(NamedTuple):
    """A stored entity, if it is more than a pickled state.

    Args:
        blob: its state.
        coded: the application's codec wrote the state (key-5).
        visited: the arrival time of its last visit; 0 where entities do not expire (key-4).
    """

    blob: bytes
    coded: bool
    visited: int


class Form:
    """How the entities of a component are stored: as pickled states, or as `Stored`.

    Args:
        application: the application.
        component: the component.

    Attributes:
        coded: the application's codec writes the states.
    """

    def __init__(self, application: Application, component: Component) -> None:
        of = application.partition
        expiring = any(of[name].expire_after is not None for name in component.partitions)
        self.coded = application.codec is not None
        self._copies = copies_by(application.codec)
        self._plain = not expiring and not self.coded

    def packed(self, frozen: Any, visited: int = 0) -> bytes:
        """Return a frozen state as it is stored."""
        blob = frozen[0] if type(frozen) is tuple else pickle.dumps(frozen, PROTOCOL)
        return blob if self._plain else _packed(Stored(blob, self.coded, visited))

    def state(self, blob: bytes) -> Any:
        """Return a copy of the state that was stored.

        Raises:
            StateError: see `restored`.
        """
        if self._plain:
            return restored(blob)
        stored = _unpacked(blob)
        if not self.coded:
            return restored(stored.blob)
        try:
            return self._copies.loads(stored.blob)
        except Exception as error:
            raise StateError(
                "an entity cannot be read back from the checkpoint: the application's deserialize "
                f"raised {type(error).__name__}: {escaped(describe_error(error))}"
            ) from error

    def visited(self, blob: bytes) -> int:
        """Return the arrival time of a stored entity's last visit."""
        return _unpacked(blob).visited

    def visited_at(self, blob: bytes, now: int) -> bytes:
        """Return a stored entity with a later visit."""
        return _packed(_unpacked(blob)._replace(visited=now))


def _packed(stored: Stored) -> bytes:
    return pickle.dumps(stored, PROTOCOL)


def _unpacked(blob: bytes) -> Stored:
    stored: Stored = pickle.loads(blob)  # noqa: S301 - bytes we made; nobody else can write a checkpoint
    return stored


class _StoredOnly(pickle.Unpickler):
    """Reads a `Stored`, and nothing that is the application's."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) != (Stored.__module__, Stored.__qualname__):
            raise pickle.UnpicklingError
        return Stored


def unwrapped(blob: bytes) -> Stored:
    """Return an entity in whatever form it is stored; none of the application's code runs."""
    try:
        found = _StoredOnly(io.BytesIO(blob)).load()
    except Exception:  # noqa: BLE001 - the plain state of a class: reading it may raise anything
        found = None
    return found if isinstance(found, Stored) else Stored(blob, coded=False, visited=0)


def rewrapped(blob: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return a stored entity with the state that `change` makes of its own, in the same form."""
    before = unwrapped(blob)
    state = change(before.blob)
    is_plain = before.blob is blob
    return state if is_plain else _packed(before._replace(blob=state))


class StateError(WallarooError):
    """An entity of a checkpoint cannot be read; says which class, why, and what to do."""


def restored(blob: bytes) -> Any:
    """Return a copy of an entity that this run or an earlier run pickled.

    Raises:
        StateError: its class is missing, or cannot read what an earlier version of it wrote.
    """
    try:
        return pickle.loads(blob)  # noqa: S301 - bytes we made; nobody else can write a checkpoint
    except Exception:  # noqa: BLE001 - user code: its __setstate__ may raise anything
        reader = _Reader(io.BytesIO(blob))
        try:
            return reader.load()
        except Exception as error:
            raise StateError(reader.explained(error)) from error


class _Reader(pickle.Unpickler):
    """Also reads pickles of earlier versions, whose module names contain a hash of the path."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self._module = self._name = ""

    def find_class(self, module: str, name: str) -> Any:
        earlier = _EARLIER_NAME.fullmatch(module)
        self._module, self._name = earlier[1] if earlier else module, name
        return super().find_class(self._module, name)

    def explained(self, error: Exception) -> str:
        """Return the text for an error that happened while reading."""
        module, name = self._module, self._name
        told = f"{type(error).__name__}: {escaped(describe_error(error))}"  # one line
        if not name:
            return f"an entity cannot be read back from the checkpoint: it is damaged ({told})"
        stem = module.removeprefix(MODULE_PREFIX)
        place = f"the file {stem}.py" if module != stem else f"the module {module}"
        return (
            f"an entity cannot be read back from the checkpoint: its class {name} of {place} is "
            f"not there or is another ({told}). Run the application from {place} with the "
            f"class {name} that wrote it, or begin anew with an empty directory"
        )
