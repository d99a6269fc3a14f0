"""What the window steps share: calls of the aggregation, late messages (window-4, window-6).

A step keeps its windows by key (`ranges`, `sessions`, `counts`). An accumulator is frozen between
calls, as states are, so nothing that user code does to one shows elsewhere. Which windows are due
is found through a calendar, so a turn in which nothing is due looks at one number, however many
windows are open.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from wallaroo.aggregations import WindowBounds
from wallaroo.judging import DeadLetterError
from wallaroo.keys import Key, encode_key
from wallaroo.operations import Windowed
from wallaroo.overriding import override
from wallaroo.trace import Reason
from wallaroo.windows import LateDataPolicy, Windows
from wallaroo_reference.cells import WindowCells
from wallaroo_reference.isolated.copies import thaw
from wallaroo_reference.isolated.watermarks import NEVER, Watermark
from wallaroo_reference.timers import Timers
from wallaroo_reference.user_calls import call_user_code

Freeze = Callable[[Any], Any]

_NOTHING: Final = object()


@dataclass(frozen=True, slots=True)
class Firing:
    """A window that fires: its accumulators in order of time, frozen, still to be combined.

    Args:
        key: its key.
        start, end: its bounds, in nanoseconds since 1970.
        time: the event time of what it gives.
        parts: one accumulator or more.
        own: it was made for one message by the policy `fire-per-message`.
    """

    key: Key
    start: int
    end: int
    time: int
    parts: tuple[Any, ...]
    own: bool = False


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message that comes to a window step.

    Args:
        message: frozen.
        key: its key, valid.
        identity: the key's identity, by which windows are kept.
        time: its event time.
        now: the arrival time of the record.
    """

    message: Any
    key: Key
    identity: Hashable
    time: int
    now: int


class LateError(DeadLetterError):
    """A late message whose policy is `dead-letter` (window-6)."""


@dataclass(slots=True)
class Held:
    """What a step holds of one key."""

    key: Key


Kind = TypeVar("Kind", bound=Windows)
OfKey = TypeVar("OfKey", bound=Held)


class WindowStep(WindowCells, Generic[Kind, OfKey]):
    """The windows of one step, by the identities of their keys.

    Args:
        operation: the step's operation.
        windows: its windows.
        freeze: freezes accumulators.
        begun: returns what `initial_accumulator` gave as an object of a window's own.

    Attributes:
        watermark: the step's watermark as of its last turn.
        dropped: late messages that the policy `drop` has dropped.
        partly_late: messages for which some windows had fired and others not.
        changed: see `wallaroo_reference.cells.Cells`.
    """

    def __init__(self, operation: Windowed, windows: Kind, freeze: Freeze, begun: Freeze) -> None:
        self.operation = operation
        self.watermark: Watermark = NEVER
        self.dropped = 0
        self.partly_late = 0
        self._aggregation = operation.aggregation
        self._freeze = freeze
        self._begun = begun
        self._windows = windows
        self._keys: dict[Hashable, OfKey] = {}
        self._timers = Timers(self._waits_for)
        super().__init__(operation)

    # -- what the interpreter calls ---------------------------------------------------------------

    @abstractmethod
    def take(self, arrival: Arrival) -> Firing | None:
        """Put a message into its windows; return the window that this fires, if it does.

        Raises:
            DeadLetterError: `update` failed, so the message is in no window (window-9), or it is
                late.
        """

    @abstractmethod
    def due(self, now: int) -> Iterator[Firing]:
        """Yield the windows that are due, in order, each gone when it is yielded (time-4)."""

    @abstractmethod
    def next_due(self) -> int | None:
        """Return the least watermark at which a window fires; `None`: none will."""

    def next_timeout(self) -> int | None:
        """Return the least arrival time at which a window fires by its timeout; `None`: none."""
        return None

    @abstractmethod
    def open(self) -> Iterator[Firing]:
        """Yield the open windows as they would fire (window-11)."""

    def output(self, firing: Firing) -> Any:
        """Return what a window gives, frozen; `None`: nothing (window-4).

        Raises:
            DeadLetterError: `combine` or `output` failed.
        """
        accumulator = self.combined(firing.parts)
        arguments: tuple[Any, ...] = (firing.key, accumulator)
        if self._aggregation.wants_window:
            arguments = (*arguments, WindowBounds(firing.start, firing.end))
        output = call_user_code(self._aggregation.output, Reason.RAISED, *arguments)
        return None if output is None else self._freeze(output)

    def combined(self, parts: tuple[Any, ...]) -> Any:
        """Return accumulators combined in their order, as an object of the caller's own."""
        combine = self._aggregation.combine
        accumulator = thaw(parts[0])
        for part in parts[1:]:
            assert combine is not None  # only windows whose aggregation has one have several parts
            result = call_user_code(combine, Reason.RAISED, accumulator, thaw(part))
            accumulator = accumulator if result is None else result
        return accumulator

    # -- for checkpoints: see `wallaroo_reference.cells.Cells` ------------------------------------

    def keep(self, loads: Callable[[bytes], Any]) -> None:
        """Begin to note what changes; `loads` returns the accumulator of some bytes."""
        self._keeps, self._loads = True, loads

    @override
    def count(self) -> int:
        return len(self._keys)

    @override
    def identities(self) -> list[Any]:
        return list(self._keys)

    @override
    def go_on(self) -> None:
        for identity in self._keys:
            self._timers.note(identity)

    def _part(self, data: bytes) -> Any:
        return self._freeze(self._loads(data))

    # -- what the kinds of windows share ----------------------------------------------------------

    @abstractmethod
    def _waits_for(self, identity: Hashable) -> int | None:
        """Return the time in the calendar at which something of a key is due; `None`: nothing."""

    def _encoded(self, identity: Hashable) -> bytes:
        return encode_key(self._keys[identity].key)

    def _updated(self, message: Any, accumulator: Any = _NOTHING) -> Any:
        """Return an accumulator after one more message, frozen; without one, of a new window."""
        aggregation = self._aggregation
        if accumulator is _NOTHING:
            thawed = self._begun(call_user_code(aggregation.initial_accumulator, Reason.RAISED))
        else:
            thawed = thaw(accumulator)
        result = call_user_code(aggregation.call, Reason.RAISED, thaw(message), thawed)
        return self._freeze(thawed if result is None else result)

    def _late(self, arrival: Arrival, policy: LateDataPolicy, last: int) -> Firing | None:
        """Do with a late message what the policy says (window-6).

        Args:
            arrival: the message.
            policy: the step's.
            last: the watermark at which the last of its windows fires.
        """
        if policy is LateDataPolicy.DROP:
            self.dropped += 1
            return None
        if policy is LateDataPolicy.FIRE_PER_MESSAGE:
            part = self._updated(arrival.message)
            time = arrival.time
            return Firing(arrival.key, time, time + 1, time, (part,), own=True)
        raise LateError(
            Reason.LATE,
            f"its event time is {arrival.time}, and the step's watermark has reached {last}: "
            "every window that it belongs to has fired",
        )
