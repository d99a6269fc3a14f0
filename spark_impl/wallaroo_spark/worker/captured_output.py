"""What user code prints and logs on a worker; the driver shows it on its standard error.

A worker's standard streams go to a log file on its machine. So the first flow in a process replaces
them with a stream that gives each line, with the step's name, to the current `Printer`. What is
logged goes there too. The lines travel to the driver with the finished outputs.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from collections.abc import Iterator

from wallaroo.user_code.output import BytesOutput, Line, Logged, message_of
from wallaroo_spark.wire.job import Specs

_MOST_LINES = 1000  # lines kept for one task; further lines are only counted
_LONGEST_LINE = 4000  # characters kept of one line


class Printer:
    """Collects lines; `step` is the name of the running step."""

    def __init__(self) -> None:
        self.step = ""
        self.lines: list[Line] = []
        self._dropped = 0
        self._partial: dict[str, str] = {}

    def write(self, text: str) -> None:
        """Add a piece of text; a line is complete at its newline."""
        *lines, rest = (self._partial.pop(self.step, "") + text).split("\n")
        for line in lines:
            self._add(self.step, line)
        if rest:
            self._partial[self.step] = rest[:_LONGEST_LINE]

    def log(self, record: logging.LogRecord) -> None:
        """Add a log record."""
        exception = _exceptions.formatException(record.exc_info) if record.exc_info else ""
        logged = Logged(record.levelno, record.name, record.created, exception[:_LONGEST_LINE])
        self._add(self.step, message_of(record), logged)

    def finish(self) -> list[Line]:
        """Return the lines, with the last one even if it has no newline."""
        for step, rest in self._partial.items():
            self._add(step, rest)
        self._partial.clear()
        if self._dropped:
            self.lines.append(Line("", f"({self._dropped} more lines were printed)"))
        return self.lines

    def _add(self, step: str, line: str, logged: Logged | None = None) -> None:
        if len(self.lines) < _MOST_LINES:
            self.lines.append(Line(step, line[:_LONGEST_LINE], logged))
        else:
            self._dropped += 1


class _Stream(io.TextIOBase):
    """Standard output and standard error of a worker."""

    encoding = "utf-8"
    errors = "backslashreplace"
    printer: Printer | None = None

    @property
    def buffer(self) -> io.RawIOBase:
        return BytesOutput(self)

    def write(self, text: str) -> int:
        if self.printer is None:
            assert sys.__stderr__ is not None
            sys.__stderr__.write(text)
        else:
            self.printer.write(text)
        return len(text)

    def writable(self) -> bool:
        return True


class _Handler(logging.Handler):
    """Gives records to the current printer."""

    def emit(self, record: logging.LogRecord) -> None:
        if _stream.printer is not None:
            _stream.printer.log(record)


_stream = _Stream()
_handler = _Handler()
_exceptions = logging.Formatter()


@contextlib.contextmanager
def printing(printer: Printer, cases: Specs) -> Iterator[None]:
    """Collect in `printer` what this process prints and logs inside the block.

    Args:
        printer: takes it.
        cases: the cases that are run; they say the lowest level that is logged.
    """
    sys.stdout = sys.stderr = _stream
    root = logging.getLogger()
    before, level = _stream.printer, root.level
    _stream.printer = printer
    root.addHandler(_handler)
    root.setLevel(min([case.log_level for case in cases.values()], default=level))
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(_handler)
        _stream.printer = before
