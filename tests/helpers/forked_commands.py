"""Runs commands, each in a fork of this process, which has imported them and done nothing.

A line of standard input is a command; the answer is a line with its exit code. `running.wallaroo`
starts this, and saves the quarter of a second that Python takes to import it all.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from wallaroo.cli.main import main

IMPORTED = ("wallaroo.cli.checkpoint", "wallaroo.cli.run", "wallaroo_reference.serving.server")
STREAMS = {"in": os.O_RDONLY, "out": os.O_WRONLY, "errors": os.O_WRONLY}
"""The files of a command's standard streams, and how they are opened."""


def become(words: list[str], cwd: str, environment: Mapping[str, str], folder: str) -> int:
    """Run a command in this process, as if it had been started for it; return the exit code."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.path[0] = str(Path.cwd())  # as with `python -m wallaroo`
    for number, (name, how) in enumerate(STREAMS.items()):
        opened = os.open(Path(folder, name), how)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = ["wallaroo", *words]
    return main()


def serve() -> int:
    """Run commands until there are no more; in a fork, return the exit code of its command."""
    for name in IMPORTED:
        import_module(name)
    gc.freeze()
    for line in sys.stdin:
        if (child := os.fork()) == 0:
            return become(*json.loads(line))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(code, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(serve())
