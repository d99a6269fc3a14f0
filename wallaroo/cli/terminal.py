"""Tables of plain lines, and progress on a terminal by `rich` if it is installed.

In a pipe or a file, and without `rich`, progress is shown as JSON lines where these are asked for.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Protocol

from wallaroo.engine import Progress
from wallaroo.text import escaped

if TYPE_CHECKING:
    from rich.live import Live


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print `rows` under `headings` to stdout, in columns."""
    cells = [[escaped(cell) for cell in row] for row in [headings, *rows]]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    for row in cells:
        line = "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        print(line.rstrip())


@contextmanager
def byte_progress(
    what: str, total: int | None, stream: IO[str]
) -> Iterator[Callable[[int], object]]:
    """Show on `stream`, if it is a terminal, how many of `total` bytes are done.

    Args:
        what: the bar's caption.
        total: number of bytes; `None` if unknown.
        stream: where to.

    Yields:
        A function that takes the number of bytes done since it was called last.
    """
    if stream.isatty():
        try:
            from rich.console import Console
            from rich.markup import escape
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
                TransferSpeedColumn,
            )
        except ImportError:
            pass
        else:
            columns = [TextColumn("{task.description}"), BarColumn(), DownloadColumn()]
            columns += [TransferSpeedColumn(), TimeElapsedColumn()]
            with Progress(*columns, console=Console(file=stream), transient=True) as progress:
                task = progress.add_task(escape(escaped(what)), total=total)
                yield lambda done: progress.advance(task, done)
            return
    yield lambda done: None


_WINDOW = 3.0  # seconds over which a rate is taken


class ProgressDisplay(Protocol):
    """Shows the progress of a run; called every `interval` seconds."""

    interval: float

    def __call__(self, progress: Progress) -> None:
        """Show it."""


@contextmanager
def progress_display(mode: str, stream: IO[str]) -> Iterator[ProgressDisplay]:
    """Yield a display that shows progress on `stream`.

    Args:
        mode: ``json``: JSON lines; ``auto``: a live line if `stream` is a terminal and `rich` is
            installed; anything else: nothing is shown.
        stream: where progress is shown.
    """
    if mode == "json":
        yield JSONLines(stream)
        return
    if mode == "auto" and stream.isatty():
        try:
            from rich.console import Console
            from rich.live import Live
        except ImportError:
            pass
        else:
            console = Console(file=stream, highlight=False)
            with Live(
                console=console, transient=True, auto_refresh=False, redirect_stdout=False
            ) as live:
                # `Live` has replaced sys.stderr: what is logged through it appears above the line.
                before = _log_to(sys.stderr)
                try:
                    yield LiveLine(live)
                finally:
                    _log_to(before or stream)
            return
    yield NoDisplay()


class Rate:
    """Messages a second, over the last few seconds."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()

    def __call__(self, now: float, number: int) -> float:
        """Return how fast `number` grew, per second."""
        self._marks.append((now, number))
        while len(self._marks) > 2 and now - self._marks[1][0] >= _WINDOW:
            self._marks.popleft()
        began, first = self._marks[0]
        return (number - first) / (now - began) if now > began else 0.0


class NoDisplay:
    """Shows nothing."""

    interval = 60.0

    def __call__(self, progress: Progress) -> None:
        """Do nothing."""


class JSONLines:
    """Prints a JSON object every second."""

    interval = 1.0

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._began = time.monotonic()
        self._rate = Rate()

    def __call__(self, progress: Progress) -> None:
        """Print it."""
        now = time.monotonic()
        fields = {
            "seconds": round(now - self._began, 3),
            "received": progress.received,
            "received_per_second": round(self._rate(now, progress.received), 1),
            "written": progress.written,
            "pending": progress.pending,
            "dead_letters": progress.dead_letters,
            **progress.details,
        }
        print(json.dumps({"progress": fields}), file=self._stream, flush=True)


class LiveLine:
    """Shows a line that changes four times a second."""

    interval = 0.25

    def __init__(self, live: Live) -> None:
        self._live = live
        self._rate = Rate()

    def __call__(self, progress: Progress) -> None:
        """Show it."""
        from rich.text import Text

        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{self._rate(time.monotonic(), progress.received):,.0f} messages/s", "bold")
        line.append(f" · {progress.received:,} in · {progress.written:,} out")
        if progress.pending:
            line.append(f" · {progress.pending:,} to be sent", "yellow")
        if progress.dead_letters:
            line.append(f" · {progress.dead_letters:,} dead letters", "red")
        for name, value in progress.details.items():
            shown = f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
            line.append(escaped(f" · {name} {shown}"), "dim")
        self._live.update(line, refresh=True)


def _log_to(stream: IO[str]) -> IO[str] | None:
    """Log to `stream` from now on, and return the stream that was used before."""
    before: IO[str] | None = None
    for handler in logging.getLogger("wallaroo").handlers:
        if isinstance(handler, logging.StreamHandler):
            before = handler.setStream(stream) or before
    return before
