"""Pictures of windows on a line of time, for the page about them.

A lane is one row: windows as bars, or messages as dots. Times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

_LEFT, _SECOND, _LANE, _TOP = 150, 26, 46, 44
_STYLE = """<style>
.line { --paper: #ffffff; --edge: #d5dbe1; --ink: #17212b; --quiet: #55626f; --box: #2f5fa8;
  --fill: #e6eefb; --mark: #a8500f; font-family: system-ui, -apple-system, "Segoe UI", sans-serif; }
@media (prefers-color-scheme: dark) { .line { --paper: #11161b; --edge: #323d47; --ink: #e8edf2;
  --quiet: #a3b0bc; --box: #86b0f2; --fill: #1d2a3d; --mark: #f0a868; } }
.line text { fill: var(--ink); font-size: 13px; text-anchor: middle; }
.line .lane { text-anchor: start; fill: var(--quiet); }
.line .scale { font-size: 11px; fill: var(--quiet); }
.line .grid { stroke: var(--edge); }
.line .bar { fill: var(--fill); stroke: var(--box); stroke-width: 1.5; }
.line .dot { fill: var(--box); }
.line .mark { stroke: var(--mark); stroke-width: 1.5; stroke-dasharray: 5 4; }
.line .says { fill: var(--mark); font-size: 12px; }
</style>"""


@dataclass(frozen=True)
class Lane:
    """A row of a picture.

    Args:
        name: the text at its left.
        bars: windows, as (start, end, text).
        dots: messages, as (time, text).
    """

    name: str
    bars: tuple[tuple[float, float, str], ...] = ()
    dots: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Timeline:
    """A picture.

    Args:
        name: of its file, without the ending.
        title: for people who do not see it.
        until: the last second shown.
        lanes: its rows, from the top.
        marks: vertical lines, as (time, text).
    """

    name: str
    title: str
    until: int
    lanes: tuple[Lane, ...]
    marks: tuple[tuple[float, str], ...] = field(default=())

    def svg(self) -> str:
        """Return the picture."""
        width = _LEFT + self.until * _SECOND + 40
        height = _TOP + len(self.lanes) * _LANE + 34
        bottom = height - 30
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="line" role="img" '
            f'viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
            f"<title>{escape(self.title)}</title>",
            _STYLE,
            f'<rect width="{width}" height="{height}" fill="var(--paper)"/>',
        ]
        for second in range(0, self.until + 1, 5):
            x = _x(second)
            lines.append(f'<line class="grid" x1="{x}" y1="{_TOP}" x2="{x}" y2="{bottom}"/>')
            lines.append(f'<text class="scale" x="{x}" y="{bottom + 16}">{second} s</text>')
        for row, lane in enumerate(self.lanes):
            lines += _lane(lane, _TOP + row * _LANE)
        for time, text in self.marks:
            x = _x(time)
            lines.append(f'<line class="mark" x1="{x}" y1="30" x2="{x}" y2="{bottom}"/>')
            lines.append(f'<text class="says" x="{x}" y="20">{escape(text)}</text>')
        return "\n".join([*lines, "</svg>"]) + "\n"


def _lane(lane: Lane, top: int) -> list[str]:
    lines = [f'<text class="lane" x="14" y="{top + 27}">{escape(lane.name)}</text>']
    for start, end, text in lane.bars:
        x, width = _x(start), _x(end) - _x(start)
        lines.append(
            f'<rect class="bar" x="{x}" y="{top + 8}" width="{width}" height="30" rx="5"/>'
        )
        lines.append(f'<text x="{x + width // 2}" y="{top + 28}">{escape(text)}</text>')
    for time, text in lane.dots:
        lines.append(f'<circle class="dot" cx="{_x(time)}" cy="{top + 30}" r="5"/>')
        lines.append(f'<text x="{_x(time)}" y="{top + 19}">{escape(text)}</text>')
    return lines


def _x(second: float) -> int:
    return round(_LEFT + second * _SECOND)


_MESSAGES = ((1, "a1"), (4, "a2"), (12, "a3"), (17, "a4"), (24, "a5"))
TIMELINES = (
    Timeline(
        "windows-range",
        "Range windows of 10 seconds: one after the other on a fixed grid",
        30,
        (
            Lane("messages", dots=_MESSAGES),
            Lane("windows", bars=((0, 10, "a1 a2"), (10, 20, "a3 a4"), (20, 30, "a5"))),
        ),
    ),
    Timeline(
        "windows-sliding",
        "Range windows of 10 seconds with a slide of 5 seconds: they overlap",
        30,
        (
            Lane("messages", dots=_MESSAGES),
            Lane("windows", bars=((0, 10, "a1 a2"), (10, 20, "a3 a4"), (20, 30, "a5"))),
            Lane("", bars=((0, 5, "… a1 a2"), (5, 15, "a3"), (15, 25, "a4 a5"))),
        ),
    ),
    Timeline(
        "windows-session",
        "Session windows with a gap of 6 seconds: messages that follow each other within the gap",
        30,
        (
            Lane("messages", dots=_MESSAGES),
            Lane("sessions", bars=((1, 10, "a1 a2"), (12, 23, "a3 a4"), (24, 30, "a5"))),
        ),
    ),
    Timeline(
        "windows-count",
        "Count windows of 2 messages: a window fires with its second message",
        30,
        (
            Lane("messages", dots=_MESSAGES),
            Lane("windows", bars=((1, 4, "a1 a2"), (12, 17, "a3 a4"), (24, 28, "a5 …"))),
        ),
    ),
    Timeline(
        "windows-late",
        "Event time against arrival: with a delay of 3 seconds the window fires at 13 seconds",
        20,
        (
            Lane("event time", dots=((4, "a1"), (12, "a2"), (9, "a3"), (14, "a4"), (8, "a5"))),
            Lane("arrives", dots=((5, "a1"), (12.5, "a2"), (14, "a3"), (15.5, "a4"), (17, "a5"))),
            Lane("window", bars=((0, 10, "a1 a3"),)),
            Lane("waits until", bars=((10, 13, "delay"),)),
        ),
        ((13, "a watermark of 13 s fires it"),),
    ),
)
