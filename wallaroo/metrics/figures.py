"""What is counted of each part of an application: its nodes, sources, sinks, states and windows."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wallaroo.keys import Key, decode_key, encode_key, encoded_partition_number
from wallaroo.metrics.sketches import Busiest, Histogram

RECENT = 10
"""Latencies of the last so many seconds are shown as the recent ones."""

LOG_IS_FULL = "the input log is full"
DISK_IS_FULL = "the disk does not take the input log"
"""Why sources are not read."""

_TOGETHER = 1000  # durations that are put into their buckets at once
_MOST_PARTITIONS = 4096  # partition numbers whose visits are counted


@dataclass(slots=True)
class NodeFigures:
    """What a node's user code does: a source's decoder, a step, a sink's encoder.

    Attributes:
        time: nanoseconds of each call of its own: of a decoder, a computation, a window's update,
            an encoder.
        other_nanoseconds: of all other calls there: partition functions, event times, what windows
            give.
        sent: messages, or outputs, that came of them.
        fired: windows that fired.
        dead: dead letters by reason.
    """

    time: Histogram = field(default_factory=Histogram)
    other_nanoseconds: float = 0
    sent: float = 0
    fired: float = 0
    dead: Counter[str] = field(default_factory=Counter)

    @property
    def seconds(self) -> float:
        """Seconds in user code."""
        return (self.time.total + self.other_nanoseconds) / 1e9


class Latency:
    """Nanoseconds that something took: in all, and in the last seconds."""

    def __init__(self) -> None:
        self._past = Histogram()  # all but the current second's
        self._current = Histogram()
        self._waiting: list[tuple[int, int]] = []
        self._recent: deque[Histogram] = deque()
        self._together = Histogram()  # those of `_recent`

    def add(self, nanoseconds: int, times: int) -> None:
        """Add a duration, `times` times."""
        self._waiting.append((nanoseconds, times))
        if len(self._waiting) > _TOGETHER:
            self._sort()

    def tick(self) -> Histogram:
        """Begin another second; return the last one's durations."""
        self._sort()
        done, self._current = self._current, Histogram()
        self._past.merge(done)
        if len(self._recent) == RECENT:
            self._together.subtract(self._recent.popleft())
        self._recent.append(done)
        self._together.merge(done)
        self._together.greatest = max([one.greatest for one in self._recent])
        return done

    def _sort(self) -> None:
        """Put those that wait into their buckets; many of them came equally often."""
        waiting: defaultdict[int, list[int]] = defaultdict(list)
        for nanoseconds, times in self._waiting:
            waiting[times].append(nanoseconds)
        self._waiting.clear()
        for times, durations in waiting.items():
            self._current.add(durations, times)

    def whole(self) -> Histogram:
        """Return all durations until now; with the registry's lock held."""
        self._sort()
        made = self._past.copy()
        made.merge(self._current)
        return made

    def recent(self) -> Histogram:
        """Return the durations of the last seconds."""
        return self._together.copy()


class TopicPlace(NamedTuple):
    """Where a Kafka source stands in a partition.

    Args:
        position: offset of the next record.
        end: the offset behind the last record, as of some seconds ago; `None`: not known yet.
    """

    position: int
    end: int | None

    @property
    def lag(self) -> int | None:
        """How many offsets are left to read; `None`: not known yet."""
        return None if self.end is None else max(0, self.end - self.position)


@dataclass(slots=True)
class SourceFigures:
    """What comes in.

    Attributes:
        frames, bytes: received; a generator's values have no bytes.
        backlog: of the frames of this run, those not processed yet.
        connections: open now.
        refused_connections, dropped_frames: in all.
        places: of a Kafka source, by partition.
        silent: its partitions for which windows wait, and from which nothing comes (kafka-9).
        latency: from the arrival of a read to the delivery of the last output that it made.
    """

    frames: int = 0
    bytes: int = 0
    backlog: int = 0
    connections: int = 0
    refused_connections: int = 0
    dropped_frames: int = 0
    places: Mapping[int, TopicPlace] = field(default_factory=dict)
    silent: Sequence[int] = ()
    latency: Latency = field(default_factory=Latency)

    @property
    def lag(self) -> int:
        """How many offsets of a topic are left to read, as far as that is known."""
        return sum([place.lag or 0 for place in self.places.values()])


@dataclass(slots=True)
class SinkFigures:
    """What goes out.

    Attributes:
        written, bytes: outputs that the peer's kernel has acknowledged; bytes given to the system.
        waiting: outputs made and not acknowledged.
        full: it takes no more for now, so sources are held back; see `Registry.holds_back`.
        connected: there is a connection, or none is needed.
        connects: connections made.
        committed: of a Kafka sink with transactions: all that records before this number made is
            committed; `None`: it has none.
        oldest: when the read arrived whose outputs have waited longest, by `Registry.monotonic`;
            on Spark: when the sink was given them, with all others of their micro-batch.
        latency: from the arrival of a read to the delivery of its outputs here.
    """

    written: int = 0
    bytes: int = 0
    waiting: int = 0
    full: bool = False
    connected: bool = False
    connects: int = 0
    committed: int | None = None
    oldest: float | None = None
    latency: Latency = field(default_factory=Latency)


class Spread:
    """How evenly messages are divided among partition numbers.

    Args:
        numbers: how many partition numbers there are.

    Attributes:
        messages: by partition number.
        numbers: how many there are.
    """

    def __init__(self, numbers: int = 1) -> None:
        self.messages: dict[int, float] = {}
        self.numbers = numbers

    def add(self, number: int, messages: float) -> None:
        """Count messages of a partition number."""
        if number < _MOST_PARTITIONS:
            self.messages[number] = self.messages.get(number, 0) + messages

    @property
    def skew(self) -> float | None:
        """The messages of the busiest number over the mean of all: 1 is even.

        `None`: there is only one number, or no message.
        """
        total = sum(self.messages.values())
        if self.numbers == 1 or not total:
            return None
        return max(self.messages.values()) * min(self.numbers, _MOST_PARTITIONS) / total

    def busiest(self, most: int) -> list[tuple[int, float]]:
        """Return the numbers with most messages, and how many these are, the busiest first."""
        order = sorted(self.messages.items(), key=lambda item: (-item[1], item[0]))
        return order[:most]


class KeyFigures:
    """How often messages come for each key of a state partition or a window step.

    Args:
        numbers: how many partition numbers there are.
    """

    def __init__(self, numbers: int = 1) -> None:
        self.busiest = Busiest()
        self.spread = Spread(numbers)

    def add_visits(self, visits: Mapping[Hashable, float], times: float) -> None:
        """Count visits, by the identities of their keys."""
        self.busiest.add(visits, times)
        if self.spread.numbers > 1:
            for identity, number in visits.items():
                self.spread.add(self.number_of(identity), number * times)

    @property
    def visits(self) -> float:
        """Number of all visits."""
        return sum(self.spread.messages.values()) or self.busiest.visits

    def number_of(self, identity: Hashable) -> int:
        """Return the partition number of a key, by its identity."""
        if self.spread.numbers == 1:
            return 0
        return encoded_partition_number(encode_key(key_of(identity)), self.spread.numbers)


class PartitionFigures(KeyFigures):
    """A state partition.

    Attributes:
        entities: how many it has; `None`: not known.
    """

    entities: int | None = None


@dataclass(slots=True)
class WindowFigures:
    """The windows of a step.

    Attributes:
        keys: how often messages came for each key.
        open: how many are open, as of the last count; of windows that overlap, their panes.
            `None`: not known.
        late: late messages by what became of them: ``dropped``, ``partly``.
        lag: seconds that the step's watermark is behind the arrival of the last record; `None`:
            there is no watermark yet, or it is infinite, as all sources have ended.
        stands: seconds during which records came without moving it.
        held_by: the source that holds it back.
    """

    keys: KeyFigures = field(default_factory=KeyFigures)
    open: int | None = None
    late: dict[str, int] = field(default_factory=dict)
    lag: float | None = None
    stands: float = 0.0
    held_by: str | None = None
    watermark: float = -math.inf
    moved: int | None = None

    def note_times(self, now: int, watermark: float) -> None:
        """Note the time of the last record's arrival, and the watermark; in nanoseconds."""
        if watermark != self.watermark or not self.moved:  # 0: no record has arrived yet
            self.watermark, self.moved = watermark, now
        self.stands = (now - self.moved) / 1e9
        self.lag = (now - watermark) / 1e9 if math.isfinite(watermark) else None


@dataclass(slots=True)
class KeptFigures:
    """What a run keeps on disk, to go on after a crash.

    Attributes:
        log_bytes, log_records: of the input log.
        log_written: when the log was last made durable, in seconds since 1970; `None`: not yet.
        checkpoint_bytes: of the engine's part; `None`: not known.
        checkpoint_written: when it was last written: a checkpoint (reference), a micro-batch that
            Spark has committed; `None`: not yet.
        restarts: number of earlier runs on the checkpoint.
    """

    log_bytes: int = 0
    log_records: int = 0
    log_written: float | None = None
    checkpoint_bytes: int | None = None
    checkpoint_written: float | None = None
    restarts: int = 0


@dataclass
class Harvest:
    """What was seen in another process, on its way to the run's registry.

    Attributes:
        nodes: by their indices, those at which something was seen.
        busiest: the keys that were visited most, by what has them (`Registry.keys_of`); their
            identities.
        sampled, left_out: see `Registry`.
    """

    nodes: dict[int, NodeFigures]
    busiest: dict[str | int, Busiest]
    sampled: int
    left_out: int


def key_of(identity: Hashable) -> Key:
    """Return the key of an identity (`wallaroo.keys.identity`)."""
    key: Any = decode_key(identity[0]) if isinstance(identity, tuple) else identity
    found: Key = key
    return found
