"""A picture for each chapter of the specification: what goes wrong without its rules.

A picture has two rows of cards: the same messages without the rules, and with them.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from html import escape
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["plain", "wrong", "right"]

_CARD, _GAP, _LEFT, _TOP, _LINE, _LETTERS = 208, 30, 14, 16, 17, 29
STYLE = """<style>
.sketch { --paper: #ffffff; --edge: #8795a2; --ink: #17212b; --quiet: #55626f; --fill: #f4f6f8;
  --bad: #b3261e; --badfill: #fdecea; --good: #1f7a5c; --goodfill: #e6f4ee;
  font-family: system-ui, -apple-system, "Segoe UI", sans-serif; }
@media (prefers-color-scheme: dark) { .sketch { --paper: #11161b; --edge: #64717e; --ink: #e8edf2;
  --quiet: #a3b0bc; --fill: #192027; --bad: #ff8a80; --badfill: #3a1d1b; --good: #5cc9a0;
  --goodfill: #16302a; } }
.sketch text { fill: var(--ink); font-size: 13px; }
.sketch .lane { fill: var(--quiet); font-weight: 600; }
.sketch rect.card { fill: var(--fill); stroke: var(--edge); }
.sketch rect.wrong { fill: var(--badfill); stroke: var(--bad); }
.sketch rect.right { fill: var(--goodfill); stroke: var(--good); }
.sketch .arrow { stroke: var(--edge); stroke-width: 1.5; }
.sketch .head { fill: var(--edge); }
</style>"""


@dataclass(frozen=True)
class Sketch:
    """A picture.

    Args:
        name: the chapter's.
        without: the texts of the cards in the upper row; the last one is wrong.
        kept: of the lower row; the last one is right.
    """

    name: str
    without: tuple[str, ...]
    kept: tuple[str, ...]

    @property
    def told(self) -> str:
        """The picture as a sentence, for people who do not see it."""
        without, kept = "; ".join(self.without), "; ".join(self.kept)
        return f"Without the rules: {without}. With them: {kept}."

    def svg(self) -> str:
        """Return the picture."""
        cards = max(len(self.without), len(self.kept))
        width = _LEFT * 2 + cards * _CARD + (cards - 1) * _GAP
        upper, first = _row("without the rules", self.without, "wrong", _TOP)
        lower, second = _row("with them", self.kept, "right", first + 14)
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" class="sketch" role="img" '
                f'viewBox="0 0 {width} {second}" width="{width}" height="{second}">',
                f"<title>{escape(self.told)}</title>",
                STYLE,
                f'<rect width="{width}" height="{second}" fill="var(--paper)"/>',
                *upper,
                *lower,
                "</svg>\n",
            ]
        )


def _row(name: str, texts: tuple[str, ...], last: Kind, top: int) -> tuple[list[str], int]:
    """Return a row, and where the next may begin."""
    wrapped = [textwrap.wrap(text, _LETTERS) for text in texts]
    height = 18 + _LINE * max(map(len, wrapped))
    lines = [f'<text class="lane" x="{_LEFT}" y="{top + 10}">{name}</text>']
    top += 20
    for number, card in enumerate(wrapped):
        x = _LEFT + number * (_CARD + _GAP)
        kind = last if number == len(wrapped) - 1 else "plain"
        lines.append(
            f'<rect class="card {kind}" x="{x}" y="{top}" width="{_CARD}" '
            f'height="{height}" rx="7"/>'
        )
        for row, text in enumerate(card):
            y = top + 22 + row * _LINE
            lines.append(f'<text x="{x + 12}" y="{y}">{escape(text)}</text>')
        if number:
            end, y = x - 3, top + height // 2
            lines.append(
                f'<path class="arrow" d="M{x - _GAP + 3} {y} H{end - 6}"/>'
                f'<path class="head" d="M{end} {y} l-8 -4.5 v9 Z"/>'
            )
    return lines, top + height + 8


SKETCHES = (
    Sketch(
        "framing",
        (
            "TCP brings 'ann' and half of 'bob'",
            "the next read brings the rest",
            "two messages: 'annb' and 'ob'",
        ),
        (
            "TCP brings 3 ann 3 b",
            "the next read brings ob",
            "two messages: 'ann' and 'bob', however TCP divided them",
        ),
    ),
    Sketch(
        "decode-compute",
        (
            "a step returns the number 0",
            "the engine tests: if result",
            "0 is taken for nothing, and is lost",
        ),
        (
            "a step returns the number 0",
            "the engine tests: is it None?",
            "0 goes on; only None stops a message",
        ),
    ),
    Sketch(
        "routing",
        (
            "two messages for customer 1",
            "one has the key 1, the other the key 1.0",
            "two totals for one customer, on some engines",
        ),
        (
            "two messages for customer 1",
            "1.0 is not a key: that message is a dead letter",
            "one key, one entity, on every engine",
        ),
    ),
    Sketch(
        "state",
        (
            "the total is 5",
            "a call adds 1, and then raises",
            "the total is 6: half of a call was kept",
        ),
        (
            "the total is 5",
            "a call adds 1, and then raises",
            "the total is 5, and the message is a dead letter",
        ),
    ),
    Sketch(
        "order",
        (
            "a pays 10 in, then takes 10 out",
            "two workers handle one message each",
            "on some days the second is refused",
        ),
        (
            "a pays 10 in, then takes 10 out",
            "messages of one key meet their entity in order",
            "the same result on every day and every engine",
        ),
    ),
    Sketch(
        "sinks",
        (
            "message 2 of 3 cannot be decoded",
            "the exception ends the run",
            "message 3 is never processed",
        ),
        (
            "message 2 of 3 cannot be decoded",
            "it is a dead letter, with its payload",
            "messages 1 and 3 come out, and nothing is lost",
        ),
    ),
    Sketch(
        "stopping",
        (
            "100 messages are taken in",
            "the process is told to stop",
            "it stops at once: 40 results are never sent",
        ),
        (
            "100 messages are taken in",
            "the process is told to stop",
            "it takes no more, and sends all 100 results first",
        ),
    ),
    Sketch(
        "building",
        (
            "a state computation is given to to()",
            "the application starts",
            "it fails when the first message comes",
        ),
        (
            "a state computation is given to to()",
            "build() refuses it",
            "an error says which line to write instead",
        ),
    ),
    Sketch(
        "isolation",
        (
            "a step keeps the list that came",
            "it also sends this list on",
            "a later step changes it, and the state changes too",
        ),
        (
            "a step keeps the list that came",
            "the next step gets its own copy",
            "nobody changes what another one keeps",
        ),
    ),
    Sketch(
        "recovery",
        (
            "the count is 5, and 5 results are sent",
            "the machine crashes and starts again",
            "the count begins at 0",
        ),
        (
            "the count is 5, and 5 results are sent",
            "the machine crashes and starts again",
            "the count is 5; the last results may come twice, none is missing",
        ),
    ),
    Sketch(
        "graphs",
        (
            "one pipeline goes to two places",
            "each place gets a source of its own",
            "two listeners, and a message reaches only one of them",
        ),
        (
            "one pipeline goes to two places",
            "it is used twice, and branches",
            "one listener; each branch gets every message, in order",
        ),
    ),
    Sketch(
        "keys",
        (
            "an entity for each visitor",
            "most visitors never come back",
            "after a year the memory is full",
        ),
        (
            "an entity for each visitor, with expire_after=1 day",
            "a visitor stays away for a day",
            "the entity is gone, on every engine at the same message",
        ),
    ),
    Sketch(
        "time",
        (
            "a window of 10 seconds",
            "the engine looks at its clock when it happens to run",
            "a repeated run gives other numbers",
        ),
        (
            "a window of 10 seconds",
            "time comes with the messages, and is logged",
            "a repeated run gives the same bytes",
        ),
    ),
    Sketch(
        "windows",
        (
            "a message of 9:59 comes at 10:01",
            "the count of 9:59 was sent already",
            "it is counted twice, or nowhere",
        ),
        (
            "a message of 9:59 comes at 10:01",
            "its window waits for a delay that you choose",
            "it is counted once; a message that is too late is reported",
        ),
    ),
)
