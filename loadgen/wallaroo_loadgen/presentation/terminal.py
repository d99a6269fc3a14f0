"""Shows a run in a terminal: a live view while it goes on, a summary when it is over."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich import markup
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from wallaroo.text import escaped
from wallaroo_loadgen.common.schedule import NS
from wallaroo_loadgen.control.conductor import Conductor
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search
from wallaroo_loadgen.control.verdict import INVALID, TARGET_ENDED, WORDS, show, target_ended
from wallaroo_loadgen.presentation.tables import Rows, latency_rows, rate_rows, traffic

_BARS = " ▁▂▃▄▅▆▇█"
_REFRESH_SECONDS = 0.5
_SPARK_WIDTH = 60
_UNBROKEN = 10_000  # characters, more than any line has
_COLUMNS = ("min", "p50", "p90", "p99", "p99.9", "p99.99", "max")  # as many as 80 characters hold


def console(*, stderr: bool = False) -> Console:
    """Return the console for results; a file or pipe gets each line unbroken, for grep."""
    made = Console(stderr=stderr)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = _UNBROKEN
    return made


def safe(text: str) -> str:
    """Return a line of text that may hold anything as markup that shows it, escaped."""
    return markup.escape(escaped(text))


def say(console: Console, text: str, style: str | None = None) -> None:
    """Print a line whole, however narrow the terminal is: CI keeps it to be searched."""
    console.print(safe(text), highlight=False, soft_wrap=True, style=style)


def print_rows(console: Console, rows: Rows) -> None:
    """Print a table."""
    console.print(_table(rows))


def _table(rows: Rows) -> Table:
    """Return a table; its first column and sentences begin at the left."""
    table = Table(box=None, pad_edge=False)
    for index, name in enumerate(rows[0]):
        left = index == 0 or name == "verdict"
        table.add_column(safe(name), justify="left" if left else "right", no_wrap=name != "verdict")
    for row in rows[1:]:
        table.add_row(*[safe(cell) for cell in row])
    return table


@contextmanager
def live_view(console: Console) -> Iterator[Callable[[Conductor], None]]:
    """Show the run that goes on, as often as what this gives is called with it.

    It shows nothing when the output is not a terminal.
    """
    if not console.is_terminal:
        yield lambda _: None
        return
    drawn = 0.0
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def watch(conductor: Conductor) -> None:
            nonlocal drawn
            now = time.monotonic()
            if now - drawn >= _REFRESH_SECONDS:
                drawn = now
                live.update(_screen(conductor), refresh=True)

        yield watch


def _screen(conductor: Conductor) -> RenderableType:
    result, config = Result.of(conductor), conductor.plan.config
    seconds = conductor.plan.schedule.seconds
    elapsed = 0.0
    if conductor.started_ns is not None:
        elapsed = max(0.0, (time.time_ns() - conductor.started_ns) / NS)
    phase = conductor.phase
    if phase == "sending":
        measuring = elapsed - config.warmup
        phase = "warming up" if measuring < 0 else "measuring"
        if measuring > config.duration:
            phase = "cooling down"
    counts = result.counts
    backlog = max(0, counts["expected"] - counts["distinct"])  # reports come a little apart
    lines = Table.grid(padding=(0, 2))
    lines.add_row(
        Text(
            f"{escaped(config.workload)} at {config.rate:,.0f}/s, {config.schedule}", style="bold"
        ),
        Text(phase, style="cyan"),
        ProgressBar(total=seconds, completed=elapsed, width=30),
        f"{min(elapsed, seconds):.0f} of {seconds:.0f} s",
    )
    return Group(
        lines,
        f"{traffic(result)}, backlog {backlog:,}",
        _table(latency_rows(result, _COLUMNS)),
        f"p99 over time  {_spark(conductor)}",
    )


def _spark(conductor: Conductor) -> str:
    """Return p99 over time as bars, on a logarithmic scale."""
    values = conductor.collector.tally.timeline.quantile("latency", 0.99)
    logs = np.log(values[np.isfinite(values)])[-_SPARK_WIDTH:]
    if not len(logs):
        return ""
    low, high = logs.min() - 0.5, logs.max() + 0.1
    return "".join([_BARS[1 + int((value - low) / (high - low) * 7)] for value in logs])


def print_result(console: Console, result: Result) -> None:
    """Print the result of a run and the verdicts."""
    title = safe(f"{result.label}, {result.config['schedule']}, seed {result.config['seed']}")
    console.print(f"\n[bold]{title}[/bold]")
    if result.latency["count"]:
        print_rows(console, latency_rows(result, _COLUMNS))
    if result.started is not None:
        console.print(traffic(result), highlight=False)
    if result.counted:
        console.print(safe(f"counted: {result.counted}"), highlight=False)
    if result.own is not None:
        _print_own(console, result.own)
    for note in result.notes:
        console.print(f"[yellow]note:[/yellow] {safe(note)}", highlight=False)
    for slo in result.slos:
        word = "[green]met[/green]" if slo["met"] else "[red]MISSED[/red]"
        console.print(f"SLO {safe(slo['text'])}: {word} ({show(slo['value'])})", highlight=False)
    word = WORDS[TARGET_ENDED if target_ended(result) else INVALID]
    for reason in result.invalid:
        console.print(f"[bold red]{word}:[/bold red] {safe(reason)}", highlight=False)
    if not result.invalid:
        console.print("[green]valid[/green]", highlight=False)


def _print_own(console: Console, own: dict[str, Any]) -> None:
    """Print the application's own figures."""
    if "problem" in own:
        console.print(f"the application's own figures: {safe(own['problem'])}", highlight=False)
        return
    slowest = max(own["steps"], key=lambda step: float(step["seconds"]))
    about = "about " if own["estimate"] else ""
    console.print(
        f"the application says: {safe(own['verdict'])} Most time in {safe(slowest['name'])}, "
        f"{about}{slowest['seconds']:.3g} s, {show(slowest['mean'])} a call; at most "
        f"{own['backlog']:,} messages and {own['waiting']:,} outputs waited",
        highlight=False,
    )


def print_step(console: Console, search: Search) -> None:
    """Print the newest run of a search that goes on."""
    point, result = search.points[-1], search.results[-1]
    word = "sustained" if point["good"] else point["why"]
    p99 = show(result.latency["p99"])
    console.print(f"{point['rate']:>12,.0f}/s  p99 {p99:>9}  {safe(word)}")


def print_search(console: Console, search: Search) -> None:
    """Print a search's runs by rate, and the best."""
    print_rows(console, rate_rows(search))
    if search.best is None:
        console.print("[bold red]no rate was sustained[/bold red]", highlight=False)
    else:
        console.print(
            f"[bold]highest sustained rate: {search.best:,.0f} messages/s[/bold]", highlight=False
        )
    say(console, search.sentence())
