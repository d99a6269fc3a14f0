"""Both edges of a served application: what comes in, what goes out, and how that ends (stop-1).

Sources listen or read standard input; sinks connect or write to standard output; dead letters go
to a file. What happens between the two edges is the engine's: it is given frames, writes outputs,
and says when to pause.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from wallaroo.config import TCPSinkConfig, TCPSourceConfig
from wallaroo.engine import Progress, ServeOptions, Summary
from wallaroo.errors import UnsupportedTopology, WallarooParameterError
from wallaroo.findings import Finding
from wallaroo.records import End, Value
from wallaroo.topology import Application, Sink, SinkId
from wallaroo.transport.dead_letters import DeadLetters
from wallaroo.transport.generators import Generators, LoggedSource
from wallaroo.transport.listener import Address, Listener, listening_sources
from wallaroo.transport.sink import TCPSink
from wallaroo.transport.streams import LineReader, StreamSink
from wallaroo.transport.threads import LoopThread


class Core(Protocol):
    """What stands between the edges: an engine's part. Called in the loop's thread."""

    def deliver(self, source: str, payloads: list[bytes]) -> None:
        """Take the frames of a source that have just been received, in order."""

    def take(self, records: list[Value | End]) -> None:
        """Take the values of a generator source that have just been made, and its end."""

    def when_sequenced(self, close: Callable[[], None]) -> None:
        """Have `close` called, in the loop's thread, once all that was delivered is sequenced.

        It then tells the sender that all is taken (frame-4). If the engine ends before that, it is
        not called.
        """

    def sinks_have_room(self) -> None:
        """Go on: a sink that was full has room again."""

    def input_ended(self, problem: str | None) -> None:
        """Stop: standard input has ended, with what was wrong if anything was."""

    def outputs_broken(self, problem: str) -> None:
        """End: nothing more can be written to standard output."""


class OutputSink(Protocol):
    """Where a sink's outputs go: over TCP, or into a pipe."""

    written: int
    pending: int
    bytes_out: int
    connects: int
    full: bool

    @property
    def connected(self) -> bool:
        """Whether outputs can go out."""

    def start(self) -> None:
        """Begin, in the running loop."""

    def write(self, outputs: Sequence[bytes]) -> None:
        """Take outputs."""

    def look(self) -> None:
        """Find out now what has been delivered."""

    async def drain(self) -> None:
        """Wait until they are delivered."""

    def close(self) -> None:
        """Close; what is not delivered stays `pending`."""


class Edges:
    """An application's edges. Methods belong to the loop's thread, unless they say otherwise.

    Args:
        application: whose.
        options: what stands in for sources and sinks, and where dead letters go.
        loop: the thread; not yet started.
        core: the engine's part.
        addresses: see `Listener`.
        clock: returns the arrival time of a record, in nanoseconds since 1970.

    Attributes:
        sinks: by id.
        dead_letters: takes these.

    Raises:
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
        core: Core,
        addresses: Mapping[str, Address] | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._options = options
        self._loop = loop
        self._core = core
        self._may_read = threading.Event()  # the thread that reads stdin
        self._may_read.set()
        sources = listening_sources(application.sources)
        self._generators = Generators(application.sources, core.take, clock)
        self.sinks = self._make_sinks(application.sinks)
        self._reader = self._make_reader(sources)
        self.dead_letters = DeadLetters(options.dead_letters, metrics=options.metrics)
        try:
            self._listener = Listener(
                {} if self._reader else sources,
                core.deliver,
                when_sequenced=core.when_sequenced,
                addresses=addresses,
                max_connections=options.max_connections,
                idle_timeout=options.idle_timeout,
            )
        except BaseException:
            self.dead_letters.close()
            raise
        self._taken = dict.fromkeys(sources, 0) if self._reader else self._listener.received
        self._began = time.monotonic()
        if options.metrics is not None:
            options.metrics.before_tick(self._report)

    @property
    def received(self) -> Mapping[str, int]:
        """Frames and values per source."""
        return {**self._taken, **self._generators.received}

    @property
    def listened_to(self) -> set[str]:
        """The sources that get frames: all but generators."""
        return set(self._taken)

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

    def pause(self) -> None:
        """Read nothing more until `resume`; `deliver` may call this."""
        self._may_read.clear()
        self._listener.pause()
        self._generators.pause()

    def resume(self) -> None:
        """Read again."""
        self._may_read.set()
        self._generators.resume()
        if self._listener.paused:
            self._listener.resume()

    def go_on_behind(self, logged: Mapping[str, LoggedSource]) -> None:
        """See `Generators.go_on_behind`."""
        self._generators.go_on_behind(logged)

    def refuse(self) -> None:
        """Drop all connections and take nothing more in; what is on the way out goes on."""
        self._listener.close()
        self._generators.stop()

    async def finish(self, processed: Callable[[], Awaitable[object]]) -> None:
        """End in order (stop-1): receive what was sent by now, process and deliver it.

        Args:
            processed: waits until what was received is processed.
        """
        self._say("stopping")
        if self._reader is not None:
            self._reader.stop()
        self._generators.stop()
        await self._listener.stop()
        await processed()
        await self.drain()

    async def drain(self) -> None:
        """Wait until all outputs are delivered."""
        await asyncio.gather(*[sink.drain() for sink in self.sinks.values()])

    def close(self) -> None:
        """Close everything; what is not delivered stays undelivered."""
        self._listener.close()
        self._generators.stop()
        for sink in self.sinks.values():
            sink.close()
        self.dead_letters.close()
        self._may_read.set()
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

    def summary(
        self,
        problem: str | None,
        findings: Sequence[Finding] = (),
        *,
        late: Mapping[tuple[str, str], int] | None = None,
        open_windows: int = 0,
    ) -> Summary:
        """Return what was done in all, with why it ended early, if it did."""
        undelivered = {id_: sink.pending for id_, sink in self.sinks.items()}
        return Summary(
            received=dict(self.received),
            written={id_: sink.written for id_, sink in self.sinks.items()},
            undelivered=undelivered,
            dead_letters=dict(self.dead_letters.counts),
            dropped_frames=dict(self._listener.dropped),
            seconds=time.monotonic() - self._began,
            exit_code=1 if problem is not None or any(undelivered.values()) else 0,
            problem=problem,
            findings=tuple(findings),
            refused_connections=dict(self._listener.refused),
            late=dict(late or {}),
            open_windows=open_windows,
        )

    def _report(self) -> None:
        """Copy the counts to the figures."""
        metrics, received = self._options.metrics, self.received
        assert metrics is not None
        for name, source in metrics.sources.items():
            source.frames = received[name]
            if name in self._listener.received:
                source.bytes = self._listener.bytes_in[name]
                source.connections = self._listener.open[name]
                source.refused_connections = self._listener.refused[name]
                source.dropped_frames = self._listener.dropped[name]
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
        self._listener.start()
        self._generators.start()
        if self._reader is not None:
            self._reader.start()

    def _make_sinks(self, sinks: Mapping[SinkId, Sink]) -> dict[SinkId, OutputSink]:
        turn = threading.Lock()
        return {id_: self._make_sink(id_, sink, turn) for id_, sink in sinks.items()}

    def _make_sink(self, id_: SinkId, sink: Sink, turn: threading.Lock) -> OutputSink:
        if self._options.stdout is not None:
            return StreamSink(
                self._options.stdout,
                turn=turn,
                on_room=self._core.sinks_have_room,
                on_broken=self._core.outputs_broken,
            )
        config = sink.config
        if not isinstance(config, TCPSinkConfig):
            kind = type(config).__name__
            raise UnsupportedTopology("build-2", f"{id_[0]}/{id_[1]}", f"no sink for a {kind}")
        if not config.port:
            raise WallarooParameterError(
                f"sink {id_[0]}/{id_[1]} cannot connect to {config.address}: nobody listens on "
                "port 0; give it an address (--out HOST:PORT), or write to --stdout"
            )
        return TCPSink(id_, config.host, config.port, on_room=self._core.sinks_have_room)

    def _make_reader(self, sources: Mapping[str, TCPSourceConfig]) -> LineReader | None:
        if self._options.stdin is None:
            return None
        if len(sources) != 1:
            raise WallarooParameterError(
                "stdin stands in for an application's only source; "
                f"this one has {len(sources)}: {', '.join(sources)}"
            )
        (name,) = sources

        def deliver(lines: list[bytes]) -> None:
            # Once the loop has ended, nobody takes lines or waits for this thread.
            with contextlib.suppress(RuntimeError, concurrent.futures.CancelledError):
                self._loop.call(self._deliver_lines, name, lines)
                self._may_read.wait()

        def ended(problem: str | None) -> None:
            problem = None if problem is None else f"stdin: {problem}"
            self._loop.post(self._core.input_ended, problem)

        return LineReader(self._options.stdin, sources[name].max_size, deliver, ended)

    def _deliver_lines(self, source: str, lines: list[bytes]) -> None:
        if self._reader is None or self._reader.stopped:
            return  # it was read after the stop had begun, so it counts as not received
        self._taken[source] += len(lines)
        self._core.deliver(source, lines)
