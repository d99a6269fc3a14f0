"""What the commands log, and where user code's own output goes: standard error, a line each.

Standard output is for results. Control characters are escaped.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, TextIO

from wallaroo.text import escaped
from wallaroo.user_code.output import PRINTED, StepOutput, Steps, message_of, with_step

LEVELS = ("debug", "info", "warning", "error")


@contextmanager
def logging_to(stream: IO[str], level: str, *, as_json: bool) -> Iterator[None]:
    """Write the log of logger ``wallaroo`` and its children to `stream`, until the block ends.

    Args:
        stream: the stream to write to.
        level: the lowest level shown, one of `LEVELS`.
        as_json: write JSON objects, one per line, instead of text.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JSONFormatter() if as_json else LineFormatter())
    logger = logging.getLogger("wallaroo")
    before = logger.handlers[:], logger.level, logger.propagate
    logger.handlers[:], logger.propagate = [handler], False
    logger.setLevel(level.upper())
    try:
        yield
    finally:
        logger.handlers[:], logger.propagate = before[0], before[2]
        logger.setLevel(before[1])


class _Formatter(logging.Formatter):
    def _exception(self, record: logging.LogRecord) -> str:
        """Return the traceback that was logged, here or on a worker."""
        if record.exc_info:
            return self.formatException(record.exc_info)
        return record.exc_text or ""


class LineFormatter(_Formatter):
    """``12:00:36 warning: what happened``, escaped; an exception's traceback on the same line.

    A line that user code logged has its step before the text. A line that it printed has only the
    step and the text: ``[count] what it printed``.
    """

    def __init__(self) -> None:
        super().__init__(datefmt="%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        text = message_of(record)
        step = getattr(record, "step", "")
        if record.name == PRINTED:
            return with_step(step, escaped(text))
        if exception := self._exception(record):
            text = f"{text}\n{exception}"
        time = self.formatTime(record, self.datefmt)
        return f"{time} {record.levelname.lower()}: {with_step(step, escaped(text))}"


class JSONFormatter(_Formatter):
    """``{"time": …, "level": …, "logger": …, "message": …}``; time is UTC, ISO 8601.

    What user code prints and logs also has a ``step``.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message_of(record),
        }
        if step := getattr(record, "step", ""):
            fields["step"] = step
        if exception := self._exception(record):
            fields["exception"] = exception
        return json.dumps(fields)


_OF_ENGINES = ("asyncio",)  # loggers of libraries that tell nothing of interest below a warning


@contextmanager
def application_output() -> Iterator[Steps]:
    """Show what user code prints and logs as the commands' log is shown, until the block ends.

    Yields:
        an object that finds the running step; call its `know` once the application is loaded.
    """
    steps = Steps()
    root = logging.getLogger()
    before = sys.stdout, root.level
    handler = _Forwarding(steps)
    root.addHandler(handler)
    root.setLevel(logging.getLogger("wallaroo").level)
    quiet = [logger for logger in map(logging.getLogger, _OF_ENGINES) if not logger.level]
    for logger in quiet:
        logger.setLevel(logging.WARNING)
    logging.captureWarnings(True)
    output = StepOutput(steps)
    sys.stdout = output
    try:
        yield steps
    finally:
        output.finish()
        sys.stdout = before[0]
        logging.captureWarnings(False)
        for logger in quiet:
            logger.setLevel(logging.NOTSET)
        root.removeHandler(handler)
        root.setLevel(before[1])


@contextmanager
def results_on(stream: TextIO) -> Iterator[IO[bytes]]:
    """Yield standard output, unbuffered, for results alone.

    What anything else writes to descriptor 1, such as a program that user code starts, goes to
    standard error until the block ends.

    Args:
        stream: `sys.stdout`.
    """
    # Unbuffered: at exit a thread that is blocked in a write would hold the buffer's lock.
    unbuffered: IO[bytes] = getattr(stream.buffer, "raw", stream.buffer)
    try:
        if stream.fileno() != 1:
            yield unbuffered
            return
        stream.flush()
        own = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # the stream has no descriptor, or standard error is closed
        yield unbuffered
        return
    try:
        # Never closed: a thread may be blocked in a write to it.
        yield open(own, "wb", buffering=0, closefd=False)  # noqa: SIM115 - as it says above
    finally:
        os.dup2(own, 1)


class _Forwarding(logging.Handler):
    """Gives records of user code to the commands' handlers, with the step."""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self._steps = steps

    def emit(self, record: logging.LogRecord) -> None:
        if not hasattr(record, "step"):
            record.step = self._steps.running()
        for handler in logging.getLogger("wallaroo").handlers:
            handler.handle(record)
