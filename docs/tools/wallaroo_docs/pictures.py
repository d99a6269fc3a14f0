"""The pictures that the documents show: topologies, windows, and what the rules are good for."""

from __future__ import annotations

from pathlib import Path

from wallaroo.drawing.svg import svg
from wallaroo.loading import load_application
from wallaroo_docs.sketches import SKETCHES
from wallaroo_docs.timelines import TIMELINES

ROOT = Path(__file__).parents[3]
PICTURED = ("word_count", "market_spread")


def pictures() -> list[tuple[Path, str]]:
    """Return each picture's file, and what it should hold."""
    topologies = [
        (
            ROOT / "docs" / "assets" / f"{name}.svg",
            svg(load_application(ROOT / "examples" / f"{name}.py", placeholders=True)),
        )
        for name in PICTURED
    ]
    lines = [(ROOT / "docs" / "assets" / f"{one.name}.svg", one.svg()) for one in TIMELINES]
    sketches = [(ROOT / "docs" / "assets" / f"rules-{one.name}.svg", one.svg()) for one in SKETCHES]
    return topologies + lines + sketches
