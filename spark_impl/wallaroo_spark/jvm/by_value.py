"""Applications whose code no worker can import: functions and classes travel with their code.

This is for code that is defined in the main program, in a notebook's cell, inside a function, or by
`lambda`. PySpark's own cloudpickle pickles such code by value, and importable code by reference.

But workers pickle messages and states by reference, as `__main__.Count`. So the classes and
functions of the driver's main program that come with the application are also defined in the
worker's main program. A class inside a function has no such name: its objects are `unportable`, as
in `isolated` mode on every engine.
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
    """Return `value` pickled, with the code of everything in it that cannot be imported.

    Raises:
        Exception: any exception that pickling a part of it raises.
    """
    return _dumped(value)[0]


def pickle_by_value(application: Application) -> bytes:
    """Return an application pickled with its code; `pickle.loads` reads it in any process.

    Raises:
        Exception: any exception that pickling a part of it raises.
    """
    names: dict[str, Any] = {}
    while True:  # the object of a name may refer to further names
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
    """Cloudpickle's pickler with support for decorated functions and the main program's names.

    Attributes:
        of_main: the pickled classes and functions of the main program, by name.
    """

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)  # type: ignore[no-untyped-call]  # as above
        self.of_main: dict[str, Any] = {}

    def reducer_override(self, obj: Any) -> Any:
        """Return how `obj` is pickled, if not in the usual way."""
        if isinstance(obj, (type, FunctionType)) and obj.__module__ == MAIN:
            name = obj.__qualname__.partition(".")[0]
            if hasattr(sys.modules[MAIN], name):
                self.of_main[name] = getattr(sys.modules[MAIN], name)
        # By type: an object may say of itself that it is of another class.
        if issubclass(type(obj), Decorated) and not _is_importable(obj):
            # Its state is pickled after it, since its function may refer to it by name.
            return copyreg.__newobj__, (type(obj),), vars(obj)  # type: ignore[attr-defined]  # it is there
        reduced = super().reducer_override(obj)  # type: ignore[no-untyped-call]  # as above
        if isinstance(obj, type) and isinstance(reduced, tuple) and len(reduced) > 2:
            # Cloudpickle loses a class's qualified name, and pickle needs it to find the class.
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
    """An application with the names it needs in a worker's main program; unpickles without them."""

    def __init__(self, application: Application, names: Mapping[str, Any]) -> None:
        self._application = application
        self._names = names

    def __reduce__(self) -> tuple[Any, ...]:
        return arrived, (self._application, dict(self._names))
