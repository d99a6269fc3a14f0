"""Pictures of the examples' topologies, as the documents show them."""

from __future__ import annotations

from pathlib import Path

from wallaroo.drawing.svg import svg
from wallaroo.loading import load_application

ROOT = Path(__file__).parents[3]
PICTURED = ("word_count", "market_spread")


def pictures() -> list[tuple[Path, str]]:
    """Return each picture's file, and what it should hold."""
    return [
        (
            ROOT / "docs" / "assets" / f"{name}.svg",
            svg(load_application(ROOT / "examples" / f"{name}.py", placeholders=True)),
        )
        for name in PICTURED
    ]
