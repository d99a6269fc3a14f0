"""Calls of an aggregation, and the windows that fire (window-4).

Accumulators are frozen between calls, in both modes, so nothing that user code does to one shows
elsewhere (window-5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wallaroo.aggregations import AggregationRecord, WindowBounds
from wallaroo.keys import decode_key
from wallaroo_spark.worker.portable import Copies


class Firing(NamedTuple):
    """A window that fires, or is open.

    Args:
        key: its encoded key.
        start, end: its bounds, in nanoseconds since 1970.
        time: the event time of the message that it gives.
        parts: frozen accumulators, one or more, to be combined in this order.
        own: it was made for one late message (window-6).
    """

    key: bytes
    start: int
    end: int
    time: int
    parts: Sequence[Any]
    own: bool = False


class Aggregating:
    """An aggregation as a window step calls it; exceptions of user code are not caught.

    Args:
        aggregation: the aggregation.
        copies: how accumulators are copied.
        reported: wraps each call.
    """

    def __init__(
        self,
        aggregation: AggregationRecord,
        copies: Copies,
        reported: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda call: call,
    ) -> None:
        self._copies = copies
        self._atoms = copies.atoms
        self._wants_window = aggregation.wants_window
        self._initial = reported(aggregation.initial_accumulator)
        self._update = reported(aggregation.call)
        self._combine = None if aggregation.combine is None else reported(aggregation.combine)
        self._output = reported(aggregation.output)

    def begun(self, message: Any) -> Any:
        """Return the frozen accumulator of a first message."""
        return self._updated(message, self._initial())

    def updated(self, message: Any, part: Any) -> Any:
        """Return a frozen accumulator after one more message."""
        return self._updated(message, part if type(part) is not tuple else self._copies.thaw(part))

    def combined(self, parts: Sequence[Any]) -> Any:
        """Return frozen accumulators combined in their order, as an object of the caller's own."""
        thaw = self._copies.thaw
        whole = thaw(parts[0])
        for part in parts[1:]:
            assert self._combine is not None  # required where there may be several parts
            result = self._combine(whole, thaw(part))
            whole = whole if result is None else result
        return whole

    def frozen(self, accumulator: Any) -> Any:
        """Return an accumulator frozen.

        Raises:
            UnportableError: it does not survive a round trip.
        """
        return self._copies.freeze_checked(accumulator)[0]

    def output(self, firing: Firing) -> Any:
        """Return what a window gives; `None`: nothing."""
        whole, key = self.combined(firing.parts), decode_key(firing.key)
        if self._wants_window:
            return self._output(key, whole, WindowBounds(firing.start, firing.end))
        return self._output(key, whole)

    def _updated(self, message: Any, accumulator: Any) -> Any:
        result = self._update(message, accumulator)
        if result is None:
            result = accumulator
        return result if type(result) in self._atoms else self.frozen(result)
