"""Pickles an application for workers: by reference if possible, else with its code.

By value travels code that no worker can import: what is defined in the main program, in a
notebook's cell, inside a function, or by `lambda`. PySpark's own cloudpickle pickles such code by
value, and importable code by reference.

But workers pickle messages and states by reference, as `__main__.Count`. So the classes and
functions of the driver's main program that come with the application are also defined in the
worker's main program. A class inside a function has no such name: its objects are `unportable`, as
in `isolated` mode on every engine.
"""

from __future__ import annotations

import copyreg
import io
import logging
import pickle
import sys
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any

from pyspark import cloudpickle

from wallaroo.decorators import Decorated
from wallaroo.errors import UnsupportedTopology
from wallaroo.topology import Application
from wallaroo.transport.old_states import FreshStates
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


_log = logging.getLogger("wallaroo.spark")


class ShippingError(UnsupportedTopology):
    """User code cannot be sent to workers; says which, and what to do (build-2)."""


def pickle_application(application: Application) -> bytes:
    """Return the application pickled: by reference, or if that is not possible, with its code.

    Raises:
        ShippingError: a component cannot be pickled either way, or cannot be unpickled.
    """
    try:
        blob = pickle.dumps(application, 5)
    except Exception:  # noqa: BLE001 - whatever the user's objects raise; by value it may do
        blob = b""
    if blob:
        names = _Names(io.BytesIO(blob))
        try:
            names.load()
        except Exception as error:
            raise ShippingError(
                "build-2",
                application.name,
                "the application cannot be read back from its pickle: "
                f"{type(error).__name__}: {error}",
            ) from error
        if not names.in_main:
            return blob
    # A pickle by value is not read back here: cloudpickle would change the user's classes.
    try:
        return pickle_by_value(application)
    except Exception as error:
        raise _error_about_component(application, error) from error


class _Names(pickle.Unpickler):
    """Unpickles, and notes whether the main program defines any of it."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.in_main = False

    def find_class(self, module: str, name: str) -> Any:
        self.in_main = self.in_main or module == MAIN
        return super().find_class(module, name)


def states_of_main(application: Application) -> Iterator[tuple[str, str]]:
    """Yield the state partitions with states of the main program, and their builders' names.

    Only the same main program can read such states from a checkpoint.
    """
    for partition in application.partitions:
        component = partition.builder.component
        kind = component if isinstance(component, type) else type(component)
        if kind.__module__ == MAIN:
            yield partition.name, partition.builder.name


def warn_of_unportable_states(application: Application) -> None:
    """Log which states and accumulators cannot be pickled, as they are before any message.

    Each message that meets one is a dead letter, `unportable`, on Spark and in `isolated` mode of
    every engine.
    """
    for place, error in FreshStates(application).unportable():
        _log.warning(
            "%s: each message that meets it becomes a dead letter (unportable), because %s. A "
            "state may hold no lock, file, connection or lambda, and its class stands at the top "
            "of a module, not in a function",
            place,
            error,
        )


def _error_about_component(application: Application, error: Exception) -> ShippingError:
    for use in application.components():
        try:
            dumps_by_value(use.component)
        except Exception as reason:  # noqa: BLE001 - whatever the user's object raises
            return ShippingError(
                "build-2",
                use.component.name,
                f"application {application.name!r}: the {use.role} of {use.where} cannot be "
                f"pickled, so it cannot be sent to workers: {type(reason).__name__}: "
                f"{reason}. Neither its attributes nor the objects that its functions refer to "
                "may be bound to this process",
            )
    return ShippingError("build-2", application.name, f"it cannot be pickled: {error}")
