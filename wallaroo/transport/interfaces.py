"""What stands between the network and an engine, as interfaces, in the order a frame meets them.

1. `Source`: where frames, values and records come from. `Listener` receives frames over TCP,
   `LineReader` reads standard input, `Generators` run generators, `KafkaSource` reads topics.
2. `Receiver`: the engine's part, which gets them: `Inlet` of the reference engine, `Intake` of the
   Spark engine.
3. `wallaroo.transport.input_log.InputLog`: records on disk; an engine that survives a crash appends
   each record to it before it processes it.
4. The machine: the reference engine has `wallaroo_reference.machine.Machine`; on Spark it is the
   query.
5. `OutputSink`: where outputs go. `TCPSink` sends them, `ResumingSink` to a peer that remembers,
   `KafkaSink` to a topic; `StreamSink` writes to standard output.
6. `wallaroo.transport.dead_letters.DeadLetters`: where messages go that could not go on.

`wallaroo.transport.edges.Edges` makes all of them but the engine's part. Unless it is said
otherwise, methods are called in the thread of the edges' event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from wallaroo.kafka_records import KafkaRun
from wallaroo.records import Assigned, End, Value


class Source(Protocol):
    """Gives what it receives to a `Receiver`, for one source of an application or several."""

    @property
    def received(self) -> Mapping[str, int]:
        """Number of frames or values by source."""

    def start(self) -> None:
        """Begin, in the running loop."""

    def pause(self) -> None:
        """Receive nothing more until `resume`; a `Receiver` may call this while it receives."""

    def resume(self) -> None:
        """Go on."""

    async def stop(self) -> None:
        """Receive what has arrived by now and nothing after it; wait until it is sequenced."""

    def close(self) -> None:
        """Receive nothing more, at once."""


class Receiver(Protocol):
    """An engine's part between the edges."""

    def receive(self, source: str, payloads: list[bytes]) -> None:
        """Process the frames of a source that have just arrived, in order; it must not raise."""

    def receive_records(self, records: Sequence[Value | Assigned | End]) -> None:
        """Process values of a generator, partitions of a Kafka source, and ends of both."""

    def receive_run(self, source: str, run: KafkaRun, at: int | None) -> None:
        """Process what a Kafka source has read of one partition.

        Args:
            source: the source's name.
            run: the run (kafka-1).
            at: its arrival time, in nanoseconds since 1970; `None`: now.
        """

    def when_sequenced(self, close: Callable[[], None]) -> None:
        """Have `close` called, in the loop's thread, once all that was received is sequenced.

        It then tells the sender that all is taken (frame-4). If the engine ends before that, it is
        not called.
        """

    def sinks_have_room(self) -> None:
        """Go on: a sink that was full has room again."""

    def input_ended(self, problem: str | None) -> None:
        """Stop: standard input has ended, with what was wrong if anything was."""

    def input_failed(self, problem: str) -> None:
        """Stop: a topic cannot be read any more. The other sources have not ended by that."""

    def outputs_broken(self, problem: str) -> None:
        """End: nothing more can be written to standard output."""


class OutputSink(Protocol):
    """Delivers the outputs of one sink.

    Attributes:
        written: number of outputs that are delivered.
        pending: number of outputs that are kept.
        bytes_out: of all outputs that it was given.
        connects: number of connections made.
        full: whether to stop writing until `Receiver.sinks_have_room` is called; outputs that are
            written nevertheless are kept too.
    """

    written: int = 0
    pending: int = 0
    bytes_out: int = 0
    connects: int = 0
    full: bool = False

    @property
    def connected(self) -> bool:
        """Whether outputs can go out."""

    def start(self) -> None:
        """Begin, in the running loop."""

    def write(self, outputs: Sequence[Any]) -> None:
        """Deliver outputs, now or later; the caller may reuse the list.

        Args:
            outputs: bytes; of a Kafka sink `wallaroo.kafka_records.Produced`.
        """

    def look(self) -> None:
        """Find out now what has been delivered."""

    async def drain(self) -> None:
        """Wait until everything is delivered, or nothing more can be."""

    def close(self) -> None:
        """Close; outputs that are not delivered stay `pending`."""
