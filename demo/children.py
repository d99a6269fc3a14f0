"""The processes that the demo starts, and always ends."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType

from demo.interrupts import interrupts

WALLAROO = (sys.executable, "-m", "wallaroo")

_LISTENING = re.compile(r"source (.+) listening on (\S+):(\d+)$")
_LINES_KEPT = 200
_LONGEST = 60.0  # seconds for a command that only prints


class ChildFailedError(Exception):
    """A command did not do what was expected of it; the text says which and what it printed."""


class Child:
    """A running command; leaving the ``with`` block ends it.

    Args:
        arguments: the command line after ``wallaroo``, or after `program`.
        program: another program than ``wallaroo``.
        shown: whether its output is shown on the demo's terminal; otherwise it is only read.
    """

    def __init__(
        self, arguments: Sequence[str], *, program: Sequence[str] = WALLAROO, shown: bool = False
    ) -> None:
        self._command = " ".join([*(["wallaroo"] if program == WALLAROO else program), *arguments])
        self._changed = threading.Condition()
        self._addresses: dict[str, tuple[str, int]] = {}
        self._lines: deque[str] = deque(maxlen=_LINES_KEPT)
        # In a process group of its own: Ctrl-C is for the demo, which then ends its children.
        self._process = subprocess.Popen(  # noqa: S603 - our own command, no shell
            [*program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=None if shown else subprocess.DEVNULL,
            stderr=None if shown else subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end(seconds=5.0)

    def address(self, source: str, seconds: float) -> tuple[str, int]:
        """Wait until `source` listens and return where.

        Raises:
            ChildFailedError: it does not within `seconds`, or the command has ended.
        """
        deadline = time.monotonic() + seconds
        with self._changed:
            while source not in self._addresses:
                self._changed.wait(0.1)
                if not self._reader.is_alive() or time.monotonic() > deadline:
                    raise self.failed(f"did not listen within {seconds:.0f} s")
            return self._addresses[source]

    def check_running(self) -> None:
        """Raise ChildFailedError if the command has ended."""
        if self._process.poll() is not None:
            raise self.failed(f"ended with exit code {self._process.returncode}")

    def wait(self, seconds: float) -> int:
        """Wait until the command has ended and return its exit code.

        Raises:
            ChildFailedError: it takes longer than `seconds`.
        """
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise self.failed(f"took longer than {seconds:.0f} s") from None

    def kill(self) -> None:
        """End it at once, as kill -9 does."""
        self._process.kill()
        self._process.wait()

    def stop(self, seconds: float) -> list[str]:
        """Stop the command as Ctrl-C would, and return the last lines it printed.

        Raises:
            ChildFailedError: its exit code is not 0, or it took longer than `seconds`.
        """
        code = self._end(seconds)
        if code != 0:
            raise self.failed(f"ended with exit code {code}")
        return list(self._lines)

    def failed(self, what: str) -> ChildFailedError:
        """Return an error that says what is wrong, with what the command has printed."""
        return ChildFailedError("\n".join([f"{self._command}\n{what}", *self._lines]))

    def _end(self, seconds: float) -> int:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        except BaseException:  # Ctrl-C once more
            self._process.kill()
            raise
        self._reader.join()
        return code

    def _read(self) -> None:
        if self._process.stderr is None:
            return
        with self._process.stderr as lines:
            for line in lines:
                found = _LISTENING.search(line.rstrip())
                with self._changed:
                    self._lines.append(line.rstrip())
                    if found:
                        self._addresses[found[1]] = (found[2].strip("[]"), int(found[3]))
                    self._changed.notify_all()


def run_shown(arguments: Sequence[str], seconds: float, program: Sequence[str] = WALLAROO) -> int:
    """Run a command (`Child`) with its output on the demo's terminal, and return its exit code.

    Raises:
        ChildFailedError: it took longer than `seconds`.
    """
    with ExitStack() as stack:
        with interrupts.held():
            child = stack.enter_context(Child(arguments, program=program, shown=True))
        return child.wait(seconds)


def output_of(arguments: Sequence[str]) -> str:
    """Return what a `wallaroo` command prints.

    Raises:
        ChildFailedError: its exit code is not 0, or it took longer than a minute.
    """
    command = " ".join(["wallaroo", *arguments])
    try:
        done = subprocess.run(  # noqa: S603 - our own command, no shell
            [*WALLAROO, *arguments], capture_output=True, text=True, timeout=_LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        raise ChildFailedError(f"{command}\ntook longer than {_LONGEST:.0f} s") from None
    if done.returncode:
        raise ChildFailedError(f"{command}\nended with exit code {done.returncode}\n{done.stderr}")
    return done.stdout
