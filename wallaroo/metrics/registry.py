"""The figures of one run: an engine fills them in, `snapshot` copies them as plain data.

The engine's thread counts, once for each read that it processes, never for each message. Another
thread calls `tick` every second. It asks the edges for their counts, takes rates, and writes the
lines of the last fifteen minutes. Everything is bounded, whatever the number of keys, dead letters
and days.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wallaroo.metrics.figures import (
    LOG_IS_FULL,
    Harvest,
    KeptFigures,
    KeyFigures,
    NodeFigures,
    PartitionFigures,
    SinkFigures,
    SourceFigures,
    WindowFigures,
)
from wallaroo.metrics.sketches import Histogram, Timelines
from wallaroo.operations import Branch, Collect, Merge
from wallaroo.topology import Application, Node, Sink, SinkId, Source, Step
from wallaroo.trace import DeadLetter
from wallaroo.user_code.failure import own_frame

if TYPE_CHECKING:
    from wallaroo.metrics.following import Followed

RATE = 5
"""Seconds over which rates are taken."""

MOST_EXECUTORS = 64
"""The most executors, and the most hosts, of which figures are kept."""

_STALLED = 1.0  # seconds that outputs wait from which a sink is why the input log is full
_LETTERS = 20  # dead letters that are kept
_LONGEST_PAYLOAD = 512  # bytes of a dead letter's payload that are kept


class Registry:
    """The figures of one run.

    Args:
        application: what runs.
        engine: the engine's name.
        partitions: number of partitions.
        clock: seconds since 1970.
        monotonic: seconds that never go back.

    Attributes:
        clock, monotonic: as above.
        began: when the run began, by `clock`.
        lock: held while figures of several reads must fit together.
        nodes: by the node's index in the application.
        sources, sinks, partitions, windows: by their names, ids, names, node indices.
        sampled, left_out: records looked at one by one, and records represented by these.
        busy_seconds: time that the engine's thread has worked.
        backlog: records received and not processed.
        processed: records processed.
        held_back: why sources are not read, other than a full sink; `""`: they are, or may be.
        heard: when the engine's thread last said that it goes on, by `monotonic`.
        thread: the engine's thread, as `threading.get_ident` names it; `None`: user code does not
            run in this process.
        thread_of: the package whose code that thread runs.
        phases: the engine's own figures by name, such as the milliseconds of a batch by phase.
        kept: what is on disk, to go on after a crash; `None`: nothing is.
        executors: what Spark says of its executors.
        hosts: records processed, and the seconds of their tasks, by host.
        process: the process's figures.
        on_followed: is given the records that were followed, in any thread; `None`: follow none.
    """

    def __init__(
        self,
        application: Application,
        engine: str,
        *,
        partitions: int = 1,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.application = application
        self.engine = engine
        self.lock = threading.Lock()
        self.monotonic = monotonic
        self.nodes = [NodeFigures() for _ in application.nodes]
        self.sources = {name: SourceFigures() for name in application.sources}
        self.sinks: dict[SinkId, SinkFigures] = {id_: SinkFigures() for id_ in application.sinks}
        self.partitions = {one.name: PartitionFigures(partitions) for one in application.partitions}
        self.windows = {
            index: WindowFigures(KeyFigures(partitions)) for index in application.window_steps
        }
        self.sampled = self.left_out = 0
        self.busy_seconds = 0.0
        self.backlog = self.processed = 0
        self.held_back = ""
        self.heard: float | None = None
        self.thread: int | None = None
        self.thread_of = ""
        self.state = "starting"
        self.phases: dict[str, float] = {}
        self.kept: KeptFigures | None = None
        self.executors: list[dict[str, Any]] = []
        self.hosts: dict[str, tuple[int, float]] = {}
        self.process: dict[str, Any] = {}
        self.on_followed: Callable[[Followed], None] | None = None
        self.lines = Timelines()
        self.letters: deque[tuple[float, int | None, DeadLetter]] = deque(maxlen=_LETTERS)
        self._asked: list[Callable[[], None]] = []
        self.clock = clock
        self.began = clock()
        self._marks: deque[tuple[float, dict[Any, float]]] = deque(maxlen=RATE + 1)
        self._moved = monotonic()  # when a message was processed, or none waited
        self._rates: dict[Any, float] = {}
        self._places = {_place_of(application, node): i for i, node in enumerate(application.nodes)}

    def keys_of(self, place: str | int) -> KeyFigures:
        """Return the keys of a state partition, by its name, or of a window step, by its node."""
        return self.partitions[place] if isinstance(place, str) else self.windows[place].keys

    def harvest(self) -> Harvest:
        """Return what was seen here, for the registry of another process."""
        places: list[str | int] = [*self.partitions, *self.windows]
        found = {place: self.keys_of(place).busiest for place in places}
        return Harvest(
            {index: node for index, node in enumerate(self.nodes) if node.time.count or node.sent},
            {place: busiest for place, busiest in found.items() if busiest.visits},
            self.sampled,
            self.left_out,
        )

    def add(self, harvest: Harvest) -> None:
        """Add what was seen in another process."""
        with self.lock:
            for index, seen in harvest.nodes.items():
                node = self.nodes[index]
                node.time.merge(seen.time)
                node.other_nanoseconds += seen.other_nanoseconds
                node.sent += seen.sent
                node.fired += seen.fired
            for place, busiest in harvest.busiest.items():
                self.keys_of(place).busiest.merge(busiest)
            self.sampled += harvest.sampled
            self.left_out += harvest.left_out

    def worked(self, host: str, records: int, seconds: float) -> None:
        """Note that tasks on a host have processed records."""
        before = self.hosts.get(host, (0, 0.0))
        if before[0] or len(self.hosts) < MOST_EXECUTORS:
            self.hosts[host] = (before[0] + records, before[1] + seconds)

    def inside(self) -> str | None:
        """Return the line of user code that the engine's thread is running now, for people."""
        frame = sys._current_frames().get(self.thread) if self.thread is not None else None
        found = None if frame is None else own_frame(frame, self.thread_of)
        return None if found is None else f"user code at {found}"

    def before_tick(self, look: Callable[[], None]) -> None:
        """Call `look` before each tick, in the ticking thread; it copies counts here."""
        self._asked.append(look)

    def add_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        """Count dead letters, and keep the last ones, shortened."""
        now = self.clock()
        kept = [(now, *_shortened(letter)) for letter in letters[-_LETTERS:]]
        with self.lock:
            for letter in letters:
                place = (letter.pipeline, letter.position, letter.sink)
                index = self._places.get(place)
                if index is not None:
                    self.nodes[index].dead[letter.reason.value] += 1
            self.letters.extend(kept)

    def after_last_tick(self, look: Callable[[], None]) -> None:
        """Call `look` a last time, because what it looks at ends."""
        look()
        if look in self._asked:
            self._asked.remove(look)

    def refresh(self) -> None:
        """Copy the counts of the edges here."""
        for look in tuple(self._asked):
            look()

    def tick(self) -> None:
        """Take rates, and add a value to each line; once a second."""
        self.refresh()
        with self.lock:
            values = self._totals()
            latencies = {name: one.latency.tick() for name, one in self.sources.items()}
            for sink in self.sinks.values():
                sink.latency.tick()
        now = self.monotonic()
        previous = self._marks[-1] if self._marks else None
        moves = previous is None or self.processed > previous[1]["processed",]
        if moves or not self.backlog:
            self._moved = now
        self._marks.append((now, values))
        began, first = self._marks[0]
        if now > began:
            self._rates = {
                name: (value - first.get(name, 0)) / (now - began) for name, value in values.items()
            }
        self._add_to_lines(now, values, previous, latencies)

    def holds_back(self, sink: SinkFigures) -> bool:
        """Return whether sources are not read because a sink does not take what it has."""
        if sink.full or self.held_back != LOG_IS_FULL or not sink.waiting or sink.oldest is None:
            return sink.full
        return self.monotonic() - sink.oldest >= _STALLED

    def rate(self, *name: Any) -> float:
        """Return how fast a total grew, a second, in the last seconds."""
        return self._rates.get(name, 0.0)

    @property
    def stands(self) -> float:
        """For how many seconds messages wait and none was processed."""
        return self.monotonic() - self._moved if self.backlog else 0.0

    def received(self) -> list[float]:
        """Return how many messages each node has got; a source: its frames."""
        found: list[float] = []
        sent: list[float] = []
        for node, figures in zip(self.application.nodes, self.nodes, strict=True):
            if isinstance(node, Source):
                found.append(self.sources[node.pipeline].frames)
            else:
                found.append(sum([sent[origin] for origin in node.inputs]))
            sent.append(found[-1] if _passes(node) else figures.sent)
        return found

    def sent(self, index: int, received: Sequence[float]) -> float:
        """Return how many messages a node has sent on."""
        node = self.application.nodes[index]
        return received[index] if _passes(node) else self.nodes[index].sent

    def _totals(self) -> dict[Any, float]:
        """Return the totals whose rates are taken."""
        found: dict[Any, float] = {("busy",): self.busy_seconds, ("processed",): self.processed}
        received = self.received()
        for index, node in enumerate(self.nodes):
            found["received", index] = received[index]
            found["sent", index] = self.sent(index, received)
            found["seconds", index] = node.seconds
            found["calls", index] = node.time.count
            found["dead", index] = node.dead.total()
        for name, source in self.sources.items():
            found["frames", name] = source.frames
            found["bytes in", name] = source.bytes
        for id_, sink in self.sinks.items():
            found["written", id_] = sink.written
            found["bytes out", id_] = sink.bytes
        return found

    def _add_to_lines(
        self,
        now: float,
        values: dict[Any, float],
        previous: tuple[float, dict[Any, float]] | None,
        latencies: Mapping[str, Histogram],
    ) -> None:
        passed = 0.0 if previous is None else now - previous[0]
        before = {} if previous is None else previous[1]

        def grown(name: tuple[Any, ...]) -> float | None:
            if passed <= 0:
                return None
            return (values[name] - before.get(name, 0)) / passed

        dead = sum([node.dead.total() for node in self.nodes])
        line: dict[str, float | None] = {"backlog": self.backlog, "dead letters": dead}
        line["waiting outputs"] = sum([sink.waiting for sink in self.sinks.values()])
        line["busy"] = grown(("busy",))
        whole = Histogram()
        for name, source in self.sources.items():
            line[f"in {name}"] = grown(("frames", name))
            if source.places:
                line[f"lag {name}"] = source.lag
            whole.merge(latencies[name])
        for id_ in self.sinks:
            line[f"out {id_[0]}/{id_[1]}"] = grown(("written", id_))
        p50, p99, _ = whole.quantiles((0.5, 0.99, 1.0))
        line["latency p50"] = None if p50 is None else p50 / 1e6
        line["latency p99"] = None if p99 is None else p99 / 1e6
        # What still waits counts too: a stall is to be seen before it ends.
        oldest = [now - sink.oldest for sink in self.sinks.values() if sink.oldest is not None]
        longest = max([whole.greatest / 1e6, *[1e3 * one for one in oldest]])
        line["latency max"] = longest if whole.count or oldest else None
        self.lines.add(self.clock(), line)


def _passes(node: Node) -> bool:
    """Return whether a node passes messages on as they are, without a call of user code."""
    return isinstance(node, Step) and isinstance(node.operation, (Merge, Branch, Collect))


def _place_of(application: Application, node: Node) -> tuple[str, int, int | None]:
    """Return the fields of a dead letter that say which node it is from."""
    index = node.index if isinstance(node, Sink) else None
    return node.pipeline, application.position(node), index


def _shortened(letter: DeadLetter) -> tuple[int | None, DeadLetter]:
    """Return the size of a dead letter's payload, and the letter with the beginning of it."""
    if letter.payload is None:
        return None, letter
    return len(letter.payload), replace(letter, payload=letter.payload[:_LONGEST_PAYLOAD])
