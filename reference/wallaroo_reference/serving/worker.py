"""A thread that does one job after the other: what waits for the disk waits there."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Post: TypeAlias = Callable[..., None]
"""Has a function called with its arguments in the event loop's thread, from any thread."""


class Worker:
    """Does jobs in a thread of its own, in order, and says in the loop's thread what came of them.

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
        """Have a job done; then `done` is called with its result, or with what it raised."""

        def do() -> None:
            result: T | Exception
            try:
                result = job()
            except Exception as error:  # noqa: BLE001 - whoever asked for it decides
                result = error
            self._post(done, result)

        self._jobs.put(do)

    def close(self) -> None:
        """Do no further job, and wait for the end of the one that is being done."""
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
