"""Ctrl-C and SIGTERM, which may come at any moment, except inside an operation that holds them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """How the process handles SIGINT and SIGTERM."""

    def __init__(self) -> None:
        self._holding = False
        self._came = False

    def install(self) -> None:
        """Make both raise KeyboardInterrupt, at once or when `held` ends."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Delay interrupts: the demo must record each process that it starts, to end it later."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
        if self._came:
            raise KeyboardInterrupt

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        self._came = True
        if not self._holding:
            raise KeyboardInterrupt


interrupts = Interrupts()
"""The process's handler: a signal has only one."""
