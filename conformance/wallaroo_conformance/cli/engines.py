"""The engines that a command line names: installed ones, and others behind a pipe.

An adapter is a script that runs somebody else's engine, in an environment of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from platformdirs import user_cache_path

import wallaroo
import wallaroo_conformance
from wallaroo.engine import Engine, load_engine
from wallaroo.errors import WallarooError
from wallaroo_conformance.pipe.engine import Patience, PipeEngine

OURS = wallaroo_conformance.shipped("adapters")
"""The adapters that come with this package."""

_REQUIREMENTS = ".requirements.txt"
_SUFFIX = "_adapter"
_PIP_PATIENCE = 900.0  # seconds


@contextlib.contextmanager
def chosen_engines(
    options: argparse.Namespace, *, store: Path, default: str
) -> Iterator[list[Engine]]:
    """Yield the engines that the options name, and end their processes afterwards.

    Args:
        options: of the command line: ``engine``, ``engine_command``, ``adapter`` and
            ``engine_timeout``.
        store: directory that gets what engines behind a pipe write to their standard error.
        default: the engine where none is named.

    Raises:
        AdapterError: there is no such adapter, or it cannot be set up.
        EngineNotFoundError: no engine has that name.
        EngineCommandError: a command is not an engine.
    """
    named = [options.engine] if isinstance(options.engine, str) else options.engine or []
    names, commands, adapters = map(dict.fromkeys, (named, options.engine_command, options.adapter))
    patience = Patience(case=options.engine_timeout)
    with contextlib.ExitStack() as stack:
        engines: list[Engine] = [load_engine(name) for name in names]
        for number, command in enumerate(commands, start=1):
            engine = PipeEngine(command, store / f"engine-{number}.log", patience=patience)
            engines.append(stack.enter_context(contextlib.closing(engine)))
        for name in adapters:
            script = find_adapter(name)
            words, environment = adapter_command(script)
            engine = PipeEngine(
                words,
                store / f"{script.stem}.log",
                patience=patience,
                environment=environment,
                option=f"--adapter {shlex.quote(name)}",
            )
            engines.append(stack.enter_context(contextlib.closing(engine)))
        yield engines or [load_engine(default)]


class AdapterError(WallarooError):
    """An adapter cannot be found, or its environment cannot be made."""


def find_adapter(name: str) -> Path:
    """Return the script of an adapter: a path, or the name of one of ours.

    Raises:
        AdapterError: there is no such adapter.
    """
    tried = [Path(name)]
    if Path(name).name == name:
        tried += [OURS / f"{name}.py", OURS / f"{name}{_SUFFIX}.py"]
    for path in tried:
        if path.is_file():
            return path
    names = sorted(path.stem.removesuffix(_SUFFIX) for path in OURS.glob("*.py"))
    raise AdapterError(
        f"no adapter {name!r}: give the path of a script, or one of {', '.join(names) or 'none'}"
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
