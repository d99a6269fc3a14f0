"""Records on their way into an input log: what a full disk does not take is tried again.

While something waits for the disk, or the log has its largest size, nothing is read, and TCP makes
the senders wait. What waits is at most one read of each connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from wallaroo.transport.edges import Edges
from wallaroo.transport.input_log import InputLogError, InputLogFullError

Some = TypeVar("Some")
"""Records that arrived together."""

_RETRY = 0.5  # seconds between looks whether a disk takes something again

_log = logging.getLogger("wallaroo.transport")


class Appender(Generic[Some]):
    """Appends to an input log in order. Call its methods in the loop's thread.

    Args:
        append: appends records, and does what follows from that.
        edges: paused while nothing more can be appended.
        full: whether the log has its largest size.
        failed: called with an error's text if the log takes nothing any more, ever.
        all_taken: called once all that waited for the disk is in the log.

    Attributes:
        waiting: what waits for the disk.
        over: nothing more is taken.
    """

    def __init__(
        self,
        append: Callable[[Some], None],
        edges: Edges,
        *,
        full: Callable[[], bool],
        failed: Callable[[str], None],
        all_taken: Callable[[], None] = lambda: None,
    ) -> None:
        self.waiting: deque[Some] = deque()
        self.over = False
        self._append = append
        self._edges = edges
        self._full = full
        self._failed = failed
        self._all_taken = all_taken

    def take(self, some: Some) -> None:
        """Append records, once those before them are in the log."""
        if self.over:
            return
        if self.waiting:
            self.waiting.append(some)
        elif not self._taken(some):
            self.waiting.append(some)
            self._edges.pause("disk")
            self._retry_later()

    def room_made(self) -> None:
        """Read again, if the log was full and is not any more."""
        self._retry()
        if not self._full():
            self._edges.resume("log")

    def abandon(self) -> None:
        """Take nothing more."""
        self.over = True
        self.waiting.clear()

    def _taken(self, some: Some) -> bool:
        """Append records; `False`: the disk does not take them now."""
        try:
            self._append(some)
        except InputLogFullError as error:
            if not self.waiting:
                _log.error("%s; nothing more is read until the disk takes them", error)
            return False
        except InputLogError as error:
            self.abandon()  # what comes later must not be logged without this
            self._failed(str(error))
            return True
        if self._full():
            self._edges.pause("log")
        return True

    def _retry(self) -> None:
        """Append what waits, as far as the disk takes it."""
        if not self.waiting:
            return
        while self.waiting and self._taken(self.waiting[0]):
            if self.over:
                return
            self.waiting.popleft()
        if not self.waiting:
            _log.warning("the disk takes the input log again; reading goes on")
            self._all_taken()
            self._edges.resume("disk")

    def _retry_later(self) -> None:
        def retry() -> None:
            self._retry()
            if self.waiting:
                self._retry_later()

        asyncio.get_running_loop().call_later(_RETRY, retry)
