"""Why a run ends before its input does."""

from __future__ import annotations

from collections.abc import Callable


class Ending:
    """Tells all parts of a run that it has failed; used in any thread.

    Attributes:
        problem: what was wrong first; `None`: nothing.
    """

    def __init__(self) -> None:
        self.problem: str | None = None
        self._calls: list[Callable[[], None]] = []

    def when_failed(self, call: Callable[[], None]) -> None:
        """Call `call` when the run fails, at once if it has failed; it may be called twice."""
        self._calls.append(call)
        if self.problem is not None:
            call()

    def fail(self, problem: str) -> None:
        """End the run, and drop what is on its way."""
        self.problem = self.problem or problem
        for call in self._calls:
            call()
