"""The Spark session: started directly, quiet, with the settings this engine was measured with.

The JVM is a child of this process that ends when its standard input does, so it does not outlive
us however we end. One process has one session at a time (PySpark's own limit); `session` hands it
out, and starts another when other settings are asked for.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from wallaroo.errors import WallarooError
from wallaroo_spark.archive import archive_for, unfinished
from wallaroo_spark.java import MODULE_OPTIONS, find_java

_LOGGING = Path(__file__).with_name("log4j2.properties")
_START_TIMEOUT = 60.0  # seconds until the JVM must have told its port
_END_TIMEOUT = 5.0  # seconds the JVM has for its shutdown hooks before it is killed
_ARCHIVE_TIMEOUT = 90.0  # seconds if it writes an archive of its classes at its end, once
_EXIT_CODES = (0, 143)  # of a JVM that has ended in order
_LAST_LINES = 20  # lines of the JVM's stderr kept for an error's text

_SETTINGS = {
    # The largest single gain there is: a job of one Python stage takes 35 ms instead of 85.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.pollingDelay": "2ms",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.stopTimeout": "30s",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Counting rows costs a read before every write: 87 ms for an append to a list, once.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "256",
    # Each of our rows is a packed block of messages: a batch of few rows is already large.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    "spark.sql.legacy.setCommandRejectsSparkCoreConfs": "false",
    "spark.task.maxFailures": "4",
    "spark.log.structuredLogging.enabled": "false",
}


class SparkStartError(WallarooError):
    """The JVM did not come up, or not as Spark wants it."""


@dataclass(frozen=True)
class SessionSettings:
    """What a session is started with.

    Args:
        master: Spark's master URL; ``local[*]`` runs inside the driver's JVM.
        conf: Spark settings over this engine's own.
        verbose: Spark's messages go to standard error.
        server_jvm: the optimising compiler and the parallel collector, for throughput; otherwise
            the quick compiler and the serial collector: short starts and low latency.
        driver_memory: the JVM's largest heap, as Java writes it.
    """

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    verbose: bool = False
    server_jvm: bool = False
    driver_memory: str = "2g"

    def spark_master(self) -> str:
        """Return the master URL with task retries, which a plain ``local[N]`` does not have."""
        if self.master == "local":
            return "local[1,4]"
        if self.master.startswith("local[") and "," not in self.master:
            return self.master.replace("]", ",4]")
        return self.master

    @property
    def local(self) -> bool:
        """Whether tasks run on this machine, inside the driver's JVM."""
        return self.master.startswith("local")


class Session:
    """A running JVM and its `SparkSession`.

    Args:
        settings: what to start it with.
        pass_fds: descriptors the JVM inherits, such as a lock that must not be free before the
            JVM is gone.
        makes_archive: write the archive at the end, which takes the JVM some seconds.

    Attributes:
        archive: where Spark's classes are kept for quicker starts (`wallaroo_spark.archive`).
        streamed: whether a stream has run: then this session's classes are worth keeping.

    Raises:
        JavaNotFoundError: there is no Java for it.
        SparkStartError: the JVM ended, or did not answer in time.
    """

    def __init__(
        self,
        settings: SessionSettings,
        pass_fds: tuple[int, ...] = (),
        *,
        makes_archive: bool = False,
    ) -> None:
        self.settings = settings
        self.directory = Path(tempfile.mkdtemp(prefix="wallaroo-spark-"))
        self.archive: Path
        self.streamed = False
        self._makes_archive = makes_archive
        self._unfinished: Path | None = None  # the archive that this session is to make
        self._last_lines: list[str] = []
        self._at_close: list[Callable[[], None]] = []
        try:
            self._process = self._start(pass_fds)
            self._echo = threading.Thread(target=self._echo_stderr, daemon=True)
            self._echo.start()
            port, secret = self._connection()
            self.spark = self._connect(port, secret)
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether the JVM is running."""
        return self._process.poll() is None

    @property
    def cores(self) -> int:
        """Number of tasks that run at the same time."""
        return int(self.spark.sparkContext.defaultParallelism)

    @property
    def pid(self) -> int:
        """The JVM's process id."""
        return self._process.pid

    def at_close(self, call: Callable[[], None]) -> None:
        """Have `call` called before Spark is stopped."""
        self._at_close.append(call)

    def close(self) -> None:
        """Stop Spark and wait for the JVM's end; nothing happens the second time."""
        for call in self._at_close:
            call()
        self._at_close.clear()
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        process = getattr(self, "_process", None)
        context = SparkContext._active_spark_context
        gateway: Any = SparkContext._gateway
        if context is not None and process is not None and process.poll() is None:
            with contextlib.suppress(Exception), _quiet():
                self.spark.stop()
        if gateway is not None:
            with contextlib.suppress(Exception), _quiet():
                gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
        SparkSession._activeSession = None
        if process is not None:
            if self._unfinished is not None and not self.streamed:
                process.kill()  # before it writes an archive of half the classes
            with contextlib.suppress(OSError):
                process.stdin.close()
            self._end(process)
            self._echo.join(_END_TIMEOUT)
            process.stderr.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for the JVM's end, and keep the archive if it wrote one."""
        writes = self._unfinished is not None and self.streamed
        try:
            process.wait(_ARCHIVE_TIMEOUT if writes else _END_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._unfinished is not None:
            with contextlib.suppress(OSError):
                if writes and process.returncode in _EXIT_CODES:
                    self._unfinished.rename(self.archive)
                self._unfinished.unlink(missing_ok=True)

    def kill(self) -> None:
        """Kill the JVM as kill -9 would."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)

    def _start(self, pass_fds: tuple[int, ...]) -> subprocess.Popen[bytes]:
        import pyspark

        java = find_java()
        home = Path(pyspark.__file__).parent
        collector = (
            ("-XX:+UseParallelGC",)
            if self.settings.server_jvm
            else ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
        )
        level = "info" if self.settings.verbose else "off"
        options = (f"-Xmx{self.settings.driver_memory}", *collector, *MODULE_OPTIONS)
        self.archive = archive_for(java, home / "jars", options)
        if self.archive.exists():
            options = (*options, f"-XX:SharedArchiveFile={self.archive}")
        elif self._makes_archive and (path := unfinished(self.archive)) is not None:
            self._unfinished = path
            options = (*options, f"-XX:ArchiveClassesAtExit={path}")
        command = [
            str(java),
            "-cp",
            f"{home}/jars/*",
            *options,
            f"-Dlog4j2.configurationFile={_LOGGING}",
            f"-Dwallaroo.log={level}",
            f"-Djava.io.tmpdir={self.directory}",
            "org.apache.spark.deploy.SparkSubmit",
            *[part for pair in self._conf().items() for part in ("--conf", "=".join(pair))],
            "pyspark-shell",
        ]
        environment = {
            **os.environ,
            "JAVA_HOME": str(java.parent.parent),
            "SPARK_HOME": str(home),
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._connection_file),
        }
        if self.settings.local:
            environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        # A process group of its own: Ctrl-C on the terminal is ours to answer, not the JVM's.
        return subprocess.Popen(  # noqa: S603 - the Java that find_java chose
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=pass_fds,
            start_new_session=True,
        )

    @property
    def _connection_file(self) -> Path:
        return self.directory / "gateway"

    def _conf(self) -> dict[str, str]:
        conf = {
            **_SETTINGS,
            "spark.master": self.settings.spark_master(),
            "spark.app.name": "wallaroo",
            "spark.local.dir": str(self.directory),
            "spark.sql.warehouse.dir": str(self.directory / "warehouse"),
            "spark.driver.memory": self.settings.driver_memory,
        }
        if self.settings.local:
            conf["spark.driver.host"] = conf["spark.driver.bindAddress"] = "127.0.0.1"
        conf.update(self.settings.conf)
        return conf

    def _connection(self) -> tuple[int, str]:
        """Return the gateway's port and secret, once the JVM has written them."""
        deadline = time.monotonic() + _START_TIMEOUT
        while not self._connection_file.exists():
            if self._process.poll() is not None:
                self._echo.join(_END_TIMEOUT)
                said = " | ".join(self._last_lines) or "nothing"
                raise SparkStartError(
                    f"Spark's JVM ended with {self._process.returncode} at its start; "
                    f"it said: {said}"
                )
            if time.monotonic() > deadline:
                raise SparkStartError(f"Spark's JVM did not answer within {_START_TIMEOUT:.0f} s")
            time.sleep(0.01)
        content = self._connection_file.read_bytes()
        (port,) = struct.unpack(">i", content[:4])
        return port, content[8:].decode()

    def _connect(self, port: int, secret: str) -> Any:
        from pyspark.sql import SparkSession

        given = {
            "PYSPARK_GATEWAY_PORT": str(port),
            "PYSPARK_GATEWAY_SECRET": secret,
            # Workers run the Python that runs us; on a cluster there may be another one's path.
            "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
        }
        before = {name: os.environ.get(name) for name in given}
        os.environ.update(given)
        try:
            spark = SparkSession.builder.getOrCreate()
        except Exception as error:
            said = " | ".join(self._last_lines[-3:])
            first = str(error).strip().splitlines()[0]
            raise SparkStartError(f"Spark did not start: {first} {said}".strip()) from error
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        # A JVM that is killed breaks this server's connection: no news, and no traceback either.
        updates: Any = spark.sparkContext
        updates._accumulatorServer.handle_error = lambda *_: None
        return spark

    def _echo_stderr(self) -> None:
        """Pass on what the JVM and its workers write to standard error; keep the last lines."""
        stream = self._process.stderr
        assert stream is not None
        for line in _lines(stream):
            self._last_lines = [*self._last_lines[1 - _LAST_LINES :], line.strip()]
            if self.settings.verbose:
                print(line, end="", file=sys.stderr, flush=True)


_current: Session | None = None
_lock = threading.Lock()


def session(settings: SessionSettings | None = None, pass_fds: tuple[int, ...] = ()) -> Session:
    """Return the running session if it has these settings, else a new one in its place.

    Args:
        settings: `None`: whatever runs, or the defaults.
        pass_fds: descriptors a new JVM inherits; a session that runs is not reused then.
    """
    global _current  # noqa: PLW0603 - PySpark itself knows one session a process
    with _lock:
        if _current is not None:
            same = settings is None or settings == _current.settings
            if same and not pass_fds and _current.alive:
                return _current
            _current.close()
            _current = None
        _current = Session(settings or SessionSettings(), pass_fds)
        return _current


def close_session() -> None:
    """Close the running session, if there is one."""
    global _current  # noqa: PLW0603 - as above
    with _lock:
        if _current is not None:
            _current.close()
            _current = None


atexit.register(close_session)


def _lines(stream: IO[bytes]) -> Iterator[str]:
    while line := stream.readline(8192):
        yield line.decode("utf-8", "replace")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence py4j's log about a JVM that is gone."""
    import logging

    logger = logging.getLogger("py4j")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before
