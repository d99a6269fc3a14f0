"""The picture of docs/cluster.md: what larger clusters can take, by `cluster_model.py`.

python benchmarks/cluster_picture.py > docs/assets/cluster.svg
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from cluster_model import Load, answer, costs

_CORES = 4  # of each executor; as many partitions as cores
_EXECUTORS = [2**power for power in range(11)]
_EVEN = Load(rate=math.inf, keys=1e7, cores=_CORES)
_LINES = (
    ("long", "micro-batches of 16 GB: a longer --trigger", replace(_EVEN, batch_bytes=16e9)),
    ("even", "of 256 MB, keys equally busy", _EVEN),
    ("hot", "of 256 MB, one key has a fifth of the messages", replace(_EVEN, hottest=0.2)),
)
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 670, 30, 330
_LEAST, _MOST = 4.5, 7.8  # powers of ten of messages a second

_STYLE = """<svg xmlns="http://www.w3.org/2000/svg" class="reach" role="img" viewBox="0 0 700 410"
  width="700" height="410">
<title>Messages a second that a cluster can take, by number of executors of four cores: each line
rises with the cores, then falls when starting tasks takes longer than their work</title>
<style>
.reach { --paper: #ffffff; --edge: #d5dbe1; --ink: #17212b; --quiet: #55626f; --even: #2f5fa8;
  --long: #1d7a4d; --hot: #a8500f; font-family: system-ui, -apple-system, "Segoe UI", sans-serif; }
@media (prefers-color-scheme: dark) { .reach { --paper: #11161b; --edge: #323d47; --ink: #e8edf2;
  --quiet: #a3b0bc; --even: #86b0f2; --long: #6fcf9b; --hot: #f0a868; } }
.reach text { font-size: 12px; fill: var(--quiet); }
.reach .grid { stroke: var(--edge); }
.reach .even { color: var(--even); }
.reach .long { color: var(--long); }
.reach .hot { color: var(--hot); }
.reach polyline { fill: none; stroke: currentColor; stroke-width: 2; }
.reach circle, .reach text[class] { fill: currentColor; }
</style>
<rect width="700" height="410" fill="var(--paper)"/>"""


def across(executors: float) -> float:
    """Return where a number of executors is, from the left."""
    return _LEFT + (_RIGHT - _LEFT) * math.log2(executors) / math.log2(_EXECUTORS[-1])


def down(rate: float) -> float:
    """Return where a rate is, from the top."""
    return _BOTTOM - (_BOTTOM - _TOP) * (math.log10(rate) - _LEAST) / (_MOST - _LEAST)


def line(name: str, load: Load) -> Sequence[str]:
    """Return a line, and where another limit begins to hold."""
    says = [
        (number, answer(replace(load, executors=number, partitions=number * _CORES), costs()))
        for number in _EXECUTORS
    ]
    points = " ".join([f"{across(number):.0f},{down(one.most):.0f}" for number, one in says])
    found = [f'<polyline class="{name}" points="{points}"/>']
    limit = "cores"
    for number, one in says:
        if one.limit != limit:
            limit = one.limit
            x, y = across(number), down(one.most)
            found.append(f'<circle class="{name}" cx="{x:.0f}" cy="{y:.0f}" r="4"/>')
            found.append(f'<text class="{name}" x="{x + 6:.0f}" y="{y - 8:.0f}">{limit}</text>')
    return found


def picture() -> str:
    """Return the picture."""
    parts = [_STYLE]
    for power in (5, 6, 7):
        y = down(10**power)
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{y:.0f}" x2="{_RIGHT}" y2="{y:.0f}"/>')
        says = f"{10**power:,}"
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{says}</text>')
    for number in _EXECUTORS[::2]:
        x = across(number)
        parts.append(f'<text x="{x:.0f}" y="{_BOTTOM + 18}" text-anchor="middle">{number:,}</text>')
    parts.append(f'<text x="{_LEFT}" y="{_TOP - 12}">messages a second, at most</text>')
    parts.append(f'<text x="{_RIGHT}" y="{_BOTTOM + 36}" text-anchor="end">executors</text>')
    for place, (name, label, load) in enumerate(_LINES):
        parts += line(name, load)
        y = _BOTTOM + 36 + 16 * place
        parts.append(f'<text class="{name}" x="{_LEFT}" y="{y}">{label}</text>')
    return "\n".join([*parts, "</svg>"])


if __name__ == "__main__":
    print(picture())
