"""The topology as an SVG picture: for a page or alone, for dark mode, and for screen readers."""

from __future__ import annotations

import hashlib
from html import escape

from wallaroo.drawing.labels import Label
from wallaroo.drawing.layout import (
    HEIGHT,
    MARGIN,
    NAME_SIZE,
    SMALL_SIZE,
    Box,
    Layout,
    Point,
    text_width,
)
from wallaroo.drawing.tree import tree
from wallaroo.operations import Stateful, Windowed
from wallaroo.text import escaped
from wallaroo.topology import Application, Sink, Source

# Kinds differ in shape as well as in colour. Every rule begins with the picture's own class, since
# a page may contain several pictures, and a style of its own.
_STYLE = """\
.wallaroo-topology { --paper: #ffffff; --lane: #f4f6f8; --edge: #d5dbe1; --ink: #17212b;
  --quiet: #55626f; --flow: #64717e; --source: #1f7a5c; --step: #2f5fa8; --state: #a8500f;
  --fill: #ffffff; font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
@media (prefers-color-scheme: dark) { .wallaroo-topology { --paper: #11161b; --lane: #192027;
  --edge: #323d47; --ink: #e8edf2; --quiet: #a3b0bc; --flow: #8795a2; --source: #5cc9a0;
  --step: #86b0f2; --state: #f0a868; --fill: #11161b; } }
.wallaroo-topology text { fill: var(--ink); }
.wallaroo-topology .title { font-size: 20px; font-weight: 600; }
.wallaroo-topology .lane { fill: var(--lane); stroke: var(--edge); }
.wallaroo-topology .pipeline { font-size: 13px; font-weight: 600; fill: var(--quiet); }
.wallaroo-topology .name { font-size: 14px; font-weight: 600; text-anchor: middle; }
.wallaroo-topology .kind, .wallaroo-topology .detail { font-size: 11px; text-anchor: middle;
  fill: var(--quiet); }
.wallaroo-topology .box { fill: var(--fill); stroke-width: 1.5; }
.wallaroo-topology .source .box, .wallaroo-topology .sink .box { stroke: var(--source); }
.wallaroo-topology .source .kind, .wallaroo-topology .sink .kind { fill: var(--source); }
.wallaroo-topology .step .box, .wallaroo-topology .stateful .box { stroke: var(--step); }
.wallaroo-topology .step .kind, .wallaroo-topology .stateful .kind { fill: var(--step); }
.wallaroo-topology .partition .box { stroke: var(--state); }
.wallaroo-topology .partition .kind { fill: var(--state); }
.wallaroo-topology .shared .box { stroke-width: 3; }
.wallaroo-topology .flow { fill: none; stroke: var(--flow); stroke-width: 1.5; }
.wallaroo-topology .head { fill: var(--flow); }
.wallaroo-topology .tie { fill: none; stroke: var(--state); stroke-width: 1.5;
  stroke-dasharray: 5 4; }
"""

_CORNER = 8  # radius of a tie's corners
_LID = 8  # half the height of a partition's lid


def svg(application: Application, *, marked: bool = False) -> str:
    """Return the application as an SVG document.

    Args:
        application: what is drawn.
        marked: for a page that changes parts of it. A node's group has its index as `data-node`, a
            state partition's group its name as `data-partition`, a flow `data-from` and `data-to`.
    """
    plan = Layout(application)
    title = f"Topology of {escaped(application.name)}"
    description = tree(application)
    ident = hashlib.blake2b(description.encode("utf-8"), digest_size=4).hexdigest()
    width, height = _number(plan.width), _number(plan.height)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wallaroo-topology" role="img"'
        f' aria-labelledby="t{ident} d{ident}" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}">',
        f'<title id="t{ident}">{escape(title)}</title>',
        f'<desc id="d{ident}">{escape(description)}</desc>',
        f"<style>\n{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="var(--paper)"/>',
        _text("title", (MARGIN, MARGIN + 18), application.name, plan.width - 2 * MARGIN, 20),
    ]
    parts += _lanes(plan)
    parts += [f'<path class="tie" d="{_elbow(corners)}"/>' for corners in plan.ties]
    flows = [
        (origin, index)
        for index, node in enumerate(application.nodes)
        for origin in (() if isinstance(node, Source) else node.inputs)
    ]
    for corners, (origin, index) in zip(plan.flows, flows, strict=True):
        parts.append(_arrow(corners, f' data-from="{origin}" data-to="{index}"' * marked))
    parts += [_done(corners) for corners in plan.dones]
    for index, (node, box) in enumerate(zip(application.nodes, plan.nodes, strict=True)):
        if isinstance(node, Source | Sink):
            kind, radius = ("source" if isinstance(node, Source) else "sink"), HEIGHT / 2
        else:
            has_state = isinstance(node.operation, Stateful | Windowed)
            kind, radius = ("stateful" if has_state else "step"), 8
        mark = f' data-node="{index}"' * marked
        parts.append(_group(kind, box, _rectangle(box, radius), mark))
    for partition, box in zip(application.partitions, plan.partitions, strict=True):
        kind = "partition" if box.label.kind == "state" else "partition shared"
        mark = f' data-partition="{escape(escaped(partition.name))}"' * marked
        parts.append(_group(kind, box, _cylinder(box), mark))
    return "\n".join([*parts, "</svg>\n"])


def _lanes(plan: Layout) -> list[str]:
    parts: list[str] = []
    width = plan.width - 2 * MARGIN
    for lane in plan.lanes:
        parts.append(
            f'<rect class="lane" x="{MARGIN}" y="{_number(lane.y)}" width="{_number(width)}"'
            f' height="{_number(lane.height)}" rx="12"/>'
        )
        place = (MARGIN + 20, lane.y + 22)
        parts.append(_text("pipeline", place, f"pipeline {lane.pipeline}", width - 40, 13))
    return parts


def _group(kind: str, box: Box, shape: str, mark: str) -> str:
    label = box.label
    middle = box.middle[0]
    room = box.width - 20
    texts = [("kind", label.kind, SMALL_SIZE), ("name", label.name, NAME_SIZE)]
    offsets = [20, 38]
    if label.detail:
        texts.append(("detail", label.detail, SMALL_SIZE))
        offsets.append(54)
    else:
        offsets = [27, 46]
    if kind.startswith("partition"):
        offsets = [offset + 2 * _LID - 2 for offset in offsets]  # below the lid
    lines = [
        _text(style, (middle, box.y + offset), text, room, size)
        for (style, text, size), offset in zip(texts, offsets, strict=True)
    ]
    return "\n".join(
        [
            f'<g class="{kind}"{mark}>',
            f"<title>{escape(_whole(label))}</title>",
            shape,
            *lines,
            "</g>",
        ]
    )


def _whole(label: Label) -> str:
    return ", ".join(part for part in (label.kind, label.name, label.detail) if part)


def _rectangle(box: Box, radius: float) -> str:
    return (
        f'<rect class="box" x="{_number(box.x)}" y="{_number(box.y)}"'
        f' width="{_number(box.width)}" height="{_number(box.height)}" rx="{_number(radius)}"/>'
    )


def _cylinder(box: Box) -> str:
    left, right = _number(box.x), _number(box.right)
    top, bottom = _number(box.y + _LID), _number(box.bottom - _LID)
    lid = f"{_number(box.width / 2)} {_LID} 0 0"
    return (
        f'<path class="box" d="M{left} {top} A{lid} 1 {right} {top} V{bottom}'
        f' A{lid} 1 {left} {bottom} Z M{left} {top} A{lid} 0 {right} {top}"/>'
    )


def _arrow(corners: list[Point], mark: str = "") -> str:
    *before, (tip, level) = corners
    head = f"M{_number(tip)} {_number(level)} l-9 -4.5 v9 Z"
    path = _elbow([*before, (tip - 8, level)])
    return f'<path class="flow" d="{path}"{mark}/><path class="head" d="{head}"/>'


def _done(corners: list[Point]) -> str:
    *before, (x, y) = corners
    return "\n".join(
        [
            _arrow([*before, (x - 9, y)]),
            f'<circle class="head" cx="{_number(x)}" cy="{_number(y)}" r="9"/>',
            _text("kind", (x, y + 26), "done", 60, 11),
        ]
    )


def _elbow(corners: list[Point]) -> str:
    """Return a path along `corners`, each rounded."""
    x, y = corners[0]
    path = [f"M{_number(x)} {_number(y)}"]
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        path.append(
            f"L{_at(_towards(corner, before))} Q{_at(corner)} {_at(_towards(corner, after))}"
        )
    return " ".join([*path, f"L{_at(corners[-1])}"])


def _towards(corner: Point, other: Point) -> Point:
    """Return the point from which the corner is rounded, on the way to `other`."""
    (x, y), (ox, oy) = corner, other
    length = abs(ox - x) + abs(oy - y)
    share = min(_CORNER / length, 0.5) if length else 0
    return x + (ox - x) * share, y + (oy - y) * share


def _at(point: Point) -> str:
    return f"{_number(point[0])} {_number(point[1])}"


def _text(style: str, place: Point, text: str, room: float, size: float) -> str:
    x, y = place
    content = escape(_fitted(escaped(text), room, size))
    return f'<text class="{style}" x="{_number(x)}" y="{_number(y)}">{content}</text>'


def _fitted(text: str, room: float, size: float) -> str:
    """Return as much of `text` as fits; a node's tooltip has the whole."""
    if text_width(text, size) <= room:
        return text
    while text and text_width(f"{text}…", size) > room:
        text = text[:-1]
    return f"{text}…"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
