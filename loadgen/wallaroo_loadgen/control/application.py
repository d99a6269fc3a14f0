"""The application under test, when the load generator starts it: `--start 'wallaroo run …'`."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import threading
from typing import Self

from wallaroo.config import format_address
from wallaroo.text import process_end

_STOP_SECONDS = 20.0
_GRACE_SECONDS = 2.0


class Application:
    """A child process in its own session: Ctrl-C reaches only us, and we stop it.

    Args:
        command: as a shell would split it; `{listen}` becomes the address of our listener.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        self._last_line = "no output"
        self._reading = threading.Thread(target=self._read, daemon=True)
        self.problem: str | None = None

    def start(self, listening: tuple[str, int]) -> None:
        """Start it, once, now that there is something its sink can connect to.

        Raises:
            OSError: when there is no such program.
        """
        if self._process is not None:
            return
        words = shlex.split(self._command.replace("{listen}", format_address(*listening)))
        self._process = subprocess.Popen(  # noqa: S603 - the user's own command
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reading.start()

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._last_line = line.rstrip() or self._last_line

    @property
    def ended(self) -> str | None:
        """Its last words, if it has ended by itself."""
        if self._process is None or self._process.poll() is None:
            return None
        self._reading.join(1)
        return f"the application ended {process_end(self._process.returncode)}: {self._last_line}"

    @property
    def failed(self) -> str | None:
        """Its last words, if it has failed: not if it ended and left a process running."""
        return self.ended if self._process is not None and self._process.poll() else None

    def __enter__(self) -> Self:
        """Return it, not yet started."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it in order (stop-1), and kill it if that takes too long."""
        process = self._process
        if process is None:
            return
        self.problem = self.ended
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.problem = f"the application did not stop within {_STOP_SECONDS:g} s"
        # What it has started and left running (a shell does that) still holds its output: end it.
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._reading.join(_GRACE_SECONDS)
            if self._reading.is_alive():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
        process.wait()
