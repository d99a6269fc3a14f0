"""The reference engine live: TCP in, a machine, TCP out, in a thread with an event loop of its own.

The caller's thread is free to wait, to show progress and to take signals; user code runs in the
server's, so that code which never returns cannot keep the caller from giving up on it.

A stop (stop-1) goes in order: no more listening, what senders have sent by then is read and
processed, outputs are delivered. It ends after `stop_timeout` seconds at the latest. When the end
of stdin was the reason nobody is in a hurry: then the seconds count from the last thing that went
on, and a slow reader of stdout is waited for without end.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from wallaroo.config import TCPSinkConfig, TCPSourceConfig
from wallaroo.engine import Handle, Progress, ServeOptions, Summary
from wallaroo.errors import UnsupportedTopology, WallarooParameterError
from wallaroo.topology import Application, SinkId
from wallaroo.transport.dead_letters import DeadLetters
from wallaroo.transport.listener import Address, Listener, listening_sources
from wallaroo.transport.loop_thread import LoopThread
from wallaroo.transport.sink import TCPSink
from wallaroo.transport.streams import LineReader, StreamSink
from wallaroo_reference.machine import Machine
from wallaroo_reference.server_feeder import Feeder, OutputSink

_LOOK = 0.05  # seconds between looks at a stop's progress
_GRACE = 1.0  # seconds the server's thread has to answer after a stop's time is over


def serve(
    application: Application, make_machine: Callable[[], Machine], options: ServeOptions
) -> Handle:
    """Listen on the application's sources and run until stopped.

    Args:
        application: what to run.
        make_machine: makes a machine for it, without state.
        options: how.

    Raises:
        ListenError: an address cannot be listened on.
        DeadLetterFileError: the file for dead letters cannot be opened.
        WallarooParameterError: stdin, or a sink, is not possible as it is asked for.
    """
    return Server(application, make_machine, options)


class Server:
    """A served application: `wallaroo.engine.Handle`."""

    def __init__(
        self,
        application: Application,
        make_machine: Callable[[], Machine],
        options: ServeOptions,
        addresses: Mapping[str, Address] | None = None,
    ) -> None:
        sources = listening_sources(application.sources)
        self._again = partial(Server, application, make_machine, options)
        self._options = options
        self._done = threading.Event()
        self._result: Summary | None = None
        self._problem: str | None = None
        self._asked_at: float | None = None  # monotonic; when a stop was asked for
        self._patient = False
        self._may_read = threading.Event()  # the thread that reads stdin
        self._may_read.set()
        self._machine = make_machine()
        self._sinks = self._make_sinks(application)
        self._reader = self._make_reader(sources)
        self._dead_letters = DeadLetters(options.dead_letters)
        try:
            self._listener = Listener(
                {} if self._reader else sources, self._deliver, addresses=addresses
            )
        except BaseException:
            self._dead_letters.close()
            raise
        self._received = dict.fromkeys(sources, 0) if self._reader else self._listener.received
        self._feeder = Feeder(
            self._machine,
            self._sinks,
            self._dead_letters,
            pause=self._pause,
            resume=self._resume,
            failed=self._fail,
        )
        self._asked: asyncio.Event
        self._task: asyncio.Task[None]
        self._began = time.monotonic()
        self._thread = LoopThread("wallaroo-reference")
        self._thread.start()
        self._thread.call(self._start)
        self._listener.announce(sys.stderr)

    @property
    def addresses(self) -> Mapping[str, Address]:
        """Where each source listens."""
        return self._listener.addresses

    def progress(self) -> Progress:
        """Return what it has done so far."""
        return Progress(
            received=sum(self._received.values()),
            written=sum([sink.written for sink in self._sinks.values()]),
            pending=sum([sink.pending for sink in self._sinks.values()]),
            dead_letters=self._dead_letters.counts.total(),
        )

    def wait(self, timeout: float | None = None) -> Summary | None:
        """Wait until the run has ended, `timeout` seconds at most; `None`: it has not."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._done.wait(_LOOK if end is None else min(_LOOK, end - time.monotonic())):
            if self._is_stuck():
                return self._summary("user code has not returned since the stop was asked for")
            if end is not None and time.monotonic() >= end:
                return None
        return self._result

    def stop(self) -> None:
        """Ask for a clean stop (stop-1) and return at once."""
        if self._asked_at is None:
            self._asked_at = time.monotonic()
        self._thread.post(self._ask)

    def kill(self) -> None:
        """End at once; what the system has been handed it may still send."""
        self._thread.post(self._task.cancel)
        self._done.wait(_GRACE)

    def restart(self) -> Handle:
        """Start again where the sources were, without state: there is no checkpoint."""
        return self._again(addresses=self.addresses)

    # -- all that follows runs in the server's thread ---------------------------------------------

    def _start(self) -> None:
        self._asked = asyncio.Event()
        for sink in self._sinks.values():
            sink.start()
        self._listener.start()
        if self._reader is not None:
            self._reader.start()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._asked.wait()
            if not await self._finish():
                waiting = self._feeder.unprocessed
                late = f"the stop was given up after {self._options.stop_timeout:g} s"
                if waiting:
                    late += f", with {waiting} frames received and not processed"
                self._problem = self._problem or late
        except asyncio.CancelledError:
            self._problem = "it was killed"
        finally:
            self._end()

    async def _finish(self) -> bool:
        """Process and deliver what was received; `False`: there was no time for all of it."""
        work = asyncio.create_task(self._work())
        since, mark = time.monotonic(), self._mark()
        while True:
            done, _ = await asyncio.wait({work}, timeout=_LOOK)
            if done:
                work.result()
                return True
            if self._patient:
                # A signal may still come, and counts from then.
                last, mark = mark, self._mark()
                if self._options.stdout is not None or mark != last:
                    since = time.monotonic()
            elif self._asked_at is not None:
                since = self._asked_at
            if time.monotonic() - since > self._options.stop_timeout:
                work.cancel()
                return False

    async def _work(self) -> None:
        if self._reader is not None:
            self._reader.stop()
        await self._listener.stop()
        await self._feeder.idle()
        for sink in self._sinks.values():
            await sink.drain()

    def _mark(self) -> tuple[int, int]:
        """Return what changes whenever something goes on."""
        return self._machine.sequence, sum([sink.written for sink in self._sinks.values()])

    def _end(self) -> None:
        self._listener.close()
        for sink in self._sinks.values():
            sink.close()
        self._dead_letters.close()
        self._result = self._summary(self._problem)
        self._may_read.set()
        self._done.set()
        asyncio.get_running_loop().stop()

    def _ask(self) -> None:
        self._patient = False
        self._asked.set()

    def _deliver(self, source: str, payloads: list[bytes]) -> None:
        self._feeder.deliver(source, payloads)

    def _deliver_lines(self, source: str, lines: list[bytes]) -> None:
        if self._reader is None or self._reader.stopped:
            return  # read when the stop had begun: not received
        self._received[source] += len(lines)
        self._feeder.deliver(source, lines)

    def _lines_ended(self, problem: str | None) -> None:
        if problem is not None:
            self._problem = self._problem or f"stdin: {problem}"
        self._patient = not self._asked.is_set()
        self._asked.set()

    def _pause(self) -> None:
        self._may_read.clear()
        self._listener.pause()

    def _resume(self) -> None:
        self._may_read.set()
        self._listener.resume()

    def _fail(self, problem: str) -> None:
        """End the run: nothing more is received or processed; what is out is delivered."""
        self._problem = self._problem or problem
        self._listener.close()
        if self._asked_at is None:
            self._asked_at = time.monotonic()
        self._ask()

    # -- and this in both -------------------------------------------------------------------------

    def _is_stuck(self) -> bool:
        if self._asked_at is None:
            return False
        return time.monotonic() - self._asked_at > self._options.stop_timeout + _GRACE

    def _summary(self, problem: str | None) -> Summary:
        undelivered = {id_: sink.pending for id_, sink in self._sinks.items()}
        return Summary(
            received=dict(self._received),
            written={id_: sink.written for id_, sink in self._sinks.items()},
            undelivered=undelivered,
            dead_letters=dict(self._dead_letters.counts),
            dropped_frames=dict(self._listener.dropped),
            seconds=time.monotonic() - self._began,
            exit_code=1 if problem is not None or any(undelivered.values()) else 0,
            problem=problem,
            findings=tuple(self._machine.findings),
        )

    def _make_sinks(self, application: Application) -> dict[SinkId, OutputSink]:
        turn = threading.Lock()
        sinks: dict[SinkId, OutputSink] = {}
        for id_, sink in application.sinks.items():
            if self._options.stdout is not None:
                sinks[id_] = StreamSink(
                    self._options.stdout,
                    turn=turn,
                    on_room=self._on_room,
                    on_broken=self._on_broken,
                )
                continue
            config = sink.config
            if not isinstance(config, TCPSinkConfig):
                kind = type(config).__name__
                raise UnsupportedTopology("build-2", f"{id_[0]}/{id_[1]}", f"no sink for a {kind}")
            if not config.port:
                raise WallarooParameterError(
                    f"sink {id_[0]}/{id_[1]} cannot connect to {config.address}: port 0 is "
                    "nobody's; give it an address (--out HOST:PORT), or write to --stdout"
                )
            sinks[id_] = TCPSink(id_, config.host, config.port, on_room=self._on_room)
        return sinks

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
            # Once the server has ended nobody takes lines, nor waits for this thread.
            with contextlib.suppress(RuntimeError, concurrent.futures.CancelledError):
                self._thread.call(self._deliver_lines, name, lines)
                self._may_read.wait()

        def ended(problem: str | None) -> None:
            self._thread.post(self._lines_ended, problem)

        return LineReader(self._options.stdin, sources[name].max_size, deliver, ended)

    def _on_room(self) -> None:
        self._feeder.go_on()

    def _on_broken(self, problem: str) -> None:
        self._fail(problem)
        self._feeder.abandon()
