"""A picture of messages on their way and of their lineages, drawn from a run of the engine."""

from __future__ import annotations

from html import escape
from typing import Any

from wallaroo.trace import Lineage
from wallaroo_docs.in_page import play
from wallaroo_docs.sketches import STYLE

TOLD = (
    "Two frames go through an application that splits and counts words. The frame 'to - be' has "
    "the lineage (0,). Split makes of it 'to' with (0, 0), an item that is left out, and 'be' with "
    "(0, 2). The frame 'to' has the lineage (1,), and its item (1, 0). The outputs are sent in the "
    "order of their lineages."
)
"""The picture as a sentence, for people who do not see it."""

_SOURCE = """
import wallaroo


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode("utf-8")


@wallaroo.computation_multi(name="split")
def split(line):
    return [None if word == "-" else word for word in line.split()]


@wallaroo.partition
def by_word(word):
    return word


class Count:
    value = 0


@wallaroo.state_computation(name="count")
def count(word, count):
    count.value += 1
    return f"{word} {count.value}", True


@wallaroo.encoder
def encode(text):
    return text


application = (
    wallaroo.ApplicationBuilder("words")
    .new_pipeline("lines", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    .to(split)
    .to_state_partition(count, Count, "counts", by_word)
    .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode))
    .build()
)
"""
_INPUT = "to - be\nto\n"
_COLUMNS = ((0, "came", "a frame comes"), (2, "came", "behind “split”"), (3, "gave", "is sent"))
_CARD, _HEIGHT, _GAP, _ROW, _LEFT, _TOP = 200, 48, 60, 62, 14, 40


def svg() -> str:
    """Return the picture."""
    steps = play(_SOURCE, _INPUT)["steps"]
    columns = [[step for step in steps if step["node"] == node] for node, _, _ in _COLUMNS]
    rows = {step["lineage"]: float(row) for row, step in enumerate(columns[-1])}
    for step in columns[0]:  # a frame stands in the middle of the steps that follow from it
        below = [row for lineage, row in rows.items() if _from(lineage, step["lineage"])]
        rows[step["lineage"]] = sum(below) / len(below)
    width = _LEFT * 2 + len(columns) * _CARD + (len(columns) - 1) * _GAP
    height = _TOP + len(columns[-1]) * _ROW
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="sketch" role="img" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<title>{escape(TOLD)}</title>",
        STYLE,
        f'<rect width="{width}" height="{height}" fill="var(--paper)"/>',
    ]
    for number, (column, (_, shown, heading)) in enumerate(zip(columns, _COLUMNS, strict=True)):
        x = _LEFT + number * (_CARD + _GAP)
        lines.append(f'<text class="lane" x="{x}" y="24">{heading}</text>')
        for step in column:
            lines += _card(step, shown, x, _y(rows, step))
            for other in columns[number - 1] if number else ():
                if _from(step["lineage"], other["lineage"]):
                    lines += _arrow(x - _GAP, _y(rows, other), x, _y(rows, step))
    return "\n".join([*lines, "</svg>\n"])


def _from(lineage: Lineage, parent: Lineage) -> bool:
    return lineage[: len(parent)] == parent


def _y(rows: dict[Lineage, float], step: dict[str, Any]) -> int:
    return round(_TOP + rows[step["lineage"]] * _ROW)


def _card(step: dict[str, Any], shown: str, x: int, y: int) -> list[str]:
    text = step["came"] if shown == "came" else step["gave"][0]
    lineage = repr(step["lineage"])
    return [
        f'<rect class="card plain" x="{x}" y="{y}" width="{_CARD}" height="{_HEIGHT}" rx="7"/>',
        f'<text x="{x + 12}" y="{y + 20}">{escape(text)}</text>',
        f'<text class="lane" x="{x + 12}" y="{y + 38}">{lineage}</text>',
    ]


def _arrow(x: int, y: int, to_x: int, to_y: int) -> list[str]:
    middle, end = _HEIGHT // 2, to_x - 3
    return [
        f'<path class="arrow" d="M{x + 3} {y + middle} L{end - 6} {to_y + middle}"/>',
        f'<path class="head" d="M{end} {to_y + middle} l-8 -4.5 v9 Z"/>',
    ]
