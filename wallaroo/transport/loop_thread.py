"""An asyncio event loop in a thread of its own, so that the caller's thread stays free."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

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
