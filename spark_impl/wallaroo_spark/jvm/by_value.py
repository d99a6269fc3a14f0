"""Applications whose code no worker can import: functions and classes travel with their code.

That is what is defined in the main program or a notebook's cell, inside a function, or by `lambda`.
PySpark's own cloudpickle takes such things by value, and all that can be imported by reference.

Messages and states are pickled by reference all the same, in the worker: `__main__.Count`. So a
worker's own main program is given the classes and functions of the driver's that came with the
application. Those inside a function have no such name: an object of such a class is `unportable`,
here as in `isolated` mode everywhere.
"""

from __future__ import annotations

import copyreg
import io
import sys
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from pyspark import cloudpickle

from wallaroo.decorators import Decorated
from wallaroo.topology import Application
from wallaroo_spark.worker.modules import arrived

MAIN = "__main__"


def dumps_by_value(value: Any) -> bytes:
    """Return `value` pickled, with the code of all in it that cannot be imported.

    Raises:
        Exception: whatever pickling a part of it raises.
    """
    return _dumped(value)[0]


def pickle_by_value(application: Application) -> bytes:
    """Return an application pickled with its code; `pickle.loads` reads it, in any process.

    Raises:
        Exception: whatever pickling a part of it raises.
    """
    names: dict[str, Any] = {}
    while True:  # what a name stands for may lead to further names
        blob, found = _dumped(_WithNames(application, names))
        if found.keys() <= names.keys():
            return blob
        names |= found


def _dumped(value: Any) -> tuple[bytes, Mapping[str, Any]]:
    file = io.BytesIO()
    pickler = _Pickler(file, 5)
    pickler.dump(value)  # type: ignore[no-untyped-call]  # cloudpickle has no types
    return file.getvalue(), pickler.of_main


class _Pickler(cloudpickle.Pickler):
    """Cloudpickle's, which knows decorated functions, and notes what comes from the main program.

    Attributes:
        of_main: by name, the classes and functions of the main program that were met.
    """

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)  # type: ignore[no-untyped-call]  # as above
        self.of_main: dict[str, Any] = {}

    def reducer_override(self, obj: Any) -> Any:
        """Return how `obj` is pickled, where that is not as usual."""
        if isinstance(obj, (type, FunctionType)) and obj.__module__ == MAIN:
            name = obj.__qualname__.partition(".")[0]
            if hasattr(sys.modules[MAIN], name):
                self.of_main[name] = getattr(sys.modules[MAIN], name)
        # By type: an object may say of itself that it is of another class.
        if issubclass(type(obj), Decorated) and not _is_importable(obj):
            # Its state comes after itself, since its function may know it by its name.
            return copyreg.__newobj__, (type(obj),), vars(obj)  # type: ignore[attr-defined]  # it is there
        reduced = super().reducer_override(obj)  # type: ignore[no-untyped-call]  # as above
        if isinstance(obj, type) and isinstance(reduced, tuple) and len(reduced) > 2:
            # Cloudpickle forgets where a class stands in its module, and pickle looks for it there.
            attributes, _slots = reduced[2]
            attributes["__qualname__"] = obj.__qualname__
        return reduced


def _is_importable(decorated: Decorated[..., Any]) -> bool:
    if decorated.__module__ == MAIN:
        return False
    found: Any = sys.modules.get(decorated.__module__)
    for name in decorated.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is decorated


class _WithNames:
    """An application and what a worker's main program has to have; unpickled as the application."""

    def __init__(self, application: Application, names: Mapping[str, Any]) -> None:
        self._application = application
        self._names = names

    def __reduce__(self) -> tuple[Any, ...]:
        return arrived, (self._application, dict(self._names))
