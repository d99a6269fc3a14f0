"""Threads of a run, and what a process forked by user code does first.

A forked child inherits the engine's sockets. While it keeps them open, senders do not notice the
engine's death, and no other process can listen on the addresses. So the child closes them, and it
does not act as a second engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import sys
import threading
import weakref
from collections.abc import Callable, Coroutine
from types import MethodType
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Post: TypeAlias = Callable[..., None]
"""Calls a function in the event loop's thread; may be used in any thread."""

_methods: set[weakref.WeakMethod[Any]] = set()
_forked_at = "somewhere"

_log = logging.getLogger("wallaroo.transport")


class LoopThread:
    """Runs the loop of a `Listener` and `TCPSink`s, and lets other threads call them there.

    Args:
        name: the thread's name.
    """

    def __init__(self, name: str) -> None:
        self._loop: asyncio.AbstractEventLoop
        # A daemon: the process must be able to end while user code never returns.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_logged)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, R], timeout: float | None = None) -> R:
        """Run `coroutine` in the loop and return its result, or raise what it raises.

        Raises:
            TimeoutError: it took longer than `timeout` seconds; it has been cancelled.
            RuntimeError: the loop has been closed.
        """
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()
            raise
        try:
            return future.result(timeout)
        except TimeoutError:
            future.cancel()
            raise

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call `function` in the loop's thread and return its result, or raise what it raises."""

        async def call() -> R:
            return function(*args, **kwargs)

        return self.run(call())

    def post(self, function: Callable[..., object], *args: object) -> None:
        """Call `function(*args)` in the loop's thread soon, unless the loop has stopped."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *args)

    def stop(self, timeout: float | None = None) -> bool:
        """Stop the loop; return whether its thread ended within `timeout` seconds."""
        self.post(self._loop.stop)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            if tasks:
                gathered = asyncio.gather(*tasks, return_exceptions=True)
                self._loop.run_until_complete(gathered)
            # The connection that was closed last is released in the loop's next iteration.
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()


def _logged(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    _log.error("%s", context["message"], exc_info=error)


class JobThread:
    """Does jobs in its own thread, in order, and reports the results in the loop's thread.

    Waiting for the disk happens there.

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


# -- forks -----------------------------------------------------------------------------------------


def in_child(method: Callable[[], object]) -> None:
    """Call a bound method in each forked child, as long as its object exists."""
    bound = cast(MethodType, method)
    _methods.add(weakref.WeakMethod(bound, _methods.discard))


def forked_at() -> str:
    """Return, in a forked child, the function that forked it: ``NAME (FILE, line N)``."""
    return _forked_at


def _after_fork() -> None:
    global _forked_at  # noqa: PLW0603 - of a process there is one
    code = (frame := sys._getframe(1)).f_code  # the only way to find the function that forked
    _forked_at = f"{code.co_name} ({code.co_filename}, line {frame.f_lineno})"
    for reference in list(_methods):
        if (method := reference()) is not None:
            method()


os.register_at_fork(after_in_child=_after_fork)
