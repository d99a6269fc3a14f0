"""The application's modules in a worker: found by path; the main program's names are set."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from wallaroo.topology import Application


@dataclass(frozen=True)
class Shipment:
    """Modules that a worker may not find by itself.

    Args:
        files: path by module name; the path of a package is its ``__init__.py``.
        paths: directories to search after the worker's own.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[str, ...] = ()

    def covers(self, other: Shipment) -> bool:
        """Return whether this contains all that `other` does."""
        return other.files.items() <= self.files.items() and set(other.paths) <= set(self.paths)

    def unpack(self) -> None:
        """Make the modules importable in this process; what was importable before comes first."""
        for path in self.paths:
            if path not in sys.path:
                sys.path.append(path)
        finder = next((f for f in sys.meta_path if isinstance(f, _ByPath)), None)
        if finder is None:
            finder = _ByPath()
            sys.meta_path.append(finder)
        finder.files.update(self.files)


def arrived(application: Application, names: Mapping[str, Any]) -> Application:
    """Define the application's names in this worker's main program, and return the application.

    Args:
        application: the application.
        names: the classes and functions of the driver's main program that it needs, by name.
    """
    main = sys.modules["__main__"]
    # The driver's own main program has the originals, and copies must not replace them.
    if getattr(getattr(main, "__spec__", None), "name", "").startswith("pyspark."):
        vars(main).update(names)
    return application


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
