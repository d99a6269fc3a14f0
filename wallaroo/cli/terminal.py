"""Tables and progress bars on a terminal, by `rich` if it is installed.

In a pipe or a file, and without `rich`, the output is plain lines.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO

from wallaroo.text import escaped


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print `rows` under `headings` to stdout, in columns."""
    cells = [[escaped(cell) for cell in row] for row in [headings, *rows]]
    if sys.stdout.isatty():
        try:
            from rich import box
            from rich.console import Console
            from rich.table import Table
            from rich.text import Text
        except ImportError:
            pass
        else:
            table = Table(*cells[0], box=box.SIMPLE_HEAD, pad_edge=False)
            for row in cells[1:]:
                # Text, so that square brackets are not read as markup.
                table.add_row(*[Text(cell) for cell in row])
            Console().print(table)
            return
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
