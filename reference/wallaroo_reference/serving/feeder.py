"""Passes frames to a machine and its outputs to the sinks, no more than the sinks take.

Everything happens in the event loop's thread, one frame after the other. What was received and
cannot be processed yet, because a sink is full or the loop needs a turn, waits in a backlog; while
anything waits there, nothing more is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Protocol

from wallaroo.errors import WallarooError
from wallaroo.judging import TooManyItemsError
from wallaroo.kafka import KafkaSourceConfig
from wallaroo.overriding import override
from wallaroo.records import Assigned, End, Single, Tick, Unused, Value
from wallaroo.topology import SinkId
from wallaroo.trace import Ended
from wallaroo.transport.dead_letters import DeadLetters
from wallaroo.transport.edges import Edges
from wallaroo.transport.interfaces import OutputSink
from wallaroo.transport.kafka.context import Context, carry_on, contexts_of
from wallaroo.transport.logged import LoggedSource, LoggedValue
from wallaroo.transport.skipping import way_past
from wallaroo.transport.threads import forked_at, in_child
from wallaroo_reference.checkpoints.on_disk import Entry, Frames, FromTopic
from wallaroo_reference.machine import Machine
from wallaroo_reference.meter import TooMuchOutputError
from wallaroo_reference.serving.outbox import HeldSink, Outbox
from wallaroo_reference.serving.ticker import Ticker
from wallaroo_reference.serving.watch import Watch

_TURN = 0.02  # seconds the machine may run before the loop serves its connections
_MOST_FRAMES = 1024  # handed to the machine before its outputs are handed on

# The machine gets its frames in slices, longer ones while few outputs come of them. A full sink is
# noticed after a slice, so one slice's outputs, or one message's, are more than it takes. A message
# that makes more than its most ends the run: all of it would be in memory at once, several times.
_LONGEST_SLICE = 64  # frames
_SLICE = 1 << 20  # bytes of outputs after which a slice goes no further
_AT_ONCE = 1 << 20  # bytes of outputs that are handed on at once
MOST_OF_A_MESSAGE = 256 << 20  # bytes of outputs


class Intake(Protocol):
    """Takes what the edges have received, with its arrival time: a journal or a feeder."""

    @property
    def unprocessed(self) -> int:
        """Number of records that it has taken and that are not processed."""

    def receive(self, source: str, payloads: Sequence[bytes], at: int) -> None:
        """Take frames that arrived at one time."""

    def receive_records(self, records: Sequence[Single]) -> None:
        """Take records that are not frames."""

    def receive_run(self, run: FromTopic) -> None:
        """Take what was read of a partition."""

    def when_sequenced(self, close: Callable[[], None]) -> None:
        """Have `close` called once nothing that was received can be lost by a run in order.

        A feeder calls it once all is processed, a journal once all is on disk. If the run ends
        before, it is not called.
        """


@dataclass(frozen=True, slots=True)
class _Gap(Unused):
    """Numbers of offsets that hold nothing.

    Args:
        behind: the offset behind them, by partition.
    """

    behind: Mapping[int, int] = field(default_factory=dict)


_log = logging.getLogger("wallaroo.reference")


class Feeder(Intake):
    """Feeds a machine.

    Args:
        machine: what to feed.
        edges: paused while no more should be read; take its outputs and dead letters.
        outbox: takes these in their place, until they may leave; `None`: they leave at once.
        failed: called once with what ended the run, if something does.
        clock: returns the arrival time of a record, in nanoseconds since 1970.
        ticks: time alone can make something due.
        topics: the configuration of each Kafka source.
        ticked: gets the ticks that are due, which come back by `receive_records`.
        logged: what the log says of sources before the first record.
        restartable: a restart goes on from a checkpoint.
        watch: gets what arrives and what was processed, for figures; `None`: no figures.

    Attributes:
        logged: what the log says of sources up to what was processed.
        tombstones: records of Kafka without a value, by source (kafka-7).
    """

    def __init__(
        self,
        machine: Machine,
        edges: Edges,
        outbox: Outbox | None,
        *,
        failed: Callable[[str], None],
        clock: Callable[[], int],
        ticks: bool,
        topics: Mapping[str, KafkaSourceConfig],
        ticked: Callable[[Sequence[Tick]], None],
        logged: Mapping[str, LoggedSource],
        restartable: bool,
        watch: Watch | None,
    ) -> None:
        self.logged = dict(logged)
        self.tombstones: Counter[str] = Counter()
        self.watch = watch
        self._restartable = restartable
        self._machine = machine
        self._edges = edges
        self._topics = topics
        self._letters: DeadLetters | Outbox = edges.dead_letters
        sinks: Mapping[SinkId, OutputSink | HeldSink] = edges.sinks
        if outbox is not None:
            self._letters, sinks = outbox, outbox.sinks
        self._sinks = list(sinks.values())
        # The machine's lists are drained in place, so they need not be looked up again.
        self._outlets = [(machine.outputs[id_], sink) for id_, sink in sinks.items()]
        self._failed = failed
        self._backlog: deque[Entry] = deque()
        self._fetched: deque[Entry] = deque()  # some of `_earlier`
        self._earlier: Iterator[Entry | FromTopic] | None = None
        self._caught_up: Callable[[], None] = lambda: None
        self._ticks = ticks
        self._ticker = Ticker(machine, clock, ticked, lambda: bool(self._backlog))
        self._received = 0  # frames that were received
        self._closings: deque[tuple[int, Callable[[], None]]] = deque()
        self._frames = _MOST_FRAMES  # fed at once, as many as a turn allows
        self._paused = False
        self._scheduled = False
        self._over = False
        self._abandoned = 0  # records that waited then
        self._process = os.getpid()
        self._fed: list[bytes] = []  # the slice that the machine is being fed
        self._slice = 1  # frames in it
        self._context: Callable[[int], Context] | None = None  # of records that were fed last
        self._meter = machine.meter
        self._meter.enough, self._meter.most = _SLICE, MOST_OF_A_MESSAGE
        in_child(self._fork)

    @property
    @override
    def unprocessed(self) -> int:
        # Those that wait, or waited when the feeder was abandoned.
        waiting = [len(one.payloads) if isinstance(one, Frames) else 1 for one in self._backlog]
        return sum(waiting) + self._abandoned

    def begin_with(
        self, earlier: Iterator[Entry | FromTopic], caught_up: Callable[[], None]
    ) -> None:
        """Process what was logged before this run first, in the running loop.

        Args:
            earlier: these records, in order; read further when there is room. It may raise
                `WallarooError`.
            caught_up: called once all of it is processed.
        """
        self._earlier, self._caught_up = earlier, caught_up
        self.go_on()

    @override
    def receive(self, source: str, payloads: Sequence[bytes], at: int) -> None:
        if self._over:
            return
        self._received += len(payloads)
        self._backlog.append(Frames(source, payloads, at))
        if self.watch is not None:
            self.watch.came(source, len(payloads))
        if not self._paused:
            self.go_on()

    @override
    def receive_records(self, records: Sequence[Single]) -> None:
        if self._over:
            return
        self._received += len(records)
        self._backlog.extend(records)
        if self.watch is not None:
            for record in records:
                self.watch.came(record.source if isinstance(record, Value) else "", 1)
        if not self._paused:
            self.go_on()

    @override
    def receive_run(self, run: FromTopic) -> None:
        if self._over:
            return
        for entry in self.pieces(run):
            numbers = 1
            if isinstance(entry, Frames):
                numbers = len(entry.payloads)
                self.tombstones[run.source] += self._without_value(run.source, entry.payloads)
            self._received += numbers
            self._backlog.append(entry)
            if self.watch is not None:
                self.watch.came(run.source, numbers)
        if not self._paused:
            self.go_on()

    def _without_value(self, source: str, read: Sequence[Any]) -> int:
        whole = self._topics[source].whole
        return sum([one.value is None for one in read]) if whole else read.count(None)

    def pieces(self, run: FromTopic) -> list[Entry]:
        """Return what a run holds, and the numbers in it that are not used (kafka-1)."""
        messages = run.run.messages if self._follows else ()
        headers = {message.offset(): message.headers() for message in messages}
        contexts = contexts_of(run.run.first, headers)
        entries: list[Entry] = []
        config = self._topics[run.source]
        for piece in run.run.pieces(config.topic, config.whole):
            behind = contexts.behind(piece if isinstance(piece, int) else len(piece))
            if isinstance(piece, int):
                entries.append(_Gap(run.source, piece, run.at, {run.run.partition: behind.first}))
            else:
                entries.append(Frames(run.source, piece, run.at, run.run.partition, contexts))
            contexts = behind
        return entries

    @property
    def _follows(self) -> bool:
        return self.watch is not None and self.watch.follows

    def go_on(self) -> None:
        """Process what waits, for a turn and as far as sinks take it."""
        self._scheduled = False
        began = before = time.monotonic()
        while (queue := self._queue()) and not self._full():
            replayed = queue is not self._backlog
            frames = self._feed(queue)
            now = time.monotonic()
            if self.watch is not None and replayed:
                self.watch.replayed(now - before)
            elif self.watch is not None:
                self.watch.fed(frames, now - before, self._context)
            self._adapt(now - before, frames)
            before = now
            if now - began > _TURN and self._queue():
                self._schedule()
                break
        if self._closings:
            self._close_some()
        wait = bool(self._queue()) or self._full()
        if wait and not self._paused:
            self._paused = True
            self._edges.pause("sinks")
        elif self._paused and not wait:
            self._paused = False
            self._edges.resume("sinks")
        if self._ticks and not wait and not self._over:
            self._ticker.watch()

    def sinks_have_room(self) -> None:
        """Go on, if that had to wait for a sink."""
        if self._paused:
            self.go_on()

    @override
    def when_sequenced(self, close: Callable[[], None]) -> None:
        if self._over:
            return
        self._closings.append((self._received, close))
        self._close_some()

    async def idle(self) -> None:
        """Wait until nothing waits."""
        while self._backlog or self._earlier is not None:
            await asyncio.sleep(0.002)

    def stop_ticking(self) -> None:
        """Take no more ticks: a stop does not wait for the outputs that they make."""
        self._ticks = False
        self._ticker.stop()

    def abandon(self) -> None:
        """Process nothing more."""
        self._abandoned = self.unprocessed
        self._over = True
        self._ticker.stop()
        self._earlier = None
        self._fetched.clear()
        self._backlog.clear()
        self._closings.clear()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self.go_on)

    def _close_some(self) -> None:
        processed = self._received - self.unprocessed
        while self._closings and self._closings[0][0] <= processed:
            self._closings.popleft()[1]()

    def _full(self) -> bool:
        for sink in self._sinks:  # noqa: SIM110 - any() takes four times as long, for each message
            if sink.full:
                return True
        return False

    def _queue(self) -> deque[Entry]:
        """Return what is to be processed next: what was logged before this run, then the rest."""
        if self._earlier is None:
            return self._backlog
        if not self._fetched:
            try:
                entry = next(self._earlier, None)
            except WallarooError as error:
                self._fail(str(error))
                return self._backlog
            if entry is None:
                self._earlier = None
                self._caught_up()
                return self._backlog
            if isinstance(entry, FromTopic):
                self._fetched.extend(self.pieces(entry))
            else:
                self._fetched.append(entry)
        return self._fetched or self._queue()

    def _feed(self, queue: deque[Entry]) -> int:
        """Feed some of what waits, and hand on its outputs; return how many frames."""
        first, self._context = queue.popleft(), None
        if not isinstance(first, Frames):
            record = first.made if isinstance(first, LoggedValue) else first
            self._run(lambda: self._machine.take(record))
            if isinstance(first, _Gap):
                self.logged[first.source] = self._logged(first.source).read_to(first.behind)
            elif isinstance(first, (LoggedValue, Assigned, End)):
                self.logged[first.source] = self._logged(first.source).after(first)
            self._hand_on()
            return 1
        name, payloads, at, partition, contexts = first
        most, before = min(len(payloads), self._frames), self._machine.sequence
        done = made = 0
        while done < most and made < _AT_ONCE and not self._over and not self._machine.ended:
            self._fed = list(payloads[done : done + min(self._slice, most - done)])
            self._run(lambda: self._machine.feed(name, self._fed, at, partition), name)
            done += len(self._fed)
            size = self._meter.size()
            made += size
            if size > _SLICE:
                self._slice = 1
            elif self._slice < _LONGEST_SLICE and size < _SLICE // 2:
                self._slice *= 2
        if self._machine.ended is not None:
            done = self._machine.ended.lineage[0] + 1 - before
        if done < len(payloads):
            rest = None if contexts is None else contexts.behind(done)
            queue.appendleft(first._replace(payloads=payloads[done:], contexts=rest))
        if contexts is not None and contexts.by_offset and self._follows:
            for outputs, _ in self._outlets:
                carry_on(outputs, contexts, before)
            self._context = lambda number: contexts.of(number - before)
        if contexts is not None and partition is not None:
            self._say_where(self._topics[name].topic, partition, contexts.first - before)
            self.logged[name] = self._logged(name).read_to({partition: contexts.first + done})
        self._hand_on()
        return done

    def _logged(self, source: str) -> LoggedSource:
        return self.logged.get(source, LoggedSource())

    def _say_where(self, topic: str, partition: int, ahead: int) -> None:
        """Say in dead letters where their records stand: at their numbers and so much ahead."""
        letters = self._machine.dead_letters
        for at, letter in enumerate(letters):
            letters[at] = replace(letter, record=(topic, partition, letter.lineage[0] + ahead))

    def _hand_on(self) -> None:
        """Hand on what the machine has made; end the run if it has ended."""
        for outputs, sink in self._outlets:
            if outputs:
                sink.write(outputs)
                outputs.clear()
        if self._machine.dead_letters:
            self._write_dead_letters()
        if self._machine.ended is not None:
            ended = self._machine.ended
            restarts = self._restartable and ended.kind == "exit"
            self._fail(_described(ended) + (way_past(ended.lineage) if restarts else ""))
        elif self._over:
            self._backlog.clear()
            self._fetched.clear()

    def _run(self, process: Callable[[], None], source: str = "") -> None:
        """Let the machine process a slice, which it may end early, or another record."""
        first = self._machine.sequence
        try:
            process()
        except Exception as error:  # noqa: BLE001 - an engine's bug must not end in silence
            # Exceptions of user code do not come here: the machine makes dead letters of them.
            _log.exception("the engine itself failed; this is a bug in it")
            self._fail(f"the engine itself failed: {type(error).__name__}: {error}")
        if os.getpid() != self._process:
            _end_child(source, first)

    def _fork(self) -> None:
        """In a forked child: if it comes back here, it must not process another message."""
        self._fed.clear()

    def _adapt(self, seconds: float, frames: int) -> None:
        """Feed fewer at once where user code is slow, so that the loop gets its turn."""
        if seconds > 2 * _TURN:
            self._frames = max(1, frames // 2)
        elif self._frames < _MOST_FRAMES and seconds < _TURN / 2 and frames == self._frames:
            self._frames *= 2

    def _write_dead_letters(self) -> None:
        letters = self._machine.dead_letters[:]
        self._machine.dead_letters.clear()
        try:
            self._letters.add(letters)
        except WallarooError as error:  # their file takes no more
            self._fail(str(error))

    def _fail(self, problem: str) -> None:
        if not self._over:
            self.abandon()
            self._failed(problem)


def _end_child(source: str, first: int) -> NoReturn:
    """End a process that user code has forked and that came back: there must not be two engines."""
    text = (
        f"wallaroo: pipeline {source}, message {first} or one after it: a process forked in "
        f"{forked_at()} came back into the engine, and ends here, with nothing sent. Let a forked "
        "process end with os._exit, or start one with subprocess\n"
    )
    with contextlib.suppress(OSError):
        os.write(2, text.encode())
    os._exit(1)


def _described(ended: Ended) -> str:
    message = ".".join(map(str, ended.lineage))
    place = f"pipeline {ended.pipeline}, {ended.where}, message {message}"
    if ended.error_type == TooMuchOutputError.__name__:
        return (
            f"one message made more than {MOST_OF_A_MESSAGE / 2**20:g} MiB of outputs, which is "
            f"more than the engine holds at once: {place}. The outputs before it are "
            "delivered, its own are not. Let the step give less for one message, or send smaller "
            "messages"
        )
    if ended.error_type == TooManyItemsError.__name__:
        return (
            f"one result gave more than {MOST_OF_A_MESSAGE / 2**20:g} MiB of messages, which is "
            f"more than the engine holds at once, and had not ended: {place}. The outputs before "
            "it are delivered. Let the step give less for one message, or check whether what it "
            "returns ever ends"
        )
    if ended.kind == "exit":
        return f"{ended.error_type} ended the run: {place} (dead-3)"
    return f"the first dead letter ended the run, as --on-error stop says: {place} (dead-4)"
