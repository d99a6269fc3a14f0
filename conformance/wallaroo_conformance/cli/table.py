"""Progress of a check: a table by rule group and a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import defaultdict
from types import TracebackType
from typing import IO

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

from wallaroo_conformance.judge.laws import LAWS
from wallaroo_conformance.search.search import Progress as Where

_PLAIN_EVERY = 10.0  # seconds between lines where there is no terminal


class Table:
    """Shows where a check of `engine` stands, on `stream`; a context manager."""

    def __init__(self, engine: str, stream: IO[str]) -> None:
        self._engine = engine
        self._stream = stream
        self._console = Console(file=stream)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[done]}"),
            TimeElapsedColumn(),
            console=self._console,
        )
        self._task = self._bar.add_task(engine, total=1.0, done="")
        self._live: Live | None = None
        self._next_line = time.monotonic() + _PLAIN_EVERY

    def __enter__(self) -> Table:
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=8, transient=True)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, where: Where) -> None:
        """Show where the check stands."""
        if self._live is None:
            now = time.monotonic()
            if now >= self._next_line:
                self._next_line = now + _PLAIN_EVERY
                print(
                    f"{self._engine}: {where.stage}, {_done(where)}, {where.failing} failing",
                    file=self._stream,
                    flush=True,
                )
            return
        self._bar.update(
            self._task,
            description=f"{self._engine}: {where.stage}",
            completed=_share(where),
            done=_done(where),
        )
        self._live.update(Group(self._table(where), self._bar))

    def _table(self, where: Where) -> RichTable:
        table = RichTable(box=None, pad_edge=False)
        for heading in ("rules", "laws exercised", "held", "broken"):
            table.add_column(heading, justify="left" if heading == "rules" else "right")
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for law in LAWS:
            groups[law.rule.partition("-")[0]].append(law.id)
        for group, laws in groups.items():
            met = [law for law in laws if where.kept.get(law)]
            broken = [law for law in laws if law in where.broken]
            table.add_row(
                group,
                f"{len(met)} of {len(laws)}",
                str(sum(where.kept.get(law, 0) for law in laws)),
                str(len(broken)) if broken else "",
                style="red" if broken else None,
            )
        return table


def _share(where: Where) -> float:
    """Return how much of the budget is spent, of its cases or of its seconds, whichever is more."""
    shares = []
    if where.planned:
        shares.append(where.done / where.planned)
    if where.planned_seconds:
        shares.append(where.seconds / where.planned_seconds)
    return min(max(shares, default=0.0), 1.0)


def _done(where: Where) -> str:
    """Return what is done, and of how much."""
    cases = str(where.done)
    if where.planned is not None:
        cases += f" of {max(where.planned, where.done)}"
    time_spent = ""
    if where.planned_seconds is not None:
        spent = min(where.seconds, where.planned_seconds)
        time_spent = f", {spent:.0f} of {where.planned_seconds:g} s"
    return f"{cases} cases{time_spent}"
