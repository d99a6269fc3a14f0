"""How an application gets to the workers: its components by reference, its modules by path.

Components travel as pickles. What no worker could import goes with its code (`by_value`); for all
else a worker must be able to import the modules it is in under the very names they have on the
driver. Where it cannot by itself (an application given by path, a test module), it is told where
the files are, on the driver's own machine; on a cluster it gets them, together with this engine, in
an archive.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import io
import pickle
import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import wallaroo
import wallaroo_spark
from wallaroo.errors import UnsupportedTopology
from wallaroo.topology import Application, Sink, Source, Stateful, Step
from wallaroo_spark.by_value import MAIN, dumps_by_value, pickle_by_value

if TYPE_CHECKING:
    from wallaroo_spark.session import Session


class ShippingError(UnsupportedTopology):
    """User code cannot be had on a worker; says which, and what to do (build-2)."""


@dataclass(frozen=True)
class Shipment:
    """Modules a worker may have to be shown.

    Args:
        files: path by module name; packages by their ``__init__.py``.
        paths: directories to look in after a worker's own.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[str, ...] = ()

    def covers(self, other: Shipment) -> bool:
        """Return whether this shows all that `other` does."""
        return other.files.items() <= self.files.items() and set(other.paths) <= set(self.paths)

    def unpack(self) -> None:
        """Make the modules importable in this process, after all that already is."""
        for path in self.paths:
            if path not in sys.path:
                sys.path.append(path)
        finder = next((f for f in sys.meta_path if isinstance(f, _ByPath)), None)
        if finder is None:
            finder = _ByPath()
            sys.meta_path.append(finder)
        finder.files.update(self.files)


def shipment_of_this_process() -> Shipment:
    """Return all modules loaded here that no installed distribution brings."""
    installed = tuple([sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")])
    files = {
        name: module.__file__
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        and (getattr(module, "__file__", None) or "").endswith(".py")
        and not module.__file__.startswith(installed)  # type: ignore[union-attr]
        and name != "__main__"
    }
    return Shipment({name: file for name, file in files.items() if file is not None})


def ship(session: Session, directory: Path) -> Shipment:
    """Return what shows workers this process's modules; on a cluster, send the modules first.

    Args:
        session: where the workers are.
        directory: where an archive may be put.
    """
    shipment = shipment_of_this_process()
    if session.settings.local:
        return shipment
    archive = directory / "modules.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name, path in sorted(_archived(shipment).items()):
            file.write(path, name)
    session.spark.sparkContext.addPyFile(str(archive))
    return Shipment()


def _archived(shipment: Shipment) -> dict[str, Path]:
    """Return the paths of all that is sent, by their names in the archive.

    That is every module, with whatever Python files lie beside it, which it may import later; and
    the packages that workers run.
    """
    files: dict[str, Path] = {}
    for package in (wallaroo, wallaroo_spark):
        root = Path(package.__file__ or "").parent
        for path in root.rglob("*.py"):
            files[str(path.relative_to(root.parent))] = path
    for name, module in shipment.files.items():
        path = Path(module)
        stem = name.replace(".", "/")
        files[f"{stem}/__init__.py" if path.name == "__init__.py" else f"{stem}.py"] = path
        if "." not in name:
            for neighbour in path.parent.glob("*.py"):
                files.setdefault(neighbour.name, neighbour)
    return files


def pickle_application(application: Application) -> bytes:
    """Return the application pickled: by reference, or where that cannot be, with its code.

    Raises:
        ShippingError: a component cannot be pickled either way, or not be read back.
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
    # What goes by value is not read back here: cloudpickle would write into the user's classes.
    try:
        return pickle_by_value(application)
    except Exception as error:
        raise _culprit(application, error) from error


class _Names(pickle.Unpickler):
    """Unpickles, and notes whether anything comes from the main program."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.in_main = False

    def find_class(self, module: str, name: str) -> Any:
        self.in_main = self.in_main or module == MAIN
        return super().find_class(module, name)


def states_of_main(application: Application) -> Iterator[tuple[str, str]]:
    """Yield the state partitions whose states the main program defines, and their builders' names.

    Only the same main program can read such states from a checkpoint.
    """
    for partition in application.partitions:
        component = partition.builder.component
        kind = component if isinstance(component, type) else type(component)
        if kind.__module__ == MAIN:
            yield partition.name, partition.builder.name


def _culprit(application: Application, error: Exception) -> ShippingError:
    for where, what, component in _components(application):
        try:
            dumps_by_value(component)
        except Exception as reason:  # noqa: BLE001 - whatever the user's object raises
            return ShippingError(
                "build-2",
                where,
                f"application {application.name!r}: {what} cannot be pickled, so no worker can "
                f"have it: {type(reason).__name__}: {reason}. Give it, in its attributes and in "
                "what its functions refer to, nothing that is bound to this process",
            )
    return ShippingError("build-2", application.name, f"it cannot be pickled: {error}")


def _components(application: Application) -> Iterator[tuple[str, str, Any]]:
    """Yield each component with the name a refusal gives it, and what it is, in words."""
    for partition in application.partitions:
        name = partition.name
        yield name, f"the builder of state partition {name!r}", partition.builder
    for node in application.nodes:
        where = f"of pipeline {node.pipeline!r}"
        if isinstance(node, Source):
            yield node.pipeline, f"the decoder {where}", node.config.decoder
        elif isinstance(node, Sink):
            yield (
                f"{node.pipeline}/{node.index}",
                f"the encoder of sink {node.index} {where}",
                node.config.encoder,
            )
        elif isinstance(node, Step):
            operation = node.operation
            yield node.name, f"step {node.name!r} {where}", operation.computation
            if isinstance(operation, Stateful) and operation.route is not None:
                what = f"the partition function of step {node.name!r} {where}"
                yield node.name, what, operation.route


class _ByPath(importlib.abc.MetaPathFinder):
    """Finds modules by the paths they have on the driver."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        file = self.files.get(name)
        if file is not None:
            folder = [str(Path(file).parent)] if Path(file).name == "__init__.py" else None
            return importlib.util.spec_from_file_location(
                name, file, submodule_search_locations=folder
            )
        if any(known.startswith(f"{name}.") for known in self.files):
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = []
            return spec
        return None
