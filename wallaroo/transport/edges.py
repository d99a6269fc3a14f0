"""Both edges of a served application: its sources, its sinks, and how they stop (stop-1).

Sources listen, read standard input or make messages; sinks connect or write to standard output;
dead letters go to a file. What happens between the two edges is the engine's: it receives frames,
writes outputs, and says when to pause. `wallaroo.transport.interfaces` names all parts in order.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import IO

from wallaroo.config import TCPSinkConfig, TCPSourceConfig
from wallaroo.engine import Progress, ServeOptions, Summary
from wallaroo.errors import UnsupportedTopology, WallarooParameterError
from wallaroo.kafka import KafkaSinkConfig
from wallaroo.topology import Application, Sink, SinkId
from wallaroo.transport.dead_letters import DeadLetters
from wallaroo.transport.generators import Generators
from wallaroo.transport.interfaces import OutputSink, Receiver, Source
from wallaroo.transport.listener import Address, Listener, listening_sources
from wallaroo.transport.logged import LoggedSource
from wallaroo.transport.resuming_sink import ResumingSink
from wallaroo.transport.resumption import NEW, Stream
from wallaroo.transport.sink import TCPSink
from wallaroo.transport.streams import LineReader, StreamSink
from wallaroo.transport.threads import LoopThread


class Edges:
    """An application's edges. Methods belong to the loop's thread, unless they say otherwise.

    Args:
        application: whose.
        options: what stands in for sources and sinks, and where dead letters go.
        loop: the thread; not yet started.
        receiver: the engine's part.
        addresses: see `Listener`.
        clock: returns the arrival time of a record, in nanoseconds since 1970.
        of_kafka: the application's sources of Kafka, by name.
        to_kafka: its sinks of Kafka, prepared, by id.
        streams: of sinks whose peers remember, as an earlier run has left them.
        logged: what the log has said of sources: generators go on behind it (graph-4).

    Attributes:
        sinks: by id.
        dead_letters: takes these.
        listened_to: the sources that get frames: all but generators and topics.

    Raises:
        CheckpointError: a generator's value cannot be read back.
        DeadLetterFileError: the file for dead letters cannot be opened.
        ListenError: an address cannot be listened on.
        UnsupportedTopology: there is no edge for a source or a sink of that kind.
        WallarooParameterError: stdin, or a sink, is not possible as it is asked for.
    """

    def __init__(
        self,
        application: Application,
        options: ServeOptions,
        loop: LoopThread,
        receiver: Receiver,
        addresses: Mapping[str, Address] | None = None,
        clock: Callable[[], int] = time.time_ns,
        of_kafka: Mapping[str, Source] = MappingProxyType({}),
        to_kafka: Mapping[SinkId, OutputSink] = MappingProxyType({}),
        streams: Mapping[SinkId, Stream] = MappingProxyType({}),
        logged: Mapping[str, LoggedSource] = MappingProxyType({}),
    ) -> None:
        self._options = options
        self._streams = streams
        self._to_kafka = to_kafka
        self._loop = loop
        self._receiver = receiver
        self._paused_by: set[str] = set()
        sources = listening_sources(application.sources)
        self.listened_to = set(sources)
        generators = Generators(application.sources, receiver, clock, logged)
        self.sinks = self._make_sinks(application.sinks)
        readers = [] if options.stdin is None else [self._make_reader(options.stdin, sources)]
        self.dead_letters = DeadLetters(
            options.dead_letters, most=options.dead_letter_bytes, metrics=options.metrics
        )
        try:
            self._listener = Listener(
                {} if readers else sources,
                receiver,
                addresses=addresses,
                max_connections=options.max_connections,
                idle_timeout=options.idle_timeout,
            )
        except BaseException:
            self.dead_letters.close()
            raise
        self._sources: list[Source] = [*readers, self._listener, generators]
        self._sources += of_kafka.values()
        self._began = time.monotonic()
        if options.metrics is not None:
            options.metrics.before_tick(self._report)

    @property
    def received(self) -> Mapping[str, int]:
        """Frames and values per source."""
        return {name: n for source in self._sources for name, n in source.received.items()}

    @property
    def addresses(self) -> Mapping[str, Address]:
        """Where each source listens."""
        return self._listener.addresses

    @property
    def written(self) -> int:
        """Outputs delivered, of all sinks."""
        return sum([sink.written for sink in self.sinks.values()])

    @property
    def pending(self) -> int:
        """Outputs made and not delivered, of all sinks."""
        return sum([sink.pending for sink in self.sinks.values()])

    def open(self, first: Callable[[], object] = lambda: None) -> None:
        """Start the loop and everything in it, and announce the addresses; from another thread.

        Args:
            first: called in the loop's thread before anything can be received; after that the
                thread may be in user code, which may never return.
        """
        self._loop.start()
        self._loop.call(self._start, first)
        self._say("running")
        self._listener.announce(sys.stderr)

    @property
    def paused_by(self) -> frozenset[str]:
        """The reasons for which nothing is received now; in any thread."""
        return frozenset(self._paused_by)

    def pause(self, reason: str = "engine") -> None:
        """Receive nothing more until `resume` is called with the same reason.

        A `Receiver` may call this while it receives.
        """
        if not self._paused_by:
            for source in self._sources:
                source.pause()
        self._paused_by.add(reason)

    def resume(self, reason: str = "engine") -> None:
        """Receive again, unless there is another reason to pause."""
        if reason in self._paused_by:
            self._paused_by.remove(reason)
            if not self._paused_by:
                for source in self._sources:
                    source.resume()

    def refuse(self) -> None:
        """Drop all connections and receive nothing more; what is on the way out goes on."""
        for source in self._sources:
            source.close()

    async def finish(self, processed: Callable[[], Awaitable[object]]) -> None:
        """End in order (stop-1): receive what was sent by now, process and deliver it.

        Args:
            processed: waits until what was received is processed.
        """
        self._say("stopping")
        for source in reversed(self._sources):  # generators first: they never end by themselves
            await source.stop()
        await processed()
        await self.drain()

    async def drain(self) -> None:
        """Wait until all outputs are delivered."""
        await asyncio.gather(*[sink.drain() for sink in self.sinks.values()])

    async def kept_by_peers(self) -> None:
        """Wait until the peers that remember have their streams, as far as that is known."""
        await asyncio.gather(*[sink.kept_by_peer() for sink in self._resuming.values()])

    def complete(self) -> None:
        """Say that all that earlier runs may have sent to sinks has been written again (sink-9)."""
        for sink in self._resuming.values():
            sink.complete()

    def stream_ends(self) -> dict[SinkId, int]:
        """Return how many bytes the streams have of sinks whose peers remember."""
        return {id_: sink.end for id_, sink in self._resuming.items()}

    def streams(self, ends: Mapping[SinkId, int]) -> dict[SinkId, Stream]:
        """Return these streams as they were when they had so many bytes."""
        return {id_: self._resuming[id_].stream(end) for id_, end in ends.items()}

    @property
    def _resuming(self) -> dict[SinkId, ResumingSink]:
        return {id_: one for id_, one in self.sinks.items() if isinstance(one, ResumingSink)}

    def close(self) -> None:
        """Close everything; what is not delivered stays undelivered."""
        self.refuse()
        for sink in self.sinks.values():
            sink.close()
        self.dead_letters.close()
        if self._options.metrics is not None:
            self._options.metrics.after_last_tick(self._report)
            self._say("ended")

    # -- in any thread -----------------------------------------------------------------------

    def progress(self, details: Mapping[str, int | float | str]) -> Progress:
        """Return what was done so far, with the engine's own figures."""
        return Progress(
            received=sum(self.received.values()),
            written=self.written,
            pending=self.pending,
            dead_letters=self.dead_letters.counts.total(),
            details=details,
        )

    def summary(self, problem: str | None) -> Summary:
        """Return what the edges did in all, with why the run ended early, if it did."""
        undelivered = {id_: sink.pending for id_, sink in self.sinks.items()}
        return Summary(
            received=dict(self.received),
            written={id_: sink.written for id_, sink in self.sinks.items()},
            undelivered=undelivered,
            dead_letters=dict(self.dead_letters.counts),
            dropped_frames=dict(self._listener.connections.dropped),
            seconds=time.monotonic() - self._began,
            exit_code=1 if problem is not None or any(undelivered.values()) else 0,
            problem=problem,
            refused_connections=dict(self._listener.refused),
            deleted_dead_letters=self.dead_letters.deleted,
        )

    def _report(self) -> None:
        """Copy the counts to the figures."""
        metrics, received, connections = (
            self._options.metrics,
            self.received,
            self._listener.connections,
        )
        assert metrics is not None
        for name, source in metrics.sources.items():
            source.frames = received[name]
            if name in connections.received:
                source.bytes = connections.bytes_in[name]
                source.connections = connections.open[name]
                source.refused_connections = self._listener.refused[name]
                source.dropped_frames = connections.dropped[name]
        for id_, figures in metrics.sinks.items():
            sink = self.sinks[id_]
            figures.written, figures.waiting = sink.written, sink.pending
            figures.bytes, figures.connects = sink.bytes_out, sink.connects
            figures.full, figures.connected = sink.full, sink.connected

    def _say(self, state: str) -> None:
        if self._options.metrics is not None:
            self._options.metrics.state = state

    # -- inside ------------------------------------------------------------------------------

    def _start(self, first: Callable[[], object]) -> None:
        first()
        for sink in self.sinks.values():
            sink.start()
        for source in self._sources:
            source.start()

    def _make_sinks(self, sinks: Mapping[SinkId, Sink]) -> dict[SinkId, OutputSink]:
        turn = threading.Lock()
        return {id_: self._make_sink(id_, sink, turn) for id_, sink in sinks.items()}

    def _make_sink(self, id_: SinkId, sink: Sink, turn: threading.Lock) -> OutputSink:
        if self._options.stdout is not None:
            if isinstance(sink.config, KafkaSinkConfig):
                raise WallarooParameterError(
                    f"stdout cannot stand in for sink {id_[0]}/{id_[1]}, which writes to a topic: "
                    "its outputs have keys and partitions. In a test, wallaroo.testing shows them"
                )
            return StreamSink(
                self._options.stdout,
                turn=turn,
                on_room=self._receiver.sinks_have_room,
                on_broken=self._receiver.outputs_broken,
            )
        config = sink.config
        if id_ in self._to_kafka:
            return self._to_kafka[id_]
        if not isinstance(config, TCPSinkConfig):
            kind = type(config).__name__
            raise UnsupportedTopology("build-2", f"{id_[0]}/{id_[1]}", f"no sink for a {kind}")
        if not config.port:
            raise WallarooParameterError(
                f"sink {id_[0]}/{id_[1]} cannot connect to {config.address}: nobody listens on "
                "port 0; give it an address (--out HOST:PORT), or write to --stdout"
            )
        address, on_room = (config.host, config.port), self._receiver.sinks_have_room
        if config.resume:
            return ResumingSink(id_, *address, self._streams.get(id_, NEW), on_room=on_room)
        return TCPSink(id_, *address, on_room=on_room)

    def _make_reader(self, stdin: IO[bytes], sources: Mapping[str, TCPSourceConfig]) -> LineReader:
        if len(sources) != 1:
            raise WallarooParameterError(
                "stdin stands in for an application's only source; "
                f"this one has {len(sources)}: {', '.join(sources)}"
            )
        ((name, config),) = sources.items()
        return LineReader(stdin, name, config.max_size, self._receiver, self._loop)
