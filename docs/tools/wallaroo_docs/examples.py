"""An example of the specification, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

BEGINNING = "every example of this chapter begins with"
RESULTS = (
    "outputs",
    "dead letters",
    "dead-letter lines",
    "entities",
    "open windows",
    "late",
    "findings",
    "ended",
)
"""What may follow an ``input``."""


@dataclass(frozen=True)
class Block:
    """A titled code block.

    Args:
        title: its kind.
        text: its content.
        line: the line in the document on which its content begins, from 1.
        span: where its content stands in the document's text.
    """

    title: str
    text: str
    line: int
    span: tuple[int, int]


@dataclass(frozen=True)
class SpecExample:
    """An example of a rule.

    Args:
        name: the rule's id, or the chapter's name where the section states none, and a number.
        rule: the rule's id, or `None`.
        path: the document.
        beginning: the chapter's beginning, to stand before the first block.
        blocks: its blocks, in order.
    """

    name: str
    rule: str | None
    path: Path
    beginning: str
    blocks: tuple[Block, ...]

    @property
    def kind(self) -> str:
        """``application``, ``session``, ``code`` or ``refused``."""
        titles = [block.title for block in self.blocks]
        return "session" if "session" in titles else titles[0]


def source_of(example: SpecExample) -> str:
    """Return the module of an example that has an application."""
    return f"{example.beginning}\n\n{example.blocks[0].text}"
