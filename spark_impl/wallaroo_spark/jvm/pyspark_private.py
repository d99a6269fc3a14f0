"""Every private name of PySpark that this engine uses, in one place.

PySpark has no public way to connect to a JVM that it has not started itself, nor to forget a dead
JVM so that a new one can replace it. The private names that are used here may change with any
release; ``tests/spark`` starts, ends and kills sessions, and fails if they do.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

CONNECTION_FILE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The environment variable with the file to which a JVM writes its gateway's port and secret."""

_WORKERS = "WALLAROO_WORKERS"


def connect(port: int, secret: str, conf: Mapping[str, str]) -> Any:
    """Return a `SparkSession` on the JVM with that gateway.

    Args:
        port: the gateway's port.
        secret: the gateway's secret.
        conf: Spark's settings.
    """
    from pyspark.sql import SparkSession

    # Its log goes to the root logger, as users' logs do: each command, and the whole traceback of
    # each failed batch, which the engine reports in one line.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_py4j)  # when the JVM dies, it logs there
    given = {
        "PYSPARK_GATEWAY_PORT": str(port),
        "PYSPARK_GATEWAY_SECRET": secret,
        # Local workers run the Python that runs this process; on a cluster its path may differ.
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
    }
    with _environment(given), _quiet(), _ctrl_c_kept():
        spark = SparkSession.builder.config(map=dict(conf)).getOrCreate()
    # When the JVM is killed, this server's connection breaks; that needs no traceback.
    context: Any = spark.sparkContext
    context._accumulatorServer.handle_error = lambda *_: None
    return spark


@contextlib.contextmanager
def workers_of_their_own(spark: Any, name: str) -> Iterator[None]:
    """Let Spark run the functions that it is given meanwhile in Python workers of their own.

    Spark keeps workers apart whose environment differs.

    Args:
        spark: the session.
        name: functions of one name share workers.
    """
    environment = spark.sparkContext.environment
    environment[_WORKERS] = name
    try:
        yield
    finally:
        del environment[_WORKERS]


def for_each_batch(writer: Any, take: Callable[[Iterator[Any]], None]) -> Any:
    """Let a query call `take` with the rows of each micro-batch, and return its writer.

    PySpark's `foreachBatch` makes a session and a frame of each micro-batch, and asks the JVM for
    the frame's schema. Of the driver's time for a micro-batch, that was the most.

    Args:
        writer: a `DataStreamWriter`.
        take: gets Arrow batches, which are collected when the first one is asked for.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    gateway = writer._spark._sc._gateway
    helper = gateway.jvm.org.apache.spark.sql.execution.streaming.sources.PythonForeachBatchHelper
    part = gateway.jvm.java.lang.reflect.Array.get
    helper.callForeachBatch(writer._jwrite, _ForEachBatch(take, part))
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    return writer


class _ForEachBatch:
    """What the JVM calls.

    Args:
        take: as for `for_each_batch`.
        part: the JVM's function that returns an array's item.
    """

    def __init__(
        self, take: Callable[[Iterator[Any]], None], part: Callable[[Any, int], Any]
    ) -> None:
        self._take = take
        self._part = part

    def call(self, frame: Any, number: int) -> None:
        """Take a micro-batch."""
        del number
        self._take(_collected(frame, self._part))

    class Java:
        """Its interface."""

        implements = (
            "org.apache.spark.sql.execution.streaming.sources.PythonForeachBatchFunction",
        )


def _collected(frame: Any, part: Callable[[Any, int], Any]) -> Iterator[Any]:
    """Yield the rows of one of the JVM's frames, as PySpark's `toArrow` has them."""
    from pyspark.errors.exceptions.captured import unwrap_spark_exception
    from pyspark.sql.pandas.serializers import ArrowCollectSerializer
    from pyspark.util import _load_from_socket

    found = frame.collectAsArrowToPython()
    # To unpack it would ask the JVM for its length before each item: 0.1 ms a question.
    place, secret, server = [part(found, number) for number in range(3)]
    try:
        with _load_from_socket((place, secret), ArrowCollectSerializer()) as stream:
            batches = list(stream)
    finally:
        with unwrap_spark_exception():
            server.getResult()  # raises what failed in the JVM
    yield from batches


def answers() -> bool:
    """Whether the JVM of the session answers."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    jvm: Any = SparkContext._jvm
    try:
        return jvm is not None and jvm.java.lang.System.nanoTime() is not None
    except (Py4JError, OSError):
        return False


def conf_of_gateway() -> list[tuple[str, str]]:
    """Return the settings of the JVM whose gateway the environment names."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return SparkConf().getAll()


def executors(spark: Any, most: int) -> list[dict[str, Any]]:
    """Return what Spark's status store says about at most `most` executors; seconds, numbers.

    Spark's own page shows the same, but need not run. Empty, if Spark gives nothing.
    """
    from py4j.protocol import Py4JError

    try:
        found = spark.sparkContext._jsc.sc().statusStore().executorList(True)
        return _as_figures([found.apply(index) for index in range(min(found.size(), most))])
    except Py4JError:  # a run can go on without these figures
        return []


def _as_figures(summaries: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            "executor": executor.id(),
            "host": executor.hostPort(),
            "cores": executor.totalCores(),
            "running": executor.activeTasks(),
            "tasks": executor.completedTasks(),
            "failed": executor.failedTasks(),
            "seconds": executor.totalDuration() / 1000,
            "gc_seconds": executor.totalGCTime() / 1000,
        }
        for executor in summaries
    ]


def disconnect(*, stop_spark: bool) -> None:
    """Close the connection to the JVM, and make PySpark forget the session.

    Args:
        stop_spark: stop Spark first; not possible if the JVM has ended.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context: Any = SparkContext._active_spark_context
    gateway: Any = SparkContext._gateway
    with _quiet():
        if context is not None and stop_spark:
            with contextlib.suppress(Exception):
                context.stop()
        if gateway is not None:
            with contextlib.suppress(Exception):
                gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Whether the root logger passes a record on: all but what Py4J logs there."""
    return record.module != "java_gateway"


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set these environment variables inside the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _ctrl_c_kept() -> Iterator[None]:
    """Keep what Ctrl-C does, if somebody has chosen it: PySpark has it end all jobs and raise."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        chosen = before not in (None, signal.default_int_handler)
        if chosen and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence py4j's log messages about a JVM that has ended."""
    logger = logging.getLogger("py4j")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before
