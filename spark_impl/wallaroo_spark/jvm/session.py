"""The Spark session: one a process (PySpark's own limit), lent to whoever works on it.

`session` hands out the one that is up, for bounded cases, and leaves it up. `borrowed` does so for
a live run, which may also have one of its own: with other settings, or with a lock for its JVM.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from wallaroo_spark.jvm import pyspark_private
from wallaroo_spark.jvm.process import Jvm, OwnJvm, SparkStartError, SubmittingJvm
from wallaroo_spark.jvm.settings import SessionSettings
from wallaroo_spark.jvm.temporary import TemporaryDirectory, remove_abandoned

Started = Callable[["Session"], None]


class Session:
    """A running JVM and its `SparkSession`.

    Args:
        settings: what to start it with.
        pass_fds: descriptors the JVM inherits, such as a lock that must not be free before the
            JVM is gone.
        makes_archive: write the archive at the end, which takes the JVM some seconds.
        started: called once the JVM is there and may be killed, seconds before Spark answers.

    Attributes:
        directory: for files that are needed no longer than it.
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
        started: Started = lambda _: None,
    ) -> None:
        threading.Thread(target=remove_abandoned, name="wallaroo-cleaning", daemon=True).start()
        self.settings = settings
        self.streamed = False
        self._at_close: list[Callable[[], None]] = []
        self._temporary = TemporaryDirectory("spark")
        self.directory = self._temporary.path
        self._jvm: Jvm | None = None
        try:
            if SubmittingJvm.is_there():
                self._jvm = SubmittingJvm()
            else:
                fds = (self._temporary.lock, *pass_fds)
                self._jvm = OwnJvm(settings, self.directory, fds, makes_archive=makes_archive)
            started(self)
            port, secret = self._jvm.connection()
            conf = settings.spark_conf(self.directory)
            try:
                self.spark = pyspark_private.connect(port, secret, conf)
            except Exception as error:
                first = str(error).strip().splitlines()[0]
                said = self._jvm.last_output
                raise SparkStartError(f"Spark did not start: {first} {said}".strip()) from error
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether the JVM is running."""
        return self._jvm is not None and self._jvm.alive

    @property
    def cores(self) -> int:
        """Number of tasks that run at the same time."""
        return int(self.spark.sparkContext.defaultParallelism)

    @property
    def pid(self) -> int:
        """The JVM's process id."""
        assert self._jvm is not None
        return self._jvm.pid

    @property
    def archive(self) -> Path:
        """Where Spark's classes are kept for quicker starts (`jvm.class_archive`)."""
        assert isinstance(self._jvm, OwnJvm)
        return self._jvm.archive

    def at_close(self, call: Callable[[], None]) -> None:
        """Have `call` called before Spark is stopped."""
        self._at_close.append(call)

    def kill(self) -> None:
        """Kill the JVM as kill -9 would."""
        if self._jvm is not None:
            self._jvm.kill()

    def give_up(self) -> None:
        """Do not wait for Spark to come up, unless the JVM has to tell others how we ended."""
        if isinstance(self._jvm, OwnJvm):
            self._jvm.kill()

    def close(self) -> None:
        """Stop Spark and wait for the JVM's end; nothing happens the second time."""
        for call in self._at_close:
            call()
        self._at_close.clear()
        if self._jvm is not None:
            pyspark_private.disconnect(stop_spark=self._jvm.alive)
            self._jvm.end(streamed=self.streamed)
            self._jvm = None
        self._temporary.close()


def submitted_conf() -> dict[str, str]:
    """Return the settings `spark-submit` was given, if it has started this process."""
    return dict(pyspark_private.conf_of_gateway()) if SubmittingJvm.is_there() else {}


class _Current:
    """The session of this process: who uses it, and whether it stays when they are gone."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: Session | None = None
        self.kept = False
        self.borrowers = 0

    def get(
        self,
        settings: SessionSettings | None,
        pass_fds: tuple[int, ...] = (),
        started: Started = lambda _: None,
    ) -> Session:
        """Return the session if it is what is asked for, else another in its place."""
        if self.session is not None:
            same = settings is None or settings == self.session.settings
            if same and not pass_fds and self.session.alive:
                return self.session
            if self.borrowers and self.session.alive:
                raise SparkStartError(
                    "a run with other settings uses this process's Spark session, and there can "
                    "be no other; end it first, or start this one in a process of its own"
                )
            self.close()
        self.session = Session(settings or SessionSettings(), pass_fds, started=started)
        return self.session

    def close(self) -> None:
        """Close the session, if there is one."""
        self.kept = False
        if self.session is not None:
            self.session.close()
            self.session = None


_current = _Current()


def session(settings: SessionSettings | None = None) -> Session:
    """Return the running session if it has these settings, else a new one in its place.

    It stays up until `close_session`.

    Args:
        settings: `None`: whatever runs, or the defaults.

    Raises:
        SparkStartError: Spark does not come up, or a live run needs the session that is up.
    """
    with _current.lock:
        found = _current.get(settings)
        _current.kept = True
        return found


@contextlib.contextmanager
def borrowed(
    settings: SessionSettings, pass_fds: tuple[int, ...] = (), started: Started = lambda _: None
) -> Iterator[Session]:
    """Lend the running session if it has these settings, else a new one in its place.

    One that nobody else uses is closed at the end.

    Args:
        settings: what it must have.
        pass_fds: descriptors its JVM must inherit; then it is a new one.
        started: see `Session`.

    Raises:
        SparkStartError: Spark does not come up, or a live run needs the session that is up.
    """
    with _current.lock:
        found = _current.get(settings, pass_fds, started)
        _current.borrowers += 1
    try:
        yield found
    finally:
        with _current.lock:
            _current.borrowers -= 1
            if pass_fds or (not _current.borrowers and not _current.kept):
                _current.close()


def close_session() -> None:
    """Close the running session, if there is one."""
    with _current.lock:
        _current.close()


atexit.register(close_session)
