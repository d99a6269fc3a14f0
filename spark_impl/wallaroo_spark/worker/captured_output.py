"""What user code prints on a worker; the driver shows it on its standard error.

A worker's standard streams go to a log file on its machine. So the first flow in a process replaces
them with a stream that gives each line, with the step's name, to the current `Printer`. The lines
travel to the driver with the finished outputs.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator

_MOST_LINES = 1000  # lines kept for one task; further lines are only counted
_LONGEST_LINE = 4000  # characters kept of one line


class Printer:
    """Collects lines; `step` is the name of the running step."""

    def __init__(self) -> None:
        self.step = ""
        self.lines: list[tuple[str, str]] = []
        self._dropped = 0
        self._partial: dict[str, str] = {}

    def write(self, text: str) -> None:
        """Add a piece of text; a line is complete at its newline."""
        *lines, rest = (self._partial.pop(self.step, "") + text).split("\n")
        for line in lines:
            self._add(self.step, line)
        if rest:
            self._partial[self.step] = rest[:_LONGEST_LINE]

    def finish(self) -> list[tuple[str, str]]:
        """Return the (step, line) pairs, with the last line even if it has no newline."""
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
    """Collect in `printer` what this process prints inside the block."""
    sys.stdout = sys.stderr = _stream
    before, _stream.printer = _stream.printer, printer
    try:
        yield
    finally:
        _stream.printer = before
