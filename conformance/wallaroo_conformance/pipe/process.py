"""A process that gets and gives lines, with time limits; it is killed with its group."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from wallaroo.text import process_end

_LONGEST_LINE = 1 << 28  # bytes; a job's trace is a thousandth of it
_MOST_LINES = 64  # that wait to be looked at; then the process has to wait
_TAIL = 2_000  # bytes of what it wrote to its standard error that are shown
_PATIENCE = 5.0  # seconds for a process to be gone once it has been asked, or killed


class DiedError(Exception):
    """The process has ended, or closed its output."""


class SilentError(Exception):
    """No line came in time."""


class Fault(Exception):  # noqa: N818 - it becomes a case's answer
    """What a process did wrong, with the end of its standard error.

    Args:
        process: the process; `None`: there is none.
        text: what it did.
        weight: as how many faults it counts.
    """

    def __init__(self, process: LineProcess | None, text: str, weight: int = 1) -> None:
        super().__init__(text)
        self.tail = "" if process is None else process.tail()
        self.weight = weight


class LineProcess:
    """A process in a group of its own.

    A thread writes to it and a thread reads from it, so that neither side can block the other. Both
    end with the process.

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
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to_send: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._received: queue.Queue[bytes] = queue.Queue(_MOST_LINES)
        self._start(_write, self._process.stdin, self._to_send)
        self._start(_read, self._process.stdout, self._received)

    @staticmethod
    def _start(target: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=target, args=arguments, daemon=True).start()

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def send(self, line: bytes) -> None:
        """Send a line, without waiting until the process reads it."""
        self._to_send.put(line)

    def line(self, seconds: float) -> bytes:
        """Return the next line.

        Raises:
            SilentError: none came in time.
            DiedError: there will be none.
        """
        try:
            line = self._received.get(timeout=max(0.0, min(seconds, threading.TIMEOUT_MAX)))
        except queue.Empty:
            raise SilentError from None
        if line.endswith(b"\n"):
            return line
        self._received.put(b"")  # for whoever asks again
        if len(line) == _LONGEST_LINE:
            raise DiedError(f"a line of more than {_LONGEST_LINE} bytes")
        try:
            code = self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            raise DiedError("it closed its standard output") from None
        raise DiedError(f"it ended {process_end(code)}")

    def tail(self) -> str:
        """Return the end of what this process has written to its standard error."""
        with Path(self._log.name).open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(self._begun, size - _TAIL))
            return log.read().decode("utf-8", "backslashreplace")

    def close(self) -> None:
        """Close its input, which is its sign to end, and wait a little; then kill it."""
        self._to_send.put(None)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        self.kill()

    def kill(self) -> None:
        """Kill the process, and all that it has started in its group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        self._to_send.put(None)
        with contextlib.suppress(queue.Empty):  # the thread that reads may wait for room
            while self._received.get(timeout=_PATIENCE).endswith(b"\n"):
                pass
            self._received.put(b"")  # for whoever asks again


def _write(stream: IO[bytes], lines: queue.SimpleQueue[bytes | None]) -> None:
    """Write lines until there is `None`, or nobody reads; then close the stream."""
    with contextlib.suppress(OSError):  # what reads from it tells that it has ended
        while (line := lines.get()) is not None:
            stream.write(line)
            stream.flush()
    with contextlib.suppress(OSError):
        stream.close()


def _read(stream: IO[bytes], lines: queue.Queue[bytes]) -> None:
    """Read lines until the stream ends; what is last does not end as a line does."""
    with stream:
        while (line := stream.readline(_LONGEST_LINE)).endswith(b"\n"):
            lines.put(line)
        lines.put(line)
