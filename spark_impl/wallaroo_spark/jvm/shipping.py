"""How modules get to the workers: by their paths on this machine, or in an archive.

A worker must import the modules that an application's pickle names, under the names they have in
the driver. Some it cannot find by itself (an application given by path, a test module). On the
driver's machine it gets the paths of their files; on a cluster it gets the files, together with
this engine, in an archive.
"""

from __future__ import annotations

import sys
import sysconfig
import zipfile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import wallaroo
import wallaroo_spark
from wallaroo_spark.worker.modules import Shipment

_INSTALLED = frozenset({"site-packages", "dist-packages"})

if TYPE_CHECKING:
    from wallaroo_spark.jvm.session import Session


def shipment_of_this_process() -> Shipment:
    """Return all modules loaded in this process that do not belong to an installed distribution."""
    standard = sysconfig.get_path("stdlib")
    files = {
        name: module.__file__
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        and (getattr(module, "__file__", None) or "").endswith(".py")
        and not module.__file__.startswith(standard)  # type: ignore[union-attr]
        # By the folder's name: an environment may stand on another one.
        and _INSTALLED.isdisjoint(Path(module.__file__ or "").parts)
        # What is in a zip has come from Spark, which sends it to workers too: --py-files, and on
        # YARN pyspark itself.
        and Path(module.__file__ or "").is_file()
        and name != "__main__"
    }
    return Shipment({name: file for name, file in files.items() if file is not None})


def ship(session: Session, directory: Path) -> Shipment:
    """Return how workers find this process's modules; on a cluster, send the modules first.

    Args:
        session: the session of the workers.
        directory: directory for the archive.
    """
    shipment = shipment_of_this_process()
    if session.settings.local:
        return shipment
    archive = directory / "modules.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name, path in sorted(_archived(shipment).items()):
            file.write(path, name)
    searched, context = list(sys.path), session.spark.sparkContext
    context.addPyFile(str(archive))
    sys.path[:] = searched  # this process has the modules, and the archive goes with the session
    # Spark does not send files to the Python process in which it plans micro-batches, on this
    # machine, and that may be another Python (PYSPARK_PYTHON).
    context.environment["PYTHONPATH"] = str(archive)
    return Shipment()


def _archived(shipment: Shipment) -> dict[str, Path]:
    """Return the paths of all files to send, by their names in the archive.

    These are every module, the Python files beside it, which it may import later, and the packages
    that workers run.
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
