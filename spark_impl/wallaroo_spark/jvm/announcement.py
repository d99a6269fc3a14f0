"""Tells a person who waits for a bounded run, in a notebook or at a prompt, that Spark starts."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_MOMENT = 1.0  # seconds


@contextmanager
def announced_start() -> Iterator[None]:
    """Write one line to stderr if the block takes more than a moment; nothing in a test run."""
    if "PYTEST_VERSION" in os.environ:
        yield
        return
    timer = threading.Timer(_MOMENT, _say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say() -> None:
    print(
        "Spark is starting, once for this process; it takes some seconds",
        file=sys.stderr,
        flush=True,
    )
