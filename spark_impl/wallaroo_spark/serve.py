"""Wallaroo applications live on Spark: TCP in, a streaming query, TCP out.

The listener, the input log and the sinks are in this process, in an event loop of their own; the
query runs in Spark's JVM, asks for input (`wallaroo_spark.log_feed`) and hands over each batch's
outputs (`wallaroo_spark.delivery`). One thread of ours brings Spark up while frames are already
received, watches the query, and ends everything in order.

A stop (stop-1): no more listening, what senders have sent by then is logged, processed, committed
and delivered. It ends after `stop_timeout` seconds without progress at the latest: Spark's first
batches after a start take several seconds, so a limit on the whole would fail short runs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wallaroo.config import TCPSinkConfig
from wallaroo.engine import Handle, Progress, ServeOptions, Summary
from wallaroo.errors import UnsupportedTopology, WallarooError, WallarooParameterError
from wallaroo.topology import Application, SinkId
from wallaroo.transport.dead_letters import DeadLetters
from wallaroo.transport.input_log import InputLog, InputLogError
from wallaroo.transport.listener import Address, Listener, listening_sources
from wallaroo.transport.loop_thread import LoopThread
from wallaroo.transport.sink import TCPSink
from wallaroo.transport.streams import LineReader, StreamSink
from wallaroo_spark.checkpoint import Checkpoint
from wallaroo_spark.delivery import Delivery, OutputSink
from wallaroo_spark.feed import FeedServer
from wallaroo_spark.java import find_java
from wallaroo_spark.job import CaseSpec, unpack
from wallaroo_spark.log_feed import LogFeed
from wallaroo_spark.plan import plan
from wallaroo_spark.session import Session, SessionSettings, close_session, session
from wallaroo_spark.shipping import pickle_application, ship
from wallaroo_spark.stream import streaming_rows
from wallaroo_spark.traces import merged
from wallaroo_spark.watch import Watch, just_before

_LOOK = 0.1  # seconds between looks at the query
_FIRST_BATCH = 60.0  # seconds a stop waits at least for Spark to come up and do its first batch


@dataclass(frozen=True)
class SparkOptions:
    """The engine's own options of ``wallaroo run``.

    Args:
        settings: Spark's.
        checkpoint: where recovery begins; `None`: nowhere, state and input are lost with the run.
        trigger: milliseconds from one micro-batch's start to the next; 0: as soon as possible.
        batch_bytes: payload bytes of a micro-batch at most.
        log_bytes: size of the input log from which the sources are not read any more.
    """

    settings: SessionSettings
    checkpoint: Path | None = None
    trigger: int = 0
    batch_bytes: int = 4 << 20
    log_bytes: int = 256 << 20


class Server:
    """A served application: `wallaroo.engine.Handle`.

    Raises:
        CheckpointError: the checkpoint cannot be used.
        InputLogError: the input log cannot be used.
        JavaNotFoundError: there is no Java for Spark.
        ListenError: an address cannot be listened on.
        ShippingError: the application cannot be sent to workers.
        WallarooParameterError: stdin, or a sink, is not possible as it is asked for.
    """

    def __init__(
        self,
        application: Application,
        options: ServeOptions,
        own: SparkOptions,
        *,
        addresses: Mapping[str, Address] | None = None,
        temporary: Path | None = None,
    ) -> None:
        self._application = application
        self._options = options
        self._own = own
        self._done = threading.Event()
        self._result: Summary | None = None
        self._problem: str | None = None
        self._session: Session | None = None
        self._asked = threading.Event()  # a stop was asked for
        self._killed = False
        self._may_read = threading.Event()  # the thread that reads stdin
        self._may_read.set()
        self._temporary = temporary
        self._up = contextlib.ExitStack()  # what is to be closed, in the opposite order
        self._began = time.monotonic()
        find_java()
        self._pickled = pickle_application(application)
        sources = listening_sources(application.sources)
        try:
            self._open(sources, addresses)
        except BaseException:
            self._up.close()
            raise
        self._thread = threading.Thread(target=self._run, name="wallaroo-spark", daemon=True)
        self._thread.start()

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
            details={
                "batches": self._delivery.batches,
                "batch_ms": round(1000 * self._batch_seconds, 1),
                "backlog": self._feed.received - self._delivery.processed,
                "entities": self._delivery.entities,
            },
        )

    def wait(self, timeout: float | None = None) -> Summary | None:
        """Wait until the run has ended, `timeout` seconds at most; `None`: it has not."""
        self._done.wait(timeout)
        return self._result

    def stop(self) -> None:
        """Ask for a clean stop (stop-1) and return at once."""
        self._asked.set()

    def kill(self) -> None:
        """End at once: Spark's JVM is killed, what is on the way is dropped."""
        self._killed = True
        if self._session is not None:
            self._session.kill()
        self._done.wait()

    def restart(self) -> Handle:
        """Start again where the sources were, from the checkpoint."""
        return Server(
            self._application,
            self._options,
            self._own,
            addresses=self.addresses,
            temporary=self._temporary,
        )

    # -- coming up ---------------------------------------------------------------------------

    def _open(self, sources: Any, addresses: Mapping[str, Address] | None) -> None:
        """Open everything of ours, so that what is wrong is known before Spark comes up."""
        options, own = self._options, self._own
        directory = own.checkpoint
        if directory is None:
            if self._temporary is None:
                self._temporary = Path(tempfile.mkdtemp(prefix="wallaroo-run-"))
            directory = self._temporary
            self._up.callback(self._forget, directory)
        self._checkpoint = Checkpoint(
            directory,
            self._application,
            partitions=options.partitions,
            default_partitions=_default_partitions(own.settings),
        )
        self._up.callback(self._checkpoint.close)
        log = InputLog.open(self._checkpoint.input_log, own.log_bytes)
        case = CaseSpec(
            self._pickled,
            partitions=self._checkpoint.partitions,
            isolated=options.isolation == "isolated",
            stop_on_error=options.on_error == "stop",
        )
        self._feed = LogFeed(
            log,
            case,
            tasks=self._checkpoint.partitions,
            batch_bytes=own.batch_bytes,
            committed=self._committed,
            failed=self._fail,
        )
        self._up.callback(self._feed.close)
        self._checkpoint.check_input(log.first_sequence)
        self._dead_letters = DeadLetters(options.dead_letters)
        self._up.callback(self._dead_letters.close)
        self._sinks = self._make_sinks()
        self._reader = self._make_reader(sources)
        self._listener = Listener(
            {} if self._reader else sources,
            self._deliver,
            when_sequenced=lambda close: self._feed.when_durable(lambda: self._loop.post(close)),
            addresses=addresses,
        )
        self._received = dict.fromkeys(sources, 0) if self._reader else self._listener.received
        self._loop = LoopThread("wallaroo-edges")  # nothing after this can be refused
        self._delivery = Delivery(
            self._application, self._sinks, self._loop, self._dead_letters, self._feed.frame
        )
        self._delivery.processed = log.first_sequence
        self._batch_seconds = 0.0
        self._loop.start()
        self._up.callback(self._loop.stop)
        self._loop.call(self._start)
        self._up.callback(lambda: self._loop.call(self._close_edges))
        self._listener.announce(sys.stderr)

    def _start(self) -> None:
        for sink in self._sinks.values():
            sink.start()
        self._listener.start()
        if self._feed.full:
            self._listener.pause()
        if self._reader is not None:
            self._reader.start()

    def _forget(self, directory: Path) -> None:
        if not self._killed:
            shutil.rmtree(directory, ignore_errors=True)

    def _close_edges(self) -> None:
        self._listener.close()
        for sink in self._sinks.values():
            sink.close()

    # -- frames, in the edges' thread --------------------------------------------------------

    def _deliver(self, source: str, payloads: list[bytes]) -> None:
        try:
            self._feed.append(source, payloads)
        except InputLogError as error:
            self._fail(str(error))
            self._listener.pause()
            return
        if self._feed.full:
            self._may_read.clear()
            self._listener.pause()

    def _deliver_lines(self, source: str, lines: list[bytes]) -> None:
        self._received[source] += len(lines)
        self._deliver(source, lines)

    def _committed(self) -> None:
        self._loop.post(self._read_on)

    def _read_on(self) -> None:
        if not self._feed.full and self._problem is None:
            self._may_read.set()
            if self._listener.paused:
                self._listener.resume()

    # -- the query, in a thread of its own ---------------------------------------------------

    def _run(self) -> None:
        try:
            self._run_query()
        except WallarooError as error:
            self._fail(str(error))
        except Exception as error:  # noqa: BLE001 - whatever Spark raises: it ends the run
            self._fail(self._delivery.ended or _first_line(error))
        finally:
            self._end()

    def _run_query(self) -> None:
        close_session()  # one that ran bounded cases has other settings, and no lock to keep
        self._session = running = session(self._own.settings, (self._checkpoint.lock,))
        if self._killed:
            running.kill()
        self._up.callback(close_session)
        self._address = self._up.enter_context(FeedServer(self._feed)).address
        try:
            self._work(running)
        except Exception as error:
            if not _worker_died(error) or self._problem or self._killed:
                raise
            self._find_deadly_call(running)

    def _find_deadly_call(self, running: Session) -> None:
        """Find out in which call workers die, now that Spark gave up; end there (dead-3)."""
        case = self._feed.case
        host = running.spark.sparkContext.getConf().get("spark.driver.host")
        with Watch(host) as watch:
            self._feed.case = replace(case, watched=watch.address)
            try:
                self._work(running)
            except Exception as error:
                deadly = watch.deadly()
                if not _worker_died(error) or deadly is None:
                    raise
            else:
                return  # it did not happen again
        self._delivery.deadly = deadly
        self._feed.case = replace(case, limit=just_before(deadly.order))
        self._work(running)

    def _work(self, running: Session) -> None:
        """Run the query until a stop is asked for, or something fails."""
        rows = streaming_rows(
            running.spark,
            self._address,
            levels=plan(self._application).levels,
            shards=self._checkpoint.partitions,
            shipment=ship(running, running.directory),
        )
        writer = rows.writeStream.foreachBatch(self._take_batch).option(
            "checkpointLocation", str(self._checkpoint.spark)
        )
        if self._own.trigger:
            writer = writer.trigger(processingTime=f"{self._own.trigger} milliseconds")
        query: Any = writer.start()
        while not self._asked.is_set() and self._problem is None:
            if query.awaitTermination(_LOOK):
                raise WallarooError("Spark ended the query")
        if self._problem is None:
            self._finish(query)
        with contextlib.suppress(Exception):
            query.stop()

    def _take_batch(self, rows: Any, _batch: int) -> None:
        began = time.monotonic()
        self._delivery.deliver(merged([unpack(row[2]) for row in rows.collect()]))
        self._batch_seconds = time.monotonic() - began
        if self._feed.case.watched:
            self._feed.case = replace(self._feed.case, watched=None)  # it did not die again

    def _finish(self, query: Any) -> None:
        """Process and deliver what was received; give up when nothing goes on any more."""
        if self._reader is not None:
            self._reader.stop()
        stopping = threading.Thread(target=self._stop_listening, daemon=True)
        stopping.start()
        mark: Any = None
        deadline = 0.0
        while stopping.is_alive() or self._delivery.processed < self._feed.received:
            if query.awaitTermination(_LOOK):
                raise WallarooError("Spark ended the query")
            if self._problem is not None:
                return
            written = sum([sink.written for sink in self._sinks.values()])
            now = time.monotonic()
            if mark != (mark := (self._delivery.processed, written)):
                first = 0.0 if self._delivery.batches else _FIRST_BATCH
                deadline = now + max(self._options.stop_timeout, first)
            elif now > deadline:
                waiting = self._feed.received - self._delivery.processed
                self._fail(
                    f"the stop was given up after {self._options.stop_timeout:g} s without "
                    f"progress, with {waiting} frames received and not processed"
                )
                return
        query.processAllAvailable()  # returns when the last batch is committed

    def _stop_listening(self) -> None:
        self._loop.run(self._listener.stop())

    def _fail(self, problem: str) -> None:
        self._problem = self._problem or problem

    def _end(self) -> None:
        undelivered = {id_: sink.pending for id_, sink in self._sinks.items()}
        with contextlib.suppress(Exception):
            self._up.close()
        if self._killed:
            self._problem = "it was killed"
        self._result = Summary(
            received=dict(self._received),
            written={id_: sink.written for id_, sink in self._sinks.items()},
            undelivered=undelivered,
            dead_letters=dict(self._dead_letters.counts),
            dropped_frames=dict(self._listener.dropped),
            seconds=time.monotonic() - self._began,
            exit_code=1 if self._problem is not None or any(undelivered.values()) else 0,
            problem=self._problem,
        )
        self._may_read.set()
        self._done.set()

    # -- edges -------------------------------------------------------------------------------

    def _make_sinks(self) -> dict[SinkId, OutputSink]:
        turn = threading.Lock()
        sinks: dict[SinkId, OutputSink] = {}
        for id_, sink in self._application.sinks.items():
            if self._options.stdout is not None:
                sinks[id_] = StreamSink(self._options.stdout, turn=turn, on_broken=self._fail)
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
            sinks[id_] = TCPSink(id_, config.host, config.port)
        return sinks

    def _make_reader(self, sources: Any) -> LineReader | None:
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
            with contextlib.suppress(RuntimeError):
                self._loop.call(self._deliver_lines, name, lines)
                self._may_read.wait()

        def ended(problem: str | None) -> None:
            if problem is not None:
                self._fail(f"stdin: {problem}")
            self._asked.set()

        return LineReader(self._options.stdin, sources[name].max_size, deliver, ended)


def _default_partitions(settings: SessionSettings) -> int:
    """Return one partition for each core of a local master, two elsewhere."""
    inside = settings.master.removeprefix("local").strip("[]").split(",")[0]
    if inside == "*":
        return os.cpu_count() or 1
    return int(inside) if inside.isdigit() else 2


def _worker_died(error: Exception) -> bool:
    text = str(error)
    return "Python worker exited unexpectedly" in text or "Python worker crashed" in text


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:500]
