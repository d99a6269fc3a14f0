"""Adapters: scripts that run other people's engines, each in an environment of its own."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from platformdirs import user_cache_path

import wallaroo
import wallaroo_conformance
from wallaroo.errors import WallarooError

OURS = Path(__file__).parents[2] / "adapters"
"""The adapters of a checkout."""

_REQUIREMENTS = ".requirements.txt"
_SUFFIX = "_adapter"
_PIP_PATIENCE = 900.0  # seconds


class AdapterError(WallarooError):
    """An adapter cannot be found, or its environment cannot be made."""


def find_adapter(name: str) -> Path:
    """Return the script of an adapter: a path, or the name of one of a checkout's.

    Raises:
        AdapterError: there is no such adapter.
    """
    tried = [Path(name)]
    if Path(name).name == name:
        tried += [OURS / f"{name}.py", OURS / f"{name}{_SUFFIX}.py"]
    for path in tried:
        if path.is_file():
            return path
    known = sorted(path.stem.removesuffix(_SUFFIX) for path in OURS.glob("*.py"))
    raise AdapterError(
        f"no adapter {name!r}: give the path of a script, or one of {', '.join(known) or 'none'}"
    )


def adapter_command(script: Path) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs an adapter; make its environment if it is not there.

    The requirements stand beside the script, in ``NAME.requirements.txt``; without that file the
    adapter runs by this Python. This project's packages are linked into the environment, so the
    adapter uses the same version that judges it.

    Raises:
        AdapterError: the environment cannot be made.
    """
    requirements = script.with_name(script.stem + _REQUIREMENTS)
    if not requirements.is_file():
        return [sys.executable, str(script)], dict(os.environ)
    wanted = requirements.read_bytes() + sys.version.encode()
    name = f"{script.stem}-{hashlib.sha256(wanted).hexdigest()[:12]}"
    place = user_cache_path("wallaroo-adapters") / name
    if not (place / "ready").exists():
        _make(place, requirements)
    links = place / "wallaroo"
    links.mkdir(exist_ok=True)
    for package in (wallaroo, wallaroo_conformance):
        assert package.__file__ is not None
        _link(links / package.__name__, Path(package.__file__).parent)
    python = str(place / "bin" / "python")
    return [python, str(script)], {**os.environ, "PYTHONPATH": str(links)}


def _make(place: Path, requirements: Path) -> None:
    print(f"setting up {requirements.name.removesuffix(_REQUIREMENTS)} …", file=sys.stderr)
    shutil.rmtree(place, ignore_errors=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    for command in (
        [sys.executable, "-m", "venv", str(place)],
        [*pip, "--disable-pip-version-check", "--requirement", str(requirements)],
    ):
        done = subprocess.run(  # noqa: S603 - our own words
            command, capture_output=True, text=True, check=False, timeout=_PIP_PATIENCE
        )
        if done.returncode != 0:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise AdapterError(
                f"the environment of {requirements.name} cannot be made: {' '.join(last)}"
            )
    (place / "ready").touch()


def _link(link: Path, target: Path) -> None:
    if not link.is_symlink() or link.resolve() != target.resolve():
        link.unlink(missing_ok=True)
        link.symlink_to(target)
