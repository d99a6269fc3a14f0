"""A window step in a flow: messages come, windows fire (window-3, window-6, window-9)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from wallaroo.aggregations import AggregationRecord, WindowBounds
from wallaroo.canonical import structure_or_kind
from wallaroo.copying import Copies, copies_by
from wallaroo.keys import decode_key
from wallaroo.overriding import override
from wallaroo.topology import Application
from wallaroo.trace import OpenWindow, Reason
from wallaroo.windowing.kinds import Accumulating, Firing, Incoming, kind_of, windowed
from wallaroo.windowing.watermarks import NEVER, Watermarks
from wallaroo_spark.wire.lineages import Fired, Lineage, Turn, order_of
from wallaroo_spark.wire.outbox import Times
from wallaroo_spark.worker.calls import Calls, RunEnded
from wallaroo_spark.worker.nodes import TakeMessage
from wallaroo_spark.worker.segments import Entities
from wallaroo_spark.worker.window_store import KEY, WindowStore, windows_in


class Aggregating(Accumulating):
    """An aggregation as a window step calls it; exceptions of user code are not caught.

    Accumulators are frozen between calls, in both modes, so nothing that user code does to one
    shows elsewhere (window-5).

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

    @override
    def begun(self, message: Any) -> Any:
        # It may be handed out again: each window has its own from the first moment (window-5).
        return self._updated(message, self._copies.copied(self._initial()))

    @override
    def updated(self, message: Any, part: Any) -> Any:
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

    @override
    def joined(self, parts: Sequence[Any]) -> Any:
        return self._copies.freeze_checked(self.combined(parts))[0]

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
        return result if type(result) in self._atoms else self._copies.freeze_checked(result)[0]


class WindowStep:
    """The windows of a step during a batch.

    Args:
        calls: how user code is called.
        index: the step's node.
        stored: where its windows are stored, and the prefix of their ids.
        follow: takes the messages that they give to the nodes behind.

    Attributes:
        watermark: the step's, as of its last turn.
    """

    def __init__(
        self, calls: Calls, index: int, stored: tuple[Entities, bytes], follow: TakeMessage
    ) -> None:
        program = calls.program
        operation = windowed(program.application, index)
        place = program.places[index]
        self.watermark = NEVER
        self._calls = calls
        self._place = place
        self._kind = kind_of(operation.windows)
        self._store = WindowStore(*stored, self._kind.width, self._kind.number)
        self._aggregating = Aggregating(
            operation.aggregation, program.copies, lambda call: calls.reported(call, place)
        )
        self._made = calls.maker(index)
        self._ways = program.application.ways[index]
        self._follow = follow

    def take(self, lineage: Lineage, key: bytes, value: Any, _: Any) -> None:
        """Put a message into its windows; if one fires, process its message at once."""
        calls, kind, times = self._calls, self._kind, self._calls.times
        assert times is not None  # time decides in this application
        calls.printer.step = self._place.name
        incoming = Incoming(key, value, times.time, times.arrived, self.watermark)
        before = self._store.get(key)
        try:
            windows, firing, late = kind.take(self._aggregating, before, incoming)
        except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
            calls.failed(self._place, lineage, Reason.RAISED, error, key)
            return
        if windows is not before:
            self._store.put(key, windows, None if windows is None else kind.due(windows))
        elif windows is not None:
            self._store.note_change(key)
        if late is not None:
            calls.outbox.finished.late[self._place.name, late] += 1
        if firing is not None:
            self._fire(firing, lineage)

    def moves(self, watermark: float, arrived: int) -> bool:
        """Move on to a watermark; return whether something may be due now."""
        if watermark > self.watermark:
            self.watermark = watermark
        return self._store.soonest <= (arrived if self._kind.by_arrival else self.watermark)

    def turn(self, turn: Turn, arrived: int) -> None:
        """Fire what is due, in order of end and encoded key (time-4).

        Raises:
            RunEnded: the run ends here.
        """
        kind, store = self._kind, self._store
        until = arrived if kind.by_arrival else self.watermark
        waiting: list[Fired] = []
        for key in store.due(until):
            self._wait(waiting, key, store.get(key), until)
        heapq.heapify(waiting)
        fired = self._calls.outbox.finished.fired.setdefault(turn, []) if waiting else []
        while waiting:
            lineage = (*turn, waiting[0])
            if not self._calls.within_limit(order_of(lineage, self._place.node)):
                raise RunEnded
            window = heapq.heappop(waiting)
            fired.append(window)
            _, key = window
            firing, rest = kind.fire(key, store.get(key))
            store.put(key, rest, None)
            if rest is not None:
                self._wait(waiting, key, rest, until)
            self._fire(firing, lineage)

    def next_due(self, watermarks: Watermarks) -> int | None:
        """Return the arrival time at which time alone lets a window fire; `None`: never.

        Args:
            watermarks: those of the sources, as of the last record.
        """
        due = self._store.next_due(self._kind.due)
        if due is None or self._kind.by_arrival:
            return due
        return watermarks.arrival_of(self._ways, due)

    @property
    def open(self) -> int:
        """Number of open windows, as of `flush`."""
        return self._store.open

    @property
    def entries(self) -> int:
        """Number of values that are stored for the step, as of `flush`."""
        return self._store.entries

    def flush(self) -> None:
        """Write the changes to the entities."""
        self._store.flush()

    def _wait(self, waiting: list[Fired], key: bytes, windows: Any, until: float) -> None:
        """Let a key wait for its next window's turn: in this turn if it is due, or a later one."""
        due = self._kind.due(windows)
        if due is not None and due <= until:
            heapq.heappush(waiting, (self._kind.end(windows), key))
        else:
            self._store.put(key, windows, due)

    def _fire(self, firing: Firing, lineage: Lineage) -> None:
        """Process what a window gives; the window itself is gone already (window-4, window-9)."""
        calls = self._calls
        before = calls.key, calls.times
        assert calls.times is not None
        given = not firing.own or calls.times.given
        calls.key, calls.times = firing.key, Times(calls.times.arrived, firing.time, given)
        calls.printer.step = self._place.name
        calls.lineage = lineage
        try:
            message = frozen = self._aggregating.output(firing)
            if message is not None and type(message) not in calls.program.copies.atoms:
                message, frozen = self._made(message)
        except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
            calls.failed(self._place, lineage, Reason.RAISED, error, firing.key)
        else:
            if message is not None:
                calls.times = calls.times._replace(given=True)
                self._follow(lineage, message, frozen)
        calls.key, calls.times = before


def open_windows(
    application: Application, index: int, stored_as: bytes, blob: bytes
) -> Iterator[OpenWindow]:
    """Yield the open windows of a key, as a trace lists them (window-11).

    Args:
        application: the application; its `combine` is called.
        index: the window step's node.
        stored_as: the id of one of the step's stored values, without the step's prefix.
        blob: the value; only those of keys hold windows.
    """
    windows = windows_in(stored_as, blob)
    if windows is None:
        return
    operation = windowed(application, index)
    aggregating = Aggregating(operation.aggregation, copies_by(application.codec))
    for window in kind_of(operation.windows).open(stored_as[len(KEY) :], windows):
        try:
            value = aggregating.combined(window.parts)
            shown = structure_or_kind(value)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - user code
            value, shown = None, {"combine raised": type(error).__name__}
        key = decode_key(window.key)
        yield OpenWindow(operation.name, key, window.start, window.end, shown, value)
