"""Outputs wait here until the input that they were made from is on disk (recover-1, recover-2).

Input is processed as soon as it is received. If the process dies before the frames are on disk,
they are lost, and outputs made from them must not have been sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wallaroo.errors import WallarooError
from wallaroo.kafka_records import size_of
from wallaroo.topology import SinkId
from wallaroo.trace import DeadLetter
from wallaroo.transport.edges import Edges
from wallaroo.transport.input_log import InputLog
from wallaroo.transport.interfaces import OutputSink
from wallaroo_reference.machine import Machine

LIMIT = 16 << 20
"""When this many bytes wait, nothing more is processed."""

_COST = 48  # bytes to keep an output, besides its own


class Outbox:
    """Holds outputs and dead letters back.

    Args:
        edges: have the sinks, and take dead letters.
        machine: makes both.
        log: has what they are made from.
        failed: called with an error's text if dead letters cannot be written.

    Attributes:
        sinks: takes the outputs of each sink.
        durable: the records before this one are on disk.
    """

    def __init__(
        self,
        edges: Edges,
        machine: Machine,
        log: InputLog,
        failed: Callable[[str], None],
    ) -> None:
        self.sinks = {id_: HeldSink(self, sink) for id_, sink in edges.sinks.items()}
        self.durable = log.durable_sequence
        self._dead_letters = edges.dead_letters
        self._machine = machine
        self._failed = failed
        self._held: deque[tuple[int, int, Callable[[], None]]] = deque()
        self._size = 0
        self._broken = False  # some dead letters are not written: nothing after them may leave

    @property
    def full(self) -> bool:
        """Whether so much waits that nothing more should be processed."""
        return self._size >= LIMIT

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._held

    def add(self, letters: Sequence[DeadLetter]) -> None:
        """Take dead letters."""
        self.put(0, lambda: self._write(letters))

    def put(self, size: int, leave: Callable[[], None]) -> None:
        """Call `leave` once all that has been processed so far is on disk, in order."""
        if self._broken:
            return
        sequence = self._machine.sequence
        if sequence <= self.durable and not self._held:
            leave()
            return
        self._size += size
        self._held.append((sequence, size, leave))

    def release(self, durable: int) -> None:
        """Send what the records before `durable` made; these are on disk."""
        self.durable = durable
        held = self._held
        while held and held[0][0] <= durable:
            _, size, leave = held.popleft()
            self._size -= size
            leave()

    def abandon(self) -> None:
        """Send nothing more."""
        self._held.clear()
        self._size = 0

    def made(self) -> dict[SinkId, int]:
        """Return how many outputs of each sink have been made in this run."""
        return {id_: sink.made for id_, sink in self.sinks.items()}

    def made_bytes(self) -> dict[SinkId, int]:
        """Return how many bytes these are."""
        return {id_: sink.made_bytes for id_, sink in self.sinks.items()}

    def delivered(self, sequence: int, made: Mapping[SinkId, int]) -> bool:
        """Whether everything that the records before `sequence` made has been delivered.

        Args:
            sequence: number of a record.
            made: what `made` returned when that record was the next one.
        """
        if self._broken or (self._held and self._held[0][0] <= sequence):
            return False
        return all(self.sinks[id_].delivered >= count for id_, count in made.items())

    def _write(self, letters: Sequence[DeadLetter]) -> None:
        try:
            self._dead_letters.add(letters)
        except WallarooError as error:
            self._broken = True
            self.abandon()
            self._failed(str(error))


class HeldSink:
    """A sink behind an outbox.

    Attributes:
        made: number of outputs that were made for it in this run.
        made_bytes: and of their bytes.
    """

    def __init__(self, outbox: Outbox, sink: OutputSink) -> None:
        self.made = 0
        self.made_bytes = 0
        self._outbox = outbox
        self._sink = sink

    @property
    def full(self) -> bool:
        """Whether nothing more should be processed."""
        return self._sink.full or self._outbox.full

    @property
    def delivered(self) -> int:
        """Number of outputs that its peer has acknowledged in this run."""
        return self._sink.written

    def write(self, outputs: Sequence[Any]) -> None:
        """Take outputs; the caller may reuse the list."""
        self.made += len(outputs)
        some = outputs[:]
        size = size_of(some)
        self.made_bytes += size
        self._outbox.put(size + _COST * len(some), lambda: self._sink.write(some))
