"""Standard output is for results: what user code prints and logs goes to standard error."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TextIO

from wallaroo.user_code.output import StepOutput, Steps

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
