"""Commands as a user types them, without the second that a process of its own takes to start."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
from unittest import mock

from wallaroo.cli.main import main

Done = subprocess.CompletedProcess[str]


def wallaroo_here(*words: object) -> Done:
    """Run `wallaroo WORDS…` in this process; return its exit code and what it printed."""
    arguments = [str(word) for word in words]
    out, errors = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, NO_COLOR="1", COLUMNS="200"),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
    ):
        code = main(arguments)
    return Done(arguments, code, out.getvalue(), errors.getvalue())
