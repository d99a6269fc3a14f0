"""Calls of user code: how they are made, what they give, and what happens when they fail.

A `Calls` is what all nodes of one flow have in common. Two modes: `isolated` gives every call
copies of its own. `trusting` shares objects and freezes only what may leave this process.

Calls are made in their order (`wire.outbox.Order`). So a call at which the run ends is the last one
that a flow makes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from wallaroo.trace import Lineage, Reason, describe_error
from wallaroo_spark.wire.outbox import End, Letter, Order, Outbox
from wallaroo_spark.worker.call_reporter import CallReporter
from wallaroo_spark.worker.captured_output import Printer
from wallaroo_spark.worker.portable import freeze, freeze_checked, thaw
from wallaroo_spark.worker.program import Place, Program
from wallaroo_spark.worker.results import DeadLetterError

Made = tuple[Any, Any]
"""A new message: a value for user code, and its frozen form."""


class RunEnded(Exception):  # noqa: N818 - no error: user code, or a dead letter, ended the run
    """This flow makes no more calls."""


class Calls:
    """See the module.

    Args:
        program: the application.
        isolated: the mode.
        stop_on_error: a dead letter is the end of the run (dead-4).
        limit: calls after this one in order are not made.
        printer: is told which step is at work, so that what it prints can be marked.
        reporter: is told of each call, while the driver looks for one that kills workers.

    Attributes:
        outbox: what came out.
    """

    def __init__(
        self,
        program: Program,
        *,
        isolated: bool,
        stop_on_error: bool,
        limit: Order | None,
        printer: Printer,
        reporter: CallReporter | None = None,
    ) -> None:
        self.program = program
        self.isolated = isolated
        self.printer = printer
        self.outbox = Outbox()
        self._stop_on_error = stop_on_error
        self._limit = limit
        self._reporter = reporter
        self._lineage: Lineage = ()  # of the call that is reported

    @property
    def again(self) -> Callable[[Any, Any], Any]:
        """Return what gives a second call the same message: a copy, or the one there is."""
        return (lambda _, frozen: thaw(frozen)) if self.isolated else (lambda value, _: value)

    def maker(self, node: int) -> Callable[[Any], Made]:
        """Return what makes a message of a value a call has just made, or raises `unportable`."""
        if self.isolated:

            def made(value: Any) -> Made:
                frozen, copy = freeze_checked(value)
                return copy, frozen

        elif self.program.feeds_state[node]:

            def made(value: Any) -> Made:
                return value, freeze(value)

        else:

            def made(value: Any) -> Made:
                return value, None

        return made

    def bounded(self, index: int, take: Callable[..., None]) -> Callable[..., None]:
        """Return `take` as it is, or what calls it only up to the limit, if there is one."""
        limit, place = self._limit, self.program.places[index]
        if limit is None and self._reporter is None:
            return take

        def bounded(lineage: Lineage, *message: Any) -> None:
            if limit is None or (lineage, place.position, place.sink) <= limit:
                self._lineage = lineage
                take(lineage, *message)

        return bounded

    def reported(self, call: Callable[..., Any], place: Place) -> Callable[..., Any]:
        """Return `call` as it is, or what reports it as well, if somebody listens."""
        reporter = self._reporter
        if reporter is None:
            return call

        def reported(*given: Any) -> Any:
            order = (self._lineage, place.position, place.sink)
            reporter.begins(order, place.pipeline, place.step)
            try:
                return call(*given)
            finally:
                reporter.ends()

        return reported

    def failed(
        self,
        place: Place,
        lineage: Lineage,
        reason: Reason,
        error: BaseException,
        key: bytes | None = None,
    ) -> None:
        """Make of what a call raised a dead letter, or the run's end (dead-3, dead-4).

        Raises:
            RunEnded: it is the run's end.
        """
        at = (lineage, place.position, place.sink)
        where = (place.pipeline, place.step)
        why: tuple[bytes | None, str, str | None, str]
        if issubclass(type(error), DeadLetterError):  # whatever an exception says of itself
            known = cast(DeadLetterError, error)
            why = (known.key or key, known.reason.value, None, str(known))
        elif isinstance(error, Exception):
            # User code may raise one exception again and again: its traceback is not to grow.
            BaseException.with_traceback(error, None)
            why = (key, reason.value, type(error).__name__, describe_error(error))
        else:
            self.outbox.finished.ends.append(End(at, "exit", *where, type(error).__name__))
            raise RunEnded
        self.outbox.finished.letters.append(Letter(*at, *where, *why))
        if self._stop_on_error:
            self.outbox.finished.ends.append(End(at, "on-error", *where, None))
            raise RunEnded
