"""Pickles an application for workers: by reference if possible, else with its code."""

from __future__ import annotations

import copyreg
import io
import logging
import pickle
from collections.abc import Iterator
from typing import Any

from wallaroo.errors import UnsupportedTopology
from wallaroo.topology import Application
from wallaroo_spark.jvm.by_value import MAIN, dumps_by_value, pickle_by_value

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


def warn_of_states_in_functions(application: Application) -> None:
    """Log which states are of a class inside a function: no pickle finds it by its name.

    Their messages are dead letters, `unportable`, in `isolated` mode of every engine and on Spark.
    """
    for partition in application.partitions:
        kind = partition.builder.component
        if application.codec is None and isinstance(kind, type) and not _is_portable(kind):
            _log.warning(
                "state partition %r: its states are of the class %s, which is inside a function, "
                "so they cannot be pickled, and each message that meets one becomes a dead letter "
                "(unportable); move the class out of the function",
                partition.name,
                kind.__qualname__,
            )


def _is_portable(kind: type) -> bool:
    """Whether objects of a class can be pickled, as far as its name and its methods tell."""
    if "<locals>" not in kind.__qualname__ or kind in copyreg.dispatch_table:
        return True
    # Those of a library's class, such as `Counter`, refer to the class itself.
    own = [base for base in kind.__mro__ if "<locals>" in base.__qualname__]
    return any(name in vars(base) for base in own for name in ("__reduce__", "__reduce_ex__"))


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
