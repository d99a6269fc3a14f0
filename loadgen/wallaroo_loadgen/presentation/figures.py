"""A plot as data: `page` puts it into a page, `assets/plots.js` draws it there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite, log10
from typing import Any

Ticks = list[tuple[float, str]]
Numbers = list[float | None]

_DIGITS = 5  # significant ones: more than a screen has points


@dataclass(frozen=True)
class Axis:
    """One axis.

    Attributes:
        label: what it shows, with the unit.
        low, high: where it begins and ends; fitted to the data where they are `None`.
        log: logarithmic; then `ticks` are needed.
        ticks: positions with their texts, if the plot does not choose them.
        inverse: positions are the inverse of the distance to 100 %, and are shown as percentiles.
    """

    label: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    ticks: Ticks | None = None
    inverse: bool = False


@dataclass(frozen=True)
class Line:
    """A line.

    Attributes:
        name: its name, for the legend.
        colour: as CSS has it. On one page, a colour stands for one thing.
        x, y: as many of one as of the other; a `None` in `y` is a gap. `x` rises.
        dash: lengths of stroke and gap in pixels; none for a line without gaps.
        steps: level from each point to the next one.
        filled: the area below it is coloured too.
        right: its values are those of the axis at the right.
        marks: for each point, whether it is a circle or a cross; no marks when empty.
    """

    name: str
    colour: str
    x: Sequence[float | None]
    y: Sequence[float | None]
    dash: Sequence[int] = ()
    steps: bool = False
    filled: bool = False
    right: bool = False
    marks: Sequence[bool] = ()


@dataclass(frozen=True)
class Heat:
    """Cells behind the lines: the darker, the more.

    Attributes:
        name: the thing that is counted, for the legend.
        x, y: edges of the cells, one more than there are columns and rows.
        cells: (column, row, count), those with a count only.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    cells: Sequence[tuple[int, int, int]]


@dataclass(frozen=True)
class Figure:
    """One plot.

    Attributes:
        title: its heading.
        x, y, right: its axes.
        lines, heat: what is drawn.
        span: from, to and name of a part of the x axis that is highlighted.
        at: positions on the x axis that are marked, each with its colour.
        together: plots of a page with the same name here show the same moment under the mouse.
    """

    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line] = ()
    heat: Heat | None = None
    right: Axis | None = None
    span: tuple[float, float, str] | None = None
    at: Sequence[tuple[float, str]] = field(default=())
    together: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, with only as many digits as can be seen."""
        found: dict[str, Any] = _short(asdict(self))
        return found


def log_axis(label: str, values: Sequence[float]) -> Axis:
    """Return a logarithmic axis around positive values, with plain numbers at it."""
    used = [value for value in values if value > 0]
    low, high = (min(used) / 1.5, max(used) * 1.5) if used else (0.1, 10.0)
    ticks = [
        (digit * 10.0**power, f"{digit * 10.0**power:,g}")
        for power in range(int(log10(low)) - 1, int(log10(high)) + 2)
        for digit in (1, 2, 5)
    ]
    within = [tick for tick in ticks if low <= tick[0] <= high]
    if len(within) > 12:  # tens alone, or they would stand too close
        within = [tick for tick in within if round(log10(tick[0]), 6).is_integer()]
    return Axis(label, low, high, log=True, ticks=within)


def _short(value: Any) -> Any:
    """Return plain data that JSON can hold: few digits, and gaps as None."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if isfinite(value) else None
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_short(item) for item in value]
    return value
