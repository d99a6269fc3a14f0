"""What the demo prints: a moving bar on a terminal that `rich` knows, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Update: TypeAlias = Callable[[int], None]
"""Called with the number that are done."""

_SECONDS_BETWEEN_LINES = 1.0


def say(text: str = "") -> None:
    """Print a line at once, without buffering."""
    print(text, flush=True)


def title(text: str) -> None:
    """Print a headline."""
    say(f"\n{text}\n{'─' * len(text)}")


@contextmanager
def progress(unit: str, total: int) -> Iterator[Update]:
    """Show how a count grows towards `total`; yield the function that updates it."""
    if sys.stdout.isatty():
        try:
            from rich.progress import BarColumn, Progress, TimeElapsedColumn
        except ImportError:
            pass
        else:
            columns = ("  {task.description}", BarColumn(), "{task.completed:>10,.0f}")
            with Progress(*columns, TimeElapsedColumn()) as bar:
                task = bar.add_task(unit, total=total)
                yield lambda done: bar.update(task, completed=done)
            return
    yield _plain(unit, total)


def _plain(unit: str, total: int) -> Update:
    due = time.monotonic() + _SECONDS_BETWEEN_LINES
    said = 0

    def update(done: int) -> None:
        nonlocal due, said
        if time.monotonic() >= due and done > said:
            say(f"  {unit}: {done:,} of {total:,}")
            due, said = time.monotonic() + _SECONDS_BETWEEN_LINES, done

    return update
