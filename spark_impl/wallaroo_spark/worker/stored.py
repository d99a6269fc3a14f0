"""An entity as it is stored: reading it back, and the error when that fails.

Before its state stand the arrival time of its last visit (key-4) and whether the application's
codec wrote the state (key-5).
"""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any, NamedTuple

from wallaroo.copying import copies_by
from wallaroo.errors import WallarooError
from wallaroo.loading import MODULE_PREFIX
from wallaroo.text import escaped
from wallaroo.topology import Application
from wallaroo.user_code.failure import describe_error

_HEADER = struct.Struct(">q?")


class Stored(NamedTuple):
    """A stored entity.

    Args:
        state: its state: pickled, or written by the application's codec.
        visited: the arrival time of its last visit; 0 where entities do not expire.
        coded: the application's codec wrote the state.
    """

    state: bytes
    visited: int = 0
    coded: bool = False

    def packed(self) -> bytes:
        """Return it as bytes."""
        return _HEADER.pack(self.visited, self.coded) + self.state


def unpacked(blob: bytes) -> Stored:
    """Return a stored entity; none of the application's code runs."""
    return Stored(blob[_HEADER.size :], *_HEADER.unpack_from(blob))


class Form:
    """How the entities of an application are stored.

    Attributes:
        coded: the application's codec writes the states.
    """

    def __init__(self, application: Application) -> None:
        self.coded = application.codec is not None
        self._copies = copies_by(application.codec)

    def packed(self, frozen: Any, visited: int = 0) -> bytes:
        """Return a frozen state as it is stored."""
        state = frozen[0] if type(frozen) is tuple else self._copies.dumps(frozen)
        return _HEADER.pack(visited, self.coded) + state

    def written(self, state: Any, visited: int = 0) -> bytes:
        """Return a state as it is stored; raises what its pickling raises."""
        return _HEADER.pack(visited, self.coded) + self._copies.dumps(state)

    def state(self, blob: bytes) -> Any:
        """Return a copy of the state that was stored.

        Raises:
            StateError: see `restored`.
        """
        state = blob[_HEADER.size :]
        if not self.coded:
            return restored(state)
        try:
            return self._copies.loads(state)
        except Exception as error:
            raise StateError(
                "an entity cannot be read back from the checkpoint: the application's deserialize "
                f"raised {type(error).__name__}: {escaped(describe_error(error))}"
            ) from error


class StateError(WallarooError):
    """An entity of a checkpoint cannot be read; says which class, why, and what to do."""


def restored(blob: bytes) -> Any:
    """Return a copy of an entity that this run or an earlier run pickled.

    Raises:
        StateError: its class is missing, or cannot read what an earlier version of it wrote.
    """
    try:
        return pickle.loads(blob)  # noqa: S301 - bytes we made; only we can write a checkpoint
    except Exception:  # noqa: BLE001 - user code: its __setstate__ may raise anything
        reader = _Reader(io.BytesIO(blob))
        try:
            return reader.load()
        except Exception as error:
            raise StateError(reader.explained(error)) from error


class _Reader(pickle.Unpickler):
    """Knows which class it has looked for last."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self._module = self._name = ""

    def find_class(self, module: str, name: str) -> Any:
        self._module, self._name = module, name
        return super().find_class(module, name)

    def explained(self, error: Exception) -> str:
        """Return the text for an error that happened while reading."""
        module, name = self._module, self._name
        cause = f"{type(error).__name__}: {escaped(describe_error(error))}"  # one line
        if not name:
            return f"an entity cannot be read back from the checkpoint: it is damaged ({cause})"
        stem = module.removeprefix(MODULE_PREFIX)
        place = f"the file {stem}.py" if module != stem else f"the module {module}"
        return (
            f"an entity cannot be read back from the checkpoint: its class {name} of {place} is "
            f"not there or is another ({cause}). Run the application from {place} with the "
            f"class {name} that wrote it, or begin anew with an empty directory"
        )
