"""The pictures in the documents: topologies, windows, and the purpose of the rules."""

from __future__ import annotations

from pathlib import Path

from wallaroo.drawing.svg import svg
from wallaroo.loading import load_application
from wallaroo.topology import Application
from wallaroo_docs import lineages
from wallaroo_docs.in_page import application_of
from wallaroo_docs.page_examples import page_examples
from wallaroo_docs.sketches import SKETCHES
from wallaroo_docs.timelines import TIMELINES

ROOT = Path(__file__).parents[3]
PICTURED = ("word_count", "market_spread")


def pictures() -> list[tuple[Path, str]]:
    """Return each picture's file, and what it should hold."""
    topologies = [(ROOT / "docs" / "assets" / "votes.svg", svg(_of_page("streams.md")))]
    topologies += [
        (
            ROOT / "docs" / "assets" / f"{name}.svg",
            svg(load_application(ROOT / "examples" / f"{name}.py", placeholders=True)),
        )
        for name in PICTURED
    ]
    lines = [(ROOT / "docs" / "assets" / f"{one.name}.svg", one.svg()) for one in TIMELINES]
    sketches = [(ROOT / "docs" / "assets" / f"rules-{one.name}.svg", one.svg()) for one in SKETCHES]
    lineage = [(ROOT / "docs" / "assets" / "lineage.svg", lineages.svg())]
    return topologies + lines + sketches + lineage


def _of_page(name: str) -> Application:
    """Return the application that a page writes to a file."""
    [found] = [one for one in page_examples(ROOT / "docs" / name) if one.kind == "lines"]
    return application_of(found.runs[0].source)
