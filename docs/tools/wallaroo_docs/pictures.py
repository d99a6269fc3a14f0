"""The pictures of topologies in the documents. All other pictures are drawn by hand."""

from __future__ import annotations

from pathlib import Path

from wallaroo.drawing.svg import svg
from wallaroo.loading import load_application
from wallaroo.topology import Application
from wallaroo_docs.in_page import application_of
from wallaroo_docs.page_examples import page_examples

ROOT = Path(__file__).parents[3]
PICTURED = ("word_count", "market_spread")


def pictures() -> list[tuple[Path, str]]:
    """Return each picture's file, and what it should hold."""
    drawn = {"votes": _of_page("streams.md")} | {
        name: load_application(ROOT / "examples" / f"{name}.py", placeholders=True)
        for name in PICTURED
    }
    return [(ROOT / "docs" / "assets" / f"{name}.svg", svg(one)) for name, one in drawn.items()]


def _of_page(name: str) -> Application:
    """Return the application that a page writes to a file."""
    [found] = [one for one in page_examples(ROOT / "docs" / name) if one.kind == "lines"]
    return application_of(found.runs[0].source)
