"""Executing the parts of an example: its module, its input, and plain code.

The tests run the documents' examples with this, and so does a reader in a page, in Python for the
browser. It needs only the language and an engine.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from importlib.util import cache_from_source
from pathlib import Path
from types import ModuleType
from typing import Any

from wallaroo import testing
from wallaroo.engine import Isolation, load_engine
from wallaroo.loading import LoadedModule, load_file
from wallaroo.testing import Result


class BadExampleError(Exception):
    """There is a mistake in the example itself."""


class NotPromisedError(Exception):
    """An engine promises nothing about an example; the text says why."""


def isolation_of(engine: str) -> Isolation:
    """Return the mode in which examples run on an engine: `isolated` where it has that."""
    return "isolated" if "isolated" in load_engine(engine).capabilities().isolation else "trusting"


def loaded(name: str, source: str) -> LoadedModule:
    """Return Python as a module with a file, so that its objects pickle and workers import it.

    Raises:
        ApplicationLoadError: executing it raised.
    """
    path = directory() / f"{name}.py"
    path.write_text(source, "utf-8")
    # Python takes compiled code for that of a source with its size and its second: two examples
    # of one length, executed in one second, would be the same.
    Path(cache_from_source(path)).unlink(missing_ok=True)
    sys.modules.pop(name, None)  # what an earlier run left in its objects must not be seen here
    return load_file(path, name)


def result_of_input(
    text: str,
    module: ModuleType,
    *,
    name: str,
    engine: str,
    isolation: Isolation,
    file: str = "input.py",
    line: int = 1,
) -> tuple[Result, int | None]:
    """Execute an input and return what its one call of `run`, or its session, gave.

    Args:
        text: Python, in which `run` and `Session` are `wallaroo.testing`'s.
        module: whose names it may use.
        name: the example's, for errors.
        engine: an installed engine's name.
        isolation: the mode.
        file: where it stands, for errors.
        line: the number of its first line there.

    Returns:
        The result, and the number of partitions that the input asked for.

    Raises:
        BadExampleError: it runs nothing, or several things.
        Exception: whatever it raises.
    """
    met: list[tuple[Result, int | None]] = []
    sessions: list[testing.Session] = []

    def run(application: Any, payloads: Any = (), **options: Any) -> Result:
        result = testing.run(application, payloads, engine=engine, isolation=isolation, **options)
        met.append((result, options.get("partitions")))
        return result

    def session(application: Any, **options: Any) -> testing.Session:
        made = testing.Session(application, engine=engine, isolation=isolation, **options)
        sessions.append(made)
        return made

    execute(text, {**vars(module), "run": run, "Session": session}, file=file, line=line)
    met += [(one.result, None) for one in sessions]
    if len(met) != 1:
        raise BadExampleError(
            f"{name}: an input calls run, or makes a session, once, not {len(met)} times"
        )
    return met[0]


def execute(text: str, namespace: dict[str, Any], *, file: str, line: int = 1) -> str:
    """Execute Python whose first line has the number `line` in `file`; return what it printed."""
    printed = io.StringIO()
    code = compile("\n" * (line - 1) + text, file, "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)  # noqa: S102 - the documents' own examples, or the reader's own
    return printed.getvalue()


_directories: list[tempfile.TemporaryDirectory[str]] = []


def directory() -> Path:
    """Return this process's directory of modules; it is removed when the process ends."""
    if not _directories:
        _directories.append(tempfile.TemporaryDirectory(prefix="wallaroo-docs-"))
    return Path(_directories[0].name)
