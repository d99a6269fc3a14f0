"""The engines that a command names: installed ones, and those behind a pipe."""

from __future__ import annotations

import argparse
import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path

from wallaroo.engine import Engine, load_engine
from wallaroo_conformance.cli.adapters import adapter_command, find_adapter
from wallaroo_conformance.pipe.engine import Patience, PipeEngine


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
    names = list(dict.fromkeys(_listed(options.engine)))
    commands = list(dict.fromkeys(options.engine_command))
    adapters = list(dict.fromkeys(options.adapter))
    if not names and not commands and not adapters:
        names = [default]
    patience = Patience(case=options.engine_timeout)
    with contextlib.ExitStack() as stack:
        engines = [load_engine(name) for name in names]
        for number, command in enumerate(commands, start=1):
            engine = PipeEngine(command, store / f"engine-{number}.log", patience=patience)
            stack.callback(engine.close)
            engines.append(engine)
        for name in adapters:
            script = find_adapter(name)
            command_of_it, environment = adapter_command(script)
            engine = PipeEngine(
                command_of_it,
                store / f"{script.stem}.log",
                patience=patience,
                environment=environment,
                option=f"--adapter {shlex.quote(name)}",
            )
            stack.callback(engine.close)
            engines.append(engine)
        yield engines


def _listed(name: str | list[str] | None) -> list[str]:
    return [name] if isinstance(name, str) else name or []
