"""What both commands begin with: the recording, the application, and their progress."""

from __future__ import annotations

import argparse
import io
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from wallaroo.cli.terminal import progress_display
from wallaroo.engine import Progress
from wallaroo.transport.recording import RecordedLog

_log = logging.getLogger("wallaroo.reference")

ShowProgress = Callable[[int, int, int], None]
"""Shows how many records have been processed, outputs and dead letters made."""


def opened(options: argparse.Namespace) -> tuple[RecordedLog, int]:
    """Return the recording, and the number of the first record that is left out.

    Raises:
        WallarooError: it cannot be read.
    """
    log = RecordedLog(options.directory)
    if log.torn is not None:
        _log.warning(
            "the end of the input log is cut off, as by a crash; record %d is the last: %s",
            log.following - 1,
            log.torn,
        )
    until = log.following if options.until is None else min(options.until, log.following)
    return log, until


@contextmanager
def buffered(results: IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield a buffer before an unbuffered stream, which stays open."""
    stream = io.BufferedWriter(results)
    try:
        yield stream
    finally:
        stream.detach()


@contextmanager
def progress(options: argparse.Namespace, until: int) -> Iterator[ShowProgress]:
    """Yield a function that shows the progress; it may be called as often as wanted."""
    with progress_display(options.progress, sys.stderr) as show:
        shown = time.monotonic()

        def update(records: int, outputs: int, letters: int) -> None:
            nonlocal shown
            now = time.monotonic()
            if now - shown >= show.interval:
                shown = now
                percent = round(100 * records / max(1, until), 1)
                show(Progress(records, outputs, 0, letters, {"percent": percent}))

        yield update
