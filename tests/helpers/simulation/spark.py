"""Serves applications of generated cases by the Spark engine; what its JVM does is done here.

Spark writes down where a micro-batch ends before that begins, and that it is done behind it, with
the states. So after a crash the last micro-batch is run again, from the states before it. Tasks run
in the process of the driver; some are tried twice, and workers forget what they keep. Spark syncs
nothing. Here its files outlive a loss of power all the same, and what the engine has not synced may
be lost; the disk does not fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import pickle
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from wallaroo_mutants.machinery import Tasks
from wallaroo_spark.bounded.traces import Records, trace_of
from wallaroo_spark.live import kafka_sinks, log_feed, offset_log, query, run, serve
from wallaroo_spark.live.delivery import RunEndedError
from wallaroo_spark.live.offset_log import OffsetLog
from wallaroo_spark.live.options import SparkOptions
from wallaroo_spark.live.query import LiveQuery
from wallaroo_spark.live.spark_part import cut_last
from wallaroo_spark.wire.job import FINISHED, LEAVING, SEGMENT_BYTES, Report, unpack
from wallaroo_spark.wire.outbox import Finished
from wallaroo_spark.worker import fetching, leaving
from wallaroo_spark.worker.modules import Shipment
from wallaroo_spark.worker.plan import plan
from wallaroo_spark.worker.program import program_of
from wallaroo_spark.worker.segments import MemoryMap
from wallaroo_spark.worker.tasks import list_entities

from simulation import topic_cases
from simulation.cases import CaseRun
from simulation.checkpoints import DIRECTORY, CheckpointRun
from simulation.checks import check_state
from simulation.loop import Loop, Thread
from simulation.plans import Life
from simulation.threads import Threads
from simulation.topic_cases import TopicCaseRun
from simulation.topics import KafkaPlan
from simulation.world import Crash
from wallaroo.engine import Case, ServeOptions, Summary
from wallaroo.errors import WallarooError
from wallaroo.overriding import override
from wallaroo.topology import Application
from wallaroo.trace import Entity, OpenWindow, Trace
from wallaroo.transport.kafka import planner
from wallaroo.transport.log_format import LoggedRun
from wallaroo.transport.private import sync_directory, write_durably
from wallaroo.windowing import kinds

_PART = DIRECTORY / "spark"
_PARTITIONS = 2
_BATCH_BYTES = (64, 500, 16 << 20)
_SEGMENT_BYTES = (64, 200, SEGMENT_BYTES)
_FORGETS = 0.1  # of the micro-batches: other workers run the tasks
_LEFT_TWICE = 0.1  # of the tasks from which outputs leave
_AT_A_COMMIT = 0.3  # of the lives: they die with a micro-batch whose outputs have left
_COMMIT = "commit"
_END = 10.0  # seconds that the end of a run takes at most


def drawn(seed: int) -> KafkaPlan:
    """Return the plan of a seed."""
    plan = topic_cases.drawn(seed)
    chance = Random(repr((seed, "spark")))
    lives = []
    for life in plan.lives:
        one = replace(life, faults=(), full=None)
        if one.stop_after is None and chance.random() < _AT_A_COMMIT:
            one = replace(one, crash_at=chance.randint(1, 3), crash_in=_COMMIT)
        lives.append(one)
    return replace(plan, lives=tuple(lives))


class OnSpark(CheckpointRun):
    """A run of a plan on the Spark engine."""

    partitions = _PARTITIONS
    longest_stop = 30.0  # each micro-batch takes its time, and some have one record
    _server: _Server | None = None

    def serve(self, loop: Loop) -> Any:
        """Serve the application, from the checkpoint; options differ from life to life."""
        chance = self.world.chance("options", self.world.life)
        program_of.cache_clear()
        self._workers_end()
        drawn = SparkOptions(
            checkpoint=DIRECTORY,
            batch_bytes=chance.choice(_BATCH_BYTES),
            log_bytes=chance.choice((500, 2_000, 20_000, 1 << 20)),
            master=f"local[{_PARTITIONS}]",
        )
        fixed = {name: value for name, value in self.fixed.items() if hasattr(drawn, name)}
        options = self.options("isolated" if self.isolated else "trusting")
        edges = _EdgesThread(loop, self.threads)
        own, clock = replace(drawn, **fixed), self.world.time_ns
        with mock.patch.object(run, "LoopThread", return_value=edges):
            self._server = _Server(self.application, options, own, self.threads, clock)
        return self._server

    def live(self, life: Life) -> Summary | None:
        """Run a process, and close what it had open."""
        self._server = None
        try:
            return super().live(life)
        finally:
            self.world.dead = True
            if self._server is not None:
                with contextlib.suppress(Crash, Exception):
                    self._server.close()
            self.threads.end()

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Let the threads of the engine be simulated, and its JVM."""
        stand_ins = self.threads.stand_ins

        def work(given: LiveQuery) -> None:
            try:
                _Jvm(self, given).run()
            except RunEndedError as error:
                raise WallarooError("Spark ended the query") from error

        parts: list[tuple[Any, str, Any]] = [
            *[(module, "threading", stand_ins) for module in (serve, query, log_feed, offset_log)],
            (kafka_sinks, "threading", stand_ins),
            (kafka_sinks, "call_at_once", _one_by_one),
            (leaving, "ThreadPoolExecutor", _OneByOne),
            (planner, "wait", lambda *_: None),
            (run, "find_java", lambda: None),
            (kinds, "_BUCKETS", self.world.chance("calendars").choice((1, kinds._BUCKETS))),
            (LiveQuery, "run", work),
        ]
        with super().around(), contextlib.ExitStack() as stack:
            for module, name, value in parts:
                stack.enter_context(mock.patch.object(module, name, value))
            yield

    def slowed(self, application: Application) -> Application:
        """Return the application as it is: it is sent to workers."""
        return application

    def held(self, case: Case) -> tuple[Sequence[Entity], Sequence[OpenWindow]]:
        """Return what the states of the last micro-batch hold."""
        with self.machine.looked_at():
            stores = _states()
        entities = [
            entity
            for (_, shard), store in stores.items()
            if (block := list_entities(shard, store).block)
            for entity in unpack(block).entities
        ]
        trace = trace_of(case, Records(case), plan(case.application), Finished(), entities)
        return trace.entities, trace.windows

    def stored_position(self) -> int:
        """Return where the states of the last micro-batch that is done stand."""
        done = len(_files(_PART / "commits"))
        position: int = _offset(_PART / "offsets" / str(done - 1))["next"] if done else 0
        return position

    def check_state(self, case: Case, wanted: Trace) -> None:
        """Check these states."""
        check_state(*self.held(case), wanted)

    def _workers_end(self) -> None:
        leaving._kept.clear()
        fetching._reader.cache_clear()


class SparkCaseRun(OnSpark, CaseRun):
    """A run with an application that listens to sockets, and has generators."""


class SparkTopicRun(OnSpark, TopicCaseRun):
    """A run with an application that reads topics; without other sources, its log is Spark's."""

    @override
    def logged(self) -> list[LoggedRun]:
        if list((DIRECTORY / "input").glob("*.log")):
            return super().logged()
        runs: list[LoggedRun] = []
        start = 0
        for path in sorted(_files(_PART / "offsets"), key=lambda path: int(path.name)):
            form = _offset(path)
            runs += OffsetLog.restored(None, start, form).runs(start, form["next"])
            start = form["next"]
        return runs


def drawn_run(plan: KafkaPlan) -> OnSpark:
    """Return a run of a plan: with topics, or without."""
    return (SparkTopicRun if plan.seed % 2 else SparkCaseRun)(plan)


class _Server(serve.Server):
    """The engine's server; it ends after the loop of its edges."""

    def __init__(
        self,
        application: Application,
        options: ServeOptions,
        own: SparkOptions,
        threads: Threads,
        clock: Callable[[], int],
    ) -> None:
        self._threads = threads
        super().__init__(application, options, own, clock=clock)

    def close(self) -> None:
        """Close what is still open of a process that has died."""
        self._up.close()

    @override
    def wait(self, timeout: float | None = None) -> Summary | None:
        self._threads.wait(self._done.is_set, _END)
        return super().wait(0)


class _EdgesThread(Thread):
    """The loop's thread, as other threads call it."""

    def __init__(self, loop: Loop, threads: Threads) -> None:
        super().__init__(loop)
        self._threads = threads

    @override
    def run(self, coroutine: Coroutine[Any, Any, Any], timeout: float | None = None) -> Any:
        try:
            if not self._threads.other:
                return super().run(coroutine, timeout)
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
            self._threads.wait(future.done)
        except (Crash, RuntimeError):
            if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                coroutine.close()
            raise
        return future.result()

    @override
    def call(self, function: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        async def call() -> Any:
            return function(*arguments, **more)

        return self.run(call())


class _Jvm:
    """Does what Spark does with a query.

    Args:
        run: whose.
        query: the query.
    """

    def __init__(self, run: OnSpark, query: LiveQuery) -> None:
        self._run = run
        self._world = run.world
        self._chance = run.world.chance("spark", run.world.life)
        self._query = query
        self._feed = query._feed
        size = run.world.chance("segments").choice(_SEGMENT_BYTES)
        self._feed.case = replace(self._feed.case, segment_bytes=size)
        self._tasks = Tasks(query._levels, _PARTITIONS, Shipment())
        self._tasks.stores = _states()
        self._number = len(_files(_PART / "commits"))

    def run(self) -> None:
        """Run the query, micro-batch by micro-batch, until it is to end."""
        for name in ("offsets", "commits", "states"):
            (_PART / name).mkdir(exist_ok=True)
        sync_directory(_PART)
        self._query.stage += 1
        start = self._end(self._number - 1) if self._number else self._feed.first()
        while not self._query.over.is_set():
            path = _PART / "offsets" / str(self._number)
            if not path.exists() and not self._planned(start):
                continue
            end = self._end(self._number)
            stores = {key: MemoryMap(store) for key, store in self._tasks.stores.items()}
            try:
                report = self._done(start, end)
            except fetching.TooMuchError as error:
                self._tasks.stores = stores
                some, of = map(int, re.findall(r"\d+", str(error)))
                self._feed.cut(cut_last(_PART, some, of)[1])
                continue
            self._query._delivery.deliver(report)
            plain = {key: dict(store) for key, store in self._tasks.stores.items()}
            self._written("states", pickle.dumps(plain))
            self._world.call(_COMMIT)
            self._written("commits", b"v1\n{}")
            self._number += 1
            start = end

    def _planned(self, start: int) -> bool:
        """Write down where the next micro-batch ends, if there is one."""
        end = self._feed.latest(start)
        if end == start:
            return False
        conf = {"conf": {"spark.sql.shuffle.partitions": str(_PARTITIONS)}}
        form = {"next": end, **self._feed.kept(start, end)}
        lines = ["v1", json.dumps(conf), json.dumps(form)]
        self._written("offsets", "\n".join(lines).encode())
        return True

    def _done(self, start: int, end: int) -> Report:
        """Run the tasks of a micro-batch, and return what they report."""
        if self._chance.random() < _FORGETS:
            self._run._workers_end()
        rows = self._tasks.run(self._feed.blocks(start, end))
        self._world.call("tasks")
        leaves: dict[int, list[Any]] = {}
        for row in rows:
            if row.level == LEAVING and row.block:
                leaves.setdefault(row.shard, []).append(unpack(row.block))
        reports = [unpack(row.block) for row in rows if row.level == FINISHED and row.block]
        for blocks in leaves.values():
            if self._chance.random() < _LEFT_TWICE:
                leaving.leave(pickle.loads(pickle.dumps(blocks)), self._query._departure)
                self._run._workers_end()
            reports.append(leaving.leave(blocks, self._query._departure))
        return Report.merged(reports)

    def _end(self, number: int) -> int:
        end: int = _offset(_PART / "offsets" / str(number))["next"]
        return end

    def _written(self, folder: str, data: bytes) -> None:
        write_durably(_PART / folder / str(self._number), data)


def _offset(path: Path) -> dict[str, Any]:
    """Return what Spark has kept of a micro-batch."""
    form: dict[str, Any] = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    return form


def _states() -> dict[tuple[int, int], MemoryMap]:
    """Return the map of each shard as of the last micro-batch that is done."""
    number = len(_files(_PART / "commits")) - 1
    if number < 0:
        return {}
    stored = pickle.loads((_PART / "states" / str(number)).read_bytes())
    return {key: MemoryMap(store) for key, store in stored.items()}


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.isdecimal()] if folder.exists() else []


def _one_by_one(calls: Iterable[Callable[[], object]]) -> None:
    for call in calls:
        call()


class _OneByOne:
    """A pool of one thread, that which calls."""

    def __init__(self, _most: int) -> None:
        pass

    def __enter__(self) -> _OneByOne:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    map = staticmethod(map)
