"""What the commands write: reports into files, and where a check stands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from wallaroo.text import escaped
from wallaroo_conformance.search.search import Progress, Watcher

_PLAIN_EVERY = 10.0  # seconds between lines where there is no terminal


def write_reports(texts: Mapping[Path | None, Callable[[], str]]) -> None:
    """Write each text into its file, and say so; `None`: it is not asked for."""
    for path, text in texts.items():
        if path is not None:
            path.write_text(text(), encoding="utf-8")
            print(escaped(f"wrote {path}"))


@contextmanager
def progress_shown(engine: str, stream: IO[str]) -> Iterator[Watcher]:
    """Show where a check of `engine` stands: a bar on a terminal, plain lines elsewhere."""
    console = Console(file=stream)
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    bar = Bar(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(engine, total=1.0)
    next_line = time.monotonic() + _PLAIN_EVERY

    def show(progress: Progress) -> None:
        nonlocal next_line
        said = f"{engine}: {progress}"
        bar.update(task, description=said, completed=progress.share)
        if not console.is_terminal and (now := time.monotonic()) >= next_line:
            next_line = now + _PLAIN_EVERY
            print(said, file=stream, flush=True)

    with bar:
        yield show
