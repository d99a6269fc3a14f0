"""Extras: the packages that an installed command or engine needs beside its own distribution.

The entry point names its extra in brackets, ``conform = "…:register_conform [conformance]"``, or
has the extra's name itself, as the engine ``spark``.
"""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution


def missing_packages(point: EntryPoint) -> list[str]:
    """Return the packages of an entry point's extra that are not installed."""
    requirements = (point.dist.requires if point.dist is not None else None) or []
    missing: list[str] = []
    for requirement in requirements:
        name = re.match(r"[\w.-]+", requirement)
        extra = re.search(r"""extra\s*==\s*['"]([^'"]+)['"]""", requirement)
        if name is None or extra is None or extra[1] != _extra(point):
            continue
        try:
            distribution(name[0])
        except PackageNotFoundError:
            missing.append(name[0])
    return missing


def install_command(point: EntryPoint) -> str:
    """Return the command that installs them: the entry point's distribution with its extra."""
    offers = point.dist.name if point.dist is not None else "wallaroo-streams"
    return f"pip install '{offers}[{_extra(point)}]'"


def lacking(point: EntryPoint, error: ModuleNotFoundError) -> str | None:
    """Return what an entry point lacks, from an import of it that failed, and how to install it.

    The package's metadata may be there while the package itself, or one that it needs, is not.

    Returns:
        `None` if nothing can be installed for it: it has no extra, or the module is one of ours.
    """
    package = (error.name or "").partition(".")[0]
    if not point.extras or not package or package.startswith("wallaroo"):
        return None
    return f"needs {package}, which cannot be imported; try: {install_command(point)}"


def _extra(point: EntryPoint) -> str:
    return point.extras[0] if point.extras else point.name
