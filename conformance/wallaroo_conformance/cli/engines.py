"""The engines that a command names: installed ones, and those behind a pipe."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path

from wallaroo.engine import Engine, load_engine
from wallaroo_conformance.pipe.engine import Patience, PipeEngine


@contextlib.contextmanager
def chosen_engines(
    options: argparse.Namespace, *, store: Path, default: str
) -> Iterator[list[Engine]]:
    """Give the engines that the options name, and end their processes afterwards.

    Args:
        options: of the command line: ``engine``, ``engine_command``, ``engine_timeout``.
        store: directory that gets what engines behind a pipe write to their standard error.
        default: the engine where none is named.

    Raises:
        EngineNotFoundError: no engine has that name.
        EngineCommandError: a command is no engine.
    """
    names = list(dict.fromkeys(_listed(options.engine)))
    commands = list(dict.fromkeys(options.engine_command))
    if not names and not commands:
        names = [default]
    patience = Patience(case=options.engine_timeout)
    with contextlib.ExitStack() as stack:
        engines = [load_engine(name) for name in names]
        for number, command in enumerate(commands, start=1):
            engine = PipeEngine(command, store / f"engine-{number}.log", patience=patience)
            stack.callback(engine.close)
            engines.append(engine)
        yield engines


def _listed(name: str | list[str] | None) -> list[str]:
    return [name] if isinstance(name, str) else name or []
