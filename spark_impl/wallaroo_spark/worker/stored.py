"""Reading an entity back from a checkpoint, and the error when that fails."""

from __future__ import annotations

import io
import pickle
import re
from typing import Any

from wallaroo.errors import WallarooError
from wallaroo.failure import describe_error
from wallaroo.loading import MODULE_PREFIX
from wallaroo.text import escaped

_EARLIER_NAME = re.compile(rf"({MODULE_PREFIX}\w+)_[0-9a-f]{{12}}")


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
