"""A process that gets and gives lines, with time limits; it is killed with its group."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from wallaroo.text import process_end

_PORTION = 1 << 16
_LONGEST_LINE = 1 << 28  # bytes; a job's trace is a thousandth of it
_TAIL = 2_000  # bytes of what it wrote to its standard error that are shown
_PATIENCE = 5.0  # seconds for a process to be gone once it has been asked, or killed


class DiedError(Exception):
    """The process has ended, or closed its output."""


class SilentError(Exception):
    """No line came in time."""


class LineProcess:
    """A process in a group of its own.

    Args:
        command: what to run.
        log: gets what it writes to its standard error.
        environment: of the process; `None`: this one's.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: IO[bytes],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._log = log
        self._begun = log.seek(0, os.SEEK_END)
        self._process = subprocess.Popen(  # noqa: S603 - the user's own command
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            start_new_session=True,
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self._input.fileno(), False)
        os.set_blocking(self._output.fileno(), False)
        self._to_send = memoryview(b"")
        self._received = bytearray()
        self._searched = 0  # of `_received`, bytes that hold no end of a line

    def send(self, line: bytes) -> None:
        """Queue a line, sent while `line` waits for answers: neither side can block the other."""
        self._to_send = memoryview(bytes(self._to_send) + line)

    def line(self, seconds: float) -> bytes:
        """Return the next line.

        Raises:
            SilentError: none came in time.
            DiedError: there will be none.
        """
        end = time.monotonic() + seconds
        while True:
            at = self._received.find(b"\n", self._searched)
            if at >= 0:
                line = bytes(self._received[:at])
                del self._received[: at + 1]
                self._searched = 0
                return line
            self._searched = len(self._received)
            if self._searched > _LONGEST_LINE:
                raise DiedError(f"a line of more than {_LONGEST_LINE} bytes")
            left = end - time.monotonic()
            if left <= 0:
                raise SilentError
            self._move(left)

    def _move(self, seconds: float) -> None:
        """Send and receive what is possible, and wait at most `seconds`."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            if self._to_send:
                selector.register(self._input, selectors.EVENT_WRITE)
            ready = {key.fileobj for key, _ in selector.select(seconds)}
        if self._input in ready:
            try:
                sent = os.write(self._input.fileno(), self._to_send[:_PORTION])
            except BlockingIOError:
                sent = 0
            except OSError:
                self._to_send = memoryview(b"")  # reading will tell that it has ended
            else:
                self._to_send = self._to_send[sent:]
        if self._output in ready:
            portion = os.read(self._output.fileno(), 16 * _PORTION)
            if not portion:
                raise DiedError(self._how_it_ended())
            self._received += portion

    def _how_it_ended(self) -> str:
        """Return how the process ended."""
        try:
            code = self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return "it closed its standard output"
        return f"it ended {process_end(code)}"

    def tail(self) -> str:
        """Return the end of what this process has written to its standard error."""
        with Path(self._log.name).open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(self._begun, size - _TAIL))
            return log.read().decode("utf-8", "backslashreplace")

    def close(self) -> None:
        """Close its input, which is its sign to end, and wait a little; then kill it."""
        with contextlib.suppress(OSError):
            self._input.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        self.kill()

    def kill(self) -> None:
        """Kill the process, and all that it has started in its group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        for end in (self._input, self._output):
            with contextlib.suppress(OSError):
                end.close()
