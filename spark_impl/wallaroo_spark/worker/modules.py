"""The application's modules in a worker: found by their paths; the main program's names set."""

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


def arrived(application: Application, names: Mapping[str, Any]) -> Application:
    """Return the application, once this worker's main program has its classes and functions.

    Args:
        application: the application.
        names: what the driver's main program defines and the application needs, by name.
    """
    main = sys.modules["__main__"]
    # The driver's has the originals already, which copies must not replace.
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
