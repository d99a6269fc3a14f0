"""The commands' log: one line per record, on stderr, with control characters escaped."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO

from wallaroo.text import escaped
from wallaroo.user_code.output import PRINTED, message_of, with_step

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
