"""Calls of user code: how they are made, what they return, and what happens when they fail.

All nodes of one flow share a `Calls`. It has two modes: `isolated` gives every call its own copies;
`trusting` shares objects, and freezes only what may leave this process.

A flow makes its calls in order (`wire.outbox.Order`). So if the run ends at a call, that is the
flow's last call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

from wallaroo.judging import DeadLetterError, raised_by_user_code
from wallaroo.keys import SINGLE_KEY, encode_key
from wallaroo.trace import Reason
from wallaroo_spark.wire.lineages import Lineage, Order, order_of
from wallaroo_spark.wire.outbox import End, Letter, Outbox, Times
from wallaroo_spark.worker.call_reports import CallFollower, CallReporter
from wallaroo_spark.worker.captured_output import Printer
from wallaroo_spark.worker.program import Place, Program

Made = tuple[Any, Any]
"""A new message: a value for user code, and its frozen form."""

SINGLE = encode_key(SINGLE_KEY)
"""The encoded key of messages that have no other key."""


class RunEnded(Exception):  # noqa: N818 - no error: user code, or a dead letter, ended the run
    """This flow makes no more calls."""


class Calls:
    """How the nodes of one flow call user code; see the module's docstring.

    Args:
        program: the application.
        isolated: the mode.
        stop_on_error: a dead letter ends the run (dead-4).
        limit: calls after this one in order are not made.
        topics: see `wire.job.CaseSpec`.
        printer: gets the name of the running step, to mark what the step prints.
        reporter: gets each call, while the driver looks for the call that kills workers, or follows
            a record.

    Attributes:
        outbox: what the flow sends.
        key: the encoded key of the message that is processed (key-1).
        times: that message's times; `None` in applications where time decides nothing.
        lineage: the lineage of the call that is reported.
        record: what a Kafka source gave: a record, or its value.
    """

    def __init__(
        self,
        program: Program,
        *,
        isolated: bool,
        stop_on_error: bool,
        limit: Order | None,
        topics: Mapping[int, int],
        printer: Printer,
        reporter: CallReporter | CallFollower | None = None,
    ) -> None:
        self.program = program
        self.isolated = isolated
        self.topics = topics
        self.printer = printer
        self.outbox = Outbox()
        self.key = SINGLE
        self.times: Times | None = None
        self._stop_on_error = stop_on_error
        self._limit = limit
        self._reporter = reporter
        self.lineage: Lineage = ()
        self.record: Any = None

    @property
    def again(self) -> Callable[[Any, Any], Any]:
        """Return a function that gives the next call the message: a copy, or the same object."""
        thaw = self.program.copies.thaw
        return (lambda _, frozen: thaw(frozen)) if self.isolated else (lambda value, _: value)

    def maker(self, node: int) -> Callable[[Any], Made]:
        """Return a function that makes a message from a call's result, or raises `unportable`."""
        freeze_checked = self.program.copies.freeze_checked
        if self.isolated:

            def made(value: Any) -> Made:
                frozen, copy = freeze_checked(value)
                return copy, frozen

        elif self.program.feeds_state[node]:

            def made(value: Any) -> Made:
                return value, freeze_checked(value)[0]

        else:

            def made(value: Any) -> Made:
                return value, None

        return made

    def within_limit(self, at: Order) -> bool:
        """Whether a call may be made."""
        return self._limit is None or at <= self._limit

    def bounded(self, index: int, take: Callable[..., None]) -> Callable[..., None]:
        """Return `take`; if there is a limit, a function that calls it only up to the limit."""
        limit, place = self._limit, self.program.places[index]
        if limit is None and self._reporter is None:
            return take

        def bounded(lineage: Lineage, *message: Any) -> None:
            if limit is None or order_of(lineage, index, place.sink) <= limit:
                self.lineage = lineage
                take(lineage, *message)

        return bounded

    def reported(self, call: Callable[..., Any], place: Place) -> Callable[..., Any]:
        """Return `call`; if there is a reporter, a function that also reports the call."""
        reporter = self._reporter
        if reporter is None:
            return call

        def reported(*given: Any) -> Any:
            reporter.begins(order_of(self.lineage, place.node, place.sink))
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
        """Turn an exception of a call into a dead letter, or end the run (dead-3, dead-4).

        Raises:
            RunEnded: the run ends here.
        """
        at = order_of(lineage, place.node, place.sink)
        if not self.within_limit(at):  # a decoder is still called, for the event time
            return
        # Not `isinstance`: an exception may say of itself that it is of another class.
        if issubclass(type(error), DeadLetterError):
            dead = cast(DeadLetterError, error)
        else:
            dead = raised_by_user_code(error, reason, "wallaroo_spark")
        if dead.reason is None:
            self._ends(End(at, "exit", dead.error_type))
        given = self.times is not None and self.times.given
        letter = Letter(
            *(lineage, place.node, place.sink, given, key),
            *(dead.reason.value, dead.error_type, dead.error, dead.failure),
        )
        self.outbox.finished.letters.append(letter)
        if self._stop_on_error:
            self._ends(End(at, "on-error"))

    def _ends(self, end: End) -> NoReturn:
        self.outbox.finished.ends.append(end)
        raise RunEnded
