"""What an engine promises about an example."""

from __future__ import annotations

from wallaroo.engine import Isolation, load_engine


class NotPromisedError(Exception):
    """An engine promises nothing about an example; the text says why."""


def isolation_of(engine: str) -> Isolation:
    """Return the mode in which examples run on an engine: `isolated` where it has that."""
    return "isolated" if "isolated" in load_engine(engine).capabilities().isolation else "trusting"
