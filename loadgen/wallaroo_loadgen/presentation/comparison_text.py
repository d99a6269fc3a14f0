"""Shows a comparison or a history in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wallaroo_loadgen.comparison.comparing import Comparison, percent, table
from wallaroo_loadgen.comparison.series import Series


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print metrics, ratios and verdicts."""
    rows = table(comparison)
    _say(
        console,
        f"latency: geometric means, ratios to the first ({percent(comparison.level)} intervals)",
    )
    shown = Table(box=None, pad_edge=False)
    for index, name in enumerate(rows[0]):
        shown.add_column(escape(name), justify="left" if index == 0 else "right")
    for row in rows[1:]:
        shown.add_row(*[escape(cell) for cell in row])
    console.print(shown)
    for other in comparison.others:
        for note in other.notes:
            _say(console, f"note: {other.runs.name} was measured with another {note}")
        for sentence in other.sentences:
            _say(console, f"{other.runs.name}: {sentence}")
    _say(console, comparison.verdict, style="bold")


def print_history(console: Console, found: Sequence[Series]) -> None:
    """Print the changes of each history."""
    for one in found:
        _say(console, f"{one.label}: {len(one.files)} files", style="bold")
        for line in one.lines:
            for sentence in one.words(line):
                _say(console, f"  {sentence}")


def _say(console: Console, text: str, style: str | None = None) -> None:
    """Print a line whole, however narrow the terminal is: CI keeps it to be searched."""
    console.print(escape(text), highlight=False, soft_wrap=True, style=style)
