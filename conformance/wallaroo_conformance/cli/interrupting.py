"""Ctrl-C during a check: it ends between two jobs, with a report; pressed again, at once."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType


@contextmanager
def stopped_by_ctrl_c() -> Iterator[Event]:
    """Yield an event that Ctrl-C sets, for the time of the block.

    Python would raise `KeyboardInterrupt` in the code that is running, which often is user code: an
    engine would think that the application ended itself. So the first Ctrl-C only asks to stop, and
    a second one is raised.
    """
    stop = Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread gets signals
        return
    before = signal.getsignal(signal.SIGINT)

    def ask(_number: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print(
            "stopping as soon as the cases that are running are done; Ctrl-C again: at once",
            file=sys.stderr,
            flush=True,
        )

    if before == signal.default_int_handler:  # else it is ignored, or somebody else's
        signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
