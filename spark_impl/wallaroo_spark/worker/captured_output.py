"""What user code prints on a worker, kept to be shown on the driver's standard error.

A worker's own streams end in some log on some machine. So the first flow in a process puts a stream
of ours in their place, which hands lines to the `Printer` at work, with the step's name; they
travel with the finished outputs.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator

_MOST_LINES = 1000  # kept of one task's; what comes then is counted
_LONGEST_LINE = 4000  # characters kept of one line


class Printer:
    """Collects lines; `step` names who is at work."""

    def __init__(self) -> None:
        self.step = ""
        self.lines: list[tuple[str, str]] = []
        self._dropped = 0
        self._partial: dict[str, str] = {}

    def write(self, text: str) -> None:
        """Take a piece of text; a line is complete at its end."""
        *lines, rest = (self._partial.pop(self.step, "") + text).split("\n")
        for line in lines:
            self._add(self.step, line)
        if rest:
            self._partial[self.step] = rest[:_LONGEST_LINE]

    def finish(self) -> list[tuple[str, str]]:
        """Return the (step, line) pairs; lines without an end included."""
        for step, rest in self._partial.items():
            self._add(step, rest)
        self._partial.clear()
        if self._dropped:
            self.lines.append(("", f"({self._dropped} more lines were printed)"))
        return self.lines

    def _add(self, step: str, line: str) -> None:
        if len(self.lines) < _MOST_LINES:
            self.lines.append((step, line[:_LONGEST_LINE]))
        else:
            self._dropped += 1


class _Stream(io.TextIOBase):
    """Standard output and standard error of a worker."""

    printer: Printer | None = None

    def write(self, text: str) -> int:
        if self.printer is None:
            assert sys.__stderr__ is not None
            sys.__stderr__.write(text)
        else:
            self.printer.write(text)
        return len(text)

    def writable(self) -> bool:
        return True


_stream = _Stream()


@contextlib.contextmanager
def printing(printer: Printer) -> Iterator[None]:
    """Let `printer` have what this process prints meanwhile."""
    sys.stdout = sys.stderr = _stream
    before, _stream.printer = _stream.printer, printer
    try:
        yield
    finally:
        _stream.printer = before
