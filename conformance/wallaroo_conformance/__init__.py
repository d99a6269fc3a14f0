"""Is an engine right? Cases, laws by rule, batched search and reduction, mutants, report."""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def shipped(name: str) -> Path:
    """Return a folder of data: inside the package where it is installed, else beside it."""
    installed = _PACKAGE / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
