"""What the kinds of windows of the compiled path share (window-4 to window-6).

Accumulators are not copied between calls, as states are not in `trusting` mode; but a pane that
belongs to further windows keeps its own, since `combine` and `output` may alter theirs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from wallaroo.aggregations import AggregationRecord
from wallaroo.copying import ATOMS, Copies
from wallaroo.keys import Key, decode_key, encode_key
from wallaroo.operations import Windowed
from wallaroo.overriding import override
from wallaroo.windowing.kinds import Accumulating
from wallaroo.windowing.watermarks import FOREVER, NEVER
from wallaroo_reference.cells import WindowCells
from wallaroo_reference.compiled.clocks import Times

Fired: TypeAlias = tuple[Any, int, int, int, Sequence[Any], int, bool]
"""The fields of a `Firing`, as generated code takes them."""
Own: TypeAlias = Callable[[Any], Any]


def key_of(identity: Any) -> Key:
    """Return the key of an identity: a tuple's is its encoding, any other's the key itself."""
    key: Key = decode_key(identity[0]) if isinstance(identity, tuple) else identity
    return key


def encoded(identity: Any) -> bytes:
    """Return the canonical encoding of an identity's key."""
    return identity[0] if isinstance(identity, tuple) else encode_key(identity)


class StepWindows(WindowCells, Accumulating):
    """The windows of one step.

    Args:
        operation: the step's operation.
        ways: its sources, with the delays on the way.
        times: the application's time.
        own: returns a copy of an accumulator.

    Attributes:
        watermark: the step's watermark when it was last needed.
        next_due: the least watermark at which a window fires.
        late: numbers of late messages: ``dropped``, or ``partly`` if only some of their windows had
            fired (window-6).
        changed: see `wallaroo_reference.cells.Cells`; generated code notes panes here too.
    """

    def __init__(
        self, operation: Windowed, ways: Mapping[str, int], times: Times, own: Own
    ) -> None:
        self.ways = ways
        self.watermark: float = NEVER
        self.next_due: float = FOREVER
        self.late: Counter[str] = Counter()
        self._times = times
        self._own = own
        super().__init__(operation)
        self.call(operation.aggregation)

    def call(self, aggregation: AggregationRecord) -> None:
        """Call this aggregation's functions from now on: the step's own, or the measured ones."""
        self._initial = aggregation.initial_accumulator
        self._update = aggregation.call
        self._combine = aggregation.combine

    @abstractmethod
    def take(self, message: Any, key: Any, time: int) -> Fired | None:
        """Put a message into its windows; return the window that this fires, if it does.

        What user code raises is not caught.

        Raises:
            DeadLetterError: the key is not valid, or the message is late.
        """

    @abstractmethod
    def due(self) -> Iterator[Fired]:
        """Yield the windows that are due, in order, each gone when it is yielded (time-4)."""

    def settle(self) -> None:
        """Make `next_due` exact: until then it may be too early."""

    @abstractmethod
    def open(self) -> Iterator[Fired]:
        """Yield the open windows as they would fire (window-11)."""

    @property
    @abstractmethod
    def held(self) -> int:
        """The number of accumulators: of open windows; where windows overlap, of their panes."""

    def next_timeout(self) -> int | None:
        """Return the least arrival time at which a window fires by its timeout; `None`: none."""
        return None

    # -- for checkpoints: see `wallaroo_reference.cells.Cells` ------------------------------------

    def keep(self, copies: Copies) -> None:
        """Begin to note what changes."""
        self._keeps, self._copies = True, copies

    # -- what the kinds share --------------------------------------------------------------------

    def combined(self, parts: Sequence[Any], shared: int = 0) -> Any:
        """Return accumulators combined in their order; what user code raises is not caught.

        Args:
            parts: the accumulators.
            shared: how many of them, from the end, must stay as they are.

        Raises:
            DeadLetterError: `unportable`: one that must stay as it is cannot be copied.
        """
        if shared and not ATOMS.issuperset(map(type, parts)):
            first = len(parts) - shared
            parts = [*parts[:first], *map(self._own, parts[first:])]
        accumulator = parts[0]
        for part in parts[1:]:
            assert self._combine is not None  # only aggregations that have it get several parts
            result = self._combine(accumulator, part)
            if result is not None:
                accumulator = result
        return accumulator

    @override
    def begun(self, message: Any) -> Any:
        return self.updated(message, self._initial())

    @override
    def updated(self, message: Any, part: Any) -> Any:
        result = self._update(message, part)
        return part if result is None else result

    @override
    def joined(self, parts: Sequence[Any]) -> Any:
        if len(parts) > 2:  # if the second call raises, nothing shows what the first one did
            parts = [*map(self._own, parts[:-1]), parts[-1]]
        return self.combined(parts)

    def refresh(self) -> None:
        """Move the watermark on to where it stands for a message that comes now."""
        if not self._times.turning:
            self._times.move(self)
