"""The commands' log: one line per record, on stderr, with control characters escaped."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO

from wallaroo.text import escaped

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


class LineFormatter(logging.Formatter):
    """``12:00:36 warning: what happened``, escaped; an exception's traceback on the same line."""

    def __init__(self) -> None:
        super().__init__(datefmt="%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        time = self.formatTime(record, self.datefmt)
        return f"{time} {record.levelname.lower()}: {escaped(text)}"


class JSONFormatter(logging.Formatter):
    """``{"time": …, "level": …, "logger": …, "message": …}``; time is UTC, ISO 8601."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields)
