"""A thread that does one job after the other: waiting for the disk happens there."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Post: TypeAlias = Callable[..., None]
"""Calls a function in the event loop's thread; may be used in any thread."""


class JobThread:
    """Does jobs in its own thread, in order, and reports the results in the loop's thread.

    Args:
        name: the thread's name.
        post: calls a function in the loop's thread.
    """

    def __init__(self, name: str, post: Post) -> None:
        self._post = post
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        """Do a job; then call `done` with its result, or with what it raised."""

        def do() -> None:
            result: T | Exception
            try:
                result = job()
            except Exception as error:  # noqa: BLE001 - whoever asked for it decides
                result = error
            self._post(done, result)

        self._jobs.put(do)

    def close(self) -> None:
        """Stop after the job that is being done, and wait for its end."""
        while True:
            try:
                self._jobs.get_nowait()
            except queue.Empty:
                break
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
