"""What the kinds of windows of the compiled path share (window-4 to window-6).

Accumulators are not copied between calls, as states are not in `trusting` mode; but a pane that
belongs to further windows keeps its own, since `combine` and `output` may alter theirs.
"""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from wallaroo.aggregations import AggregationRecord
from wallaroo.judging import DeadLetterError
from wallaroo.keys import BadKeyError, Key, decode_key, encode_key, identity
from wallaroo.operations import Windowed
from wallaroo.trace import Reason
from wallaroo.user_code.failure import describe_error
from wallaroo.windows import LateDataPolicy
from wallaroo_reference.compiled.clocks import FOREVER, NEVER, Times
from wallaroo_reference.kept import Packer, WindowCells

Firing: TypeAlias = tuple[Key, int, int, int, Sequence[Any], int, bool]
"""A window that fires: its key, the event time of what it gives, its start and end, its
accumulators in order of time, how many of these, from the end, further windows need too, and
whether it was made for one late message (window-6)."""

_UNCHANGEABLE: Final = frozenset({int, float, str, bytes, bool, type(None)})
NOTHING: Final = object()
"""Stands for the accumulator of a new window."""


def own(value: Any) -> Any:
    """Return a copy of a value; the value itself if it cannot be changed.

    Raises:
        DeadLetterError: `unportable`: it does not survive a pickle round trip.
    """
    if type(value) in _UNCHANGEABLE:
        return value
    try:
        return pickle.loads(pickle.dumps(value, 5))  # noqa: S301 - our own bytes
    except Exception as error:  # noqa: BLE001 - the user's classes say how they are pickled
        text = f"{type(error).__name__}: {describe_error(error)}"
        raise DeadLetterError(Reason.UNPORTABLE, text) from None


def judge(key: Any) -> Hashable:
    """Return the identity of a key (route-2).

    Raises:
        DeadLetterError: `bad-key`: it is not a key.
    """
    try:
        return identity(key)
    except BadKeyError as error:
        raise DeadLetterError(Reason.BAD_KEY, str(error)) from None


def key_of(known: Any) -> Key:
    """Return the key of an identity: a tuple's is its encoding, any other's the key itself."""
    key: Key = decode_key(known[0]) if isinstance(known, tuple) else known
    return key


def encoded(known: Any) -> bytes:
    """Return the canonical encoding of an identity's key."""
    return known[0] if isinstance(known, tuple) else encode_key(known)


class KeptWindows(WindowCells):
    """The windows of one step.

    Args:
        operation: the step's operation.
        ways: its sources, with the delays on the way.
        times: the application's time.

    Attributes:
        watermark: the step's watermark when it was last needed.
        next_due: the least watermark at which a window fires.
        dropped: late messages that the policy `drop` has dropped.
        partly_late: messages for which some windows had fired and others not.
        changed: see `wallaroo_reference.kept.Cells`; generated code notes panes here too.
    """

    def __init__(self, operation: Windowed, ways: Mapping[str, int], times: Times) -> None:
        self.ways = ways
        self.watermark: float = NEVER
        self.next_due: float = FOREVER
        self.dropped = 0
        self.partly_late = 0
        self._times = times
        self.name = operation.name
        super().__init__()
        self.call(operation.aggregation)

    def call(self, aggregation: AggregationRecord) -> None:
        """Call this aggregation's functions from now on: the step's own, or the measured ones."""
        self._initial = aggregation.initial_accumulator
        self._update = aggregation.call
        self._combine = aggregation.combine

    @abstractmethod
    def take(self, message: Any, key: Any, time: int) -> Firing | None:
        """Put a message into its windows; return the window that this fires, if it does.

        What user code raises is not caught.

        Raises:
            DeadLetterError: the key is not valid, or the message is late.
        """

    @abstractmethod
    def due(self) -> Iterator[Firing]:
        """Yield the windows that are due, in order, each gone when it is yielded (time-4)."""

    def settle(self) -> None:
        """Make `next_due` exact: until then it may be too early."""

    @abstractmethod
    def open(self) -> Iterator[Firing]:
        """Yield the open windows as they would fire (window-11)."""

    @property
    @abstractmethod
    def held(self) -> int:
        """The number of accumulators: of open windows; where windows overlap, of their panes."""

    def next_timeout(self) -> int | None:
        """Return the least arrival time at which a window fires by its timeout; `None`: none."""
        return None

    # -- for checkpoints: see `wallaroo_reference.kept.Cells` ------------------------------------

    def keep(self, packer: Packer) -> None:
        """Begin to note what changes."""
        self._keeps, self._packer = True, packer

    # -- what the kinds share --------------------------------------------------------------------

    def combined(self, parts: Sequence[Any], shared: int = 0) -> Any:
        """Return accumulators combined in their order; what user code raises is not caught.

        Args:
            parts: the accumulators.
            shared: how many of them, from the end, must stay as they are.

        Raises:
            DeadLetterError: `unportable`: one that must stay as it is cannot be copied.
        """
        if shared and not _UNCHANGEABLE.issuperset(map(type, parts)):
            first = len(parts) - shared
            parts = [*parts[:first], *map(own, parts[first:])]
        accumulator = parts[0]
        for part in parts[1:]:
            assert self._combine is not None  # only aggregations that have it get several parts
            result = self._combine(accumulator, part)
            if result is not None:
                accumulator = result
        return accumulator

    def updated(self, message: Any, accumulator: Any = NOTHING) -> Any:
        """Return an accumulator after one more message; without one, of a new window."""
        if accumulator is NOTHING:
            accumulator = self._initial()
        result = self._update(message, accumulator)
        return accumulator if result is None else result

    def refresh(self) -> None:
        """Move the watermark on to where it stands for a message that comes now."""
        if not self._times.turning:
            self._times.move(self)

    def late(self, message: Any, key: Key, time: int, policy: LateDataPolicy) -> Firing | None:
        """Do with a late message what the policy says (window-6).

        Raises:
            DeadLetterError: The policy is to make a dead letter of it.
        """
        if policy is LateDataPolicy.DROP:
            self.dropped += 1
            return None
        if policy is LateDataPolicy.FIRE_PER_MESSAGE:
            return key, time, time, time + 1, (self.updated(message),), 0, True
        raise DeadLetterError(
            Reason.LATE,
            f"its event time is {time}, and the windows it belongs to have fired: the step's "
            f"watermark is {self.watermark}",
        )
