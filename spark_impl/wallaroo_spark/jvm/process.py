"""Spark's JVM: a quiet child of this process, started directly, which never outlives it.

The JVM ends when its standard input is closed, so it ends however this process ends. If
`spark-submit` started this process, its JVM is the parent process; it is running already and ends
when this process does (`SubmittingJvm`).

Java can write the classes that a run has loaded into an archive (class data sharing) and map it
into memory in later runs: then the first job is done after 3.5 instead of 8.5 CPU seconds. The
archive is made only on request, since writing it keeps a JVM busy for seconds after its end::

    python -m wallaroo_spark.archive
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Protocol

from platformdirs import user_cache_path

from wallaroo.overriding import override
from wallaroo_spark.jvm.failures import SparkStartError, end_of_jvm
from wallaroo_spark.jvm.java import find_java, options_for
from wallaroo_spark.jvm.pyspark_private import CONNECTION_FILE
from wallaroo_spark.jvm.settings import SessionSettings


def archive_for(java: Path, jars: Path, options: Sequence[str]) -> Path:
    """Return the path of the archive for a Java, a Spark and these options; it may not exist.

    Its name contains everything it depends on; Java ignores an archive that does not fit.
    Processes of the same Java and Spark with other sizes of memory can read it too.
    """
    parts = [str(java.resolve()), str(jars), str(jars.stat().st_mtime_ns), *options]
    name = hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()
    return user_cache_path("wallaroo", appauthor=False) / f"spark-{name}.jsa"


def unfinished(archive: Path) -> Path | None:
    """Return the path of the unfinished archive; `None` if nothing can be written there."""
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(archive.parent, os.W_OK):
        return None
    return archive.with_suffix(f".{os.getpid()}")


_LOGGING = Path(__file__).with_name("log4j2.properties")
_START_TIMEOUT = 60.0  # seconds until the JVM must have reported its port
_END_TIMEOUT = 5.0  # seconds for the JVM's shutdown hooks, after which it is killed
_ARCHIVE_TIMEOUT = 300.0  # the same if it writes an archive of its classes
_EXIT_CODES = (0, 143)  # exit codes of a JVM that ended in order
_UNCAUGHT = 'Exception in thread "main" org.apache.spark.SparkException: '
_LAST_LINES = 20  # last lines of its stderr, kept for error texts


class Jvm(Protocol):
    """A JVM in which Spark can start."""

    @property
    def alive(self) -> bool:
        """Whether it is running."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def death(self, patience: float) -> str:
        """Return how it ended, if it has after so many seconds; empty: it runs."""

    def connection(self) -> tuple[int, str]:
        """Wait until it has reported its gateway's port and secret, and return them.

        Raises:
            SparkStartError: it ended, or did not answer in time.
        """

    def kill(self) -> None:
        """End it as kill -9 would."""

    def end(self) -> None:
        """End it in order, and wait for its end."""


class SubmittingJvm(Jvm):
    """The JVM of the `spark-submit` that started this process."""

    def __init__(self) -> None:
        self._parent = os.getppid()

    @property
    @override
    def pid(self) -> int:
        return self._parent

    @staticmethod
    def is_there() -> bool:
        """Whether `spark-submit` started this process: its JVM is the parent."""
        return "PYSPARK_GATEWAY_PORT" in os.environ

    @property
    @override
    def alive(self) -> bool:
        return os.getppid() == self.pid

    @override
    def death(self, patience: float) -> str:
        return "" if self.alive else f"Spark's JVM (process {self.pid}, of spark-submit) has ended"

    @override
    def connection(self) -> tuple[int, str]:
        return int(os.environ["PYSPARK_GATEWAY_PORT"]), os.environ["PYSPARK_GATEWAY_SECRET"]

    @override
    def kill(self) -> None:
        if self.alive:
            os.kill(self.pid, signal.SIGKILL)

    @override
    def end(self) -> None:
        """Do nothing: it ends after this process."""


class OwnJvm(Jvm):
    """A JVM that this process starts.

    Args:
        settings: its settings.
        directory: directory for its files.
        pass_fds: descriptors it inherits, such as a lock that must be held until it has ended.
        makes_archive: write the archive at the end, which takes some seconds, unless it is killed.

    Attributes:
        archive: path of the archive of Spark's classes (`jvm.process`).

    Raises:
        JavaNotFoundError: there is no Java on which Spark can run.
    """

    def __init__(
        self,
        settings: SessionSettings,
        directory: Path,
        pass_fds: tuple[int, ...],
        *,
        makes_archive: bool,
    ) -> None:
        self.archive: Path
        self._settings = settings
        self._connection_file = directory / "gateway"
        self._unfinished: Path | None = None  # the archive that it writes
        self._last_lines: list[str] = []
        self._process = self._start(directory, pass_fds, makes_archive=makes_archive)
        self._echo = threading.Thread(target=self._echo_stderr, daemon=True)
        self._echo.start()

    @property
    @override
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    @override
    def pid(self) -> int:
        return self._process.pid

    @override
    def death(self, patience: float) -> str:
        try:
            return end_of_jvm(self.pid, self._process.wait(patience))
        except subprocess.TimeoutExpired:
            return ""

    @override
    def connection(self) -> tuple[int, str]:
        deadline = time.monotonic() + _START_TIMEOUT
        while not self._connection_file.exists():
            if not self.alive:
                self._echo.join(_END_TIMEOUT)
                raise SparkStartError(self._ended_at_once())
            if time.monotonic() > deadline:
                raise SparkStartError(f"Spark's JVM did not answer within {_START_TIMEOUT:.0f} s")
            time.sleep(0.01)
        content = self._connection_file.read_bytes()
        (port,) = struct.unpack(">i", content[:4])
        return port, content[8:].decode()

    def _ended_at_once(self) -> str:
        lines = [line for line in self._last_lines if not line.startswith("at ")]
        said = " | ".join(lines).removeprefix(_UNCAUGHT)
        if not said:
            return end_of_jvm(self.pid, self._process.returncode)
        memory = ". Its size is --conf spark.driver.memory=2g" if "heap" in said else ""
        return f"Spark's JVM did not start: {said.rstrip('.')}{memory}"

    @override
    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)

    @override
    def end(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_END_TIMEOUT if self._unfinished is None else _ARCHIVE_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._unfinished is not None:
            with contextlib.suppress(OSError):
                if self._process.returncode in _EXIT_CODES:
                    self._unfinished.rename(self.archive)
                self._unfinished.unlink(missing_ok=True)
        self._echo.join(_END_TIMEOUT)
        assert self._process.stderr is not None
        self._process.stderr.close()

    def _start(
        self, directory: Path, pass_fds: tuple[int, ...], *, makes_archive: bool
    ) -> subprocess.Popen[bytes]:
        import pyspark

        settings = self._settings
        java = find_java()
        home = Path(pyspark.__file__).parent
        level = "info" if settings.verbose else "off"
        options = options_for(settings)
        self.archive = archive_for(java, home / "jars", options)
        if self.archive.exists():
            options = (*options, f"-XX:SharedArchiveFile={self.archive}")
        elif makes_archive and (path := unfinished(self.archive)) is not None:
            self._unfinished = path
            options = (*options, f"-XX:ArchiveClassesAtExit={path}")
        conf = settings.spark_conf(directory)
        command = [
            str(java),
            "-cp",
            f"{home}/jars/*",
            *options,
            # Not in the archive's name, as they load no classes. Java collects all its memory each
            # time its classes need more than so far: four times until the first output.
            "-XX:+ExitOnOutOfMemoryError",
            "-XX:MetaspaceSize=256m",
            f"-Dlog4j2.configurationFile={_LOGGING}",
            f"-Dwallaroo.log={level}",
            f"-Djava.io.tmpdir={directory}",
            "org.apache.spark.deploy.SparkSubmit",
            *[part for pair in conf.items() for part in ("--conf", "=".join(pair))],
            "pyspark-shell",
        ]
        environment = {
            **os.environ,
            "JAVA_HOME": str(java.parent.parent),
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_CONNECT_MODE": "0",
            CONNECTION_FILE: str(self._connection_file),
            # Spark would start two processes to look for data sources in all installed packages,
            # with this Python, which need not be ours: there is none of this name.
            "PYSPARK_DRIVER_PYTHON": "no-python-for-data-sources",
        }
        # With it, every Python process of Spark would compile PySpark again, from a zip file: 0.4
        # CPU seconds for each of the six processes that start before the first output.
        environment.pop("SPARK_HOME", None)
        if settings.local:
            environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        # A process group of its own: Ctrl-C in the terminal must not reach the JVM.
        return subprocess.Popen(  # noqa: S603 - the Java that find_java chose
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=pass_fds,
            start_new_session=True,
        )

    def _echo_stderr(self) -> None:
        """Pass on what the JVM and its workers write to standard error; keep the last lines."""
        stream = self._process.stderr
        assert stream is not None
        for line in _lines(stream):
            self._last_lines = [*self._last_lines[1 - _LAST_LINES :], line.strip()]
            if self._settings.verbose:
                print(line, end="", file=sys.stderr, flush=True)


def _lines(stream: IO[bytes]) -> Iterator[str]:
    while line := stream.readline(8192):
        yield line.decode("utf-8", "replace")
