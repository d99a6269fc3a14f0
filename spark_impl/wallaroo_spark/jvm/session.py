"""The Spark session: one per process, which is PySpark's own limit.

`session` returns the running session, for bounded cases, and leaves it running. `borrowed` lends it
to a live run, which may also need a new one: with other settings, or with a lock for its JVM.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from wallaroo_spark.jvm import pyspark_private
from wallaroo_spark.jvm.failures import SparkStartError, cause_of, explained, text_of
from wallaroo_spark.jvm.process import Jvm, OwnJvm, SubmittingJvm
from wallaroo_spark.jvm.settings import SessionSettings
from wallaroo_spark.jvm.temporary import TemporaryDirectory, remove_abandoned

_MOMENT = 1.0  # seconds
_STANDALONE = "spark://"
_REACHED = 20.0  # seconds in which a cluster's master must be reached
_AGAIN = 0.5  # seconds between attempts to reach it
_DYING = 5.0  # seconds for a JVM that does not answer any more to end; for an attempt

_log = logging.getLogger("wallaroo.spark")


@contextmanager
def announced_start() -> Iterator[None]:
    """Write one line to stderr if the block takes more than a moment; nothing in a test run."""
    if "PYTEST_VERSION" in os.environ:
        yield
        return
    timer = threading.Timer(_MOMENT, _say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say() -> None:
    print(
        "Spark is starting, once for this process; it takes some seconds",
        file=sys.stderr,
        flush=True,
    )


Started = Callable[["Session"], None]


class Session:
    """A running JVM and its `SparkSession`.

    Args:
        settings: its settings.
        pass_fds: descriptors the JVM inherits, such as a lock that must be held until the JVM has
            ended.
        makes_archive: write the archive at the end, which takes the JVM some seconds, unless it is
            killed.
        started: called once the JVM runs and can be killed, seconds before Spark answers.

    Attributes:
        directory: directory for files that are needed only during the session.

    Raises:
        JavaNotFoundError: there is no Java on which Spark can run.
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
            self._await_master()
            try:
                self.spark = pyspark_private.connect(port, secret, conf)
            except Exception as error:
                raise SparkStartError(self._why_not(text_of(error))) from error
        except BaseException:
            if makes_archive:
                self.kill()  # or it would have the classes of a start alone
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether the JVM is running."""
        return self._jvm is not None and self._jvm.alive

    def death(self) -> str:
        """Return how the JVM died, if it has; called when something has failed. Empty: it runs."""
        if self._jvm is None:
            return ""
        return self._jvm.death(_DYING if not pyspark_private.answers() else 0.0)

    def _await_master(self) -> None:
        """Wait until the master of a standalone cluster can be reached.

        Spark tries too, but it says nothing meanwhile, and not why it gives up.

        Raises:
            SparkStartError: it cannot be reached in time.
        """
        master = self.settings.master
        if not master.startswith(_STANDALONE):
            return
        _log.info("connecting to Spark's master %s, for %.0f s at most", master, _REACHED)
        end = time.monotonic() + _REACHED
        places = [place.rpartition(":") for place in master.removeprefix(_STANDALONE).split(",")]
        while self.alive:
            for host, _, port in places:
                try:
                    socket.create_connection((host.strip("[]"), int(port)), _DYING).close()
                except (OSError, ValueError) as error:
                    why = getattr(error, "strerror", None) or str(error)
                else:
                    return
            if time.monotonic() >= end:
                raise SparkStartError(
                    f"Spark's master {master} cannot be reached, after {_REACHED:.0f} s: {why}. "
                    "Check that it runs, and the address in --master, as its page shows it"
                )
            time.sleep(_AGAIN)

    def _why_not(self, text: str) -> str:
        """Return why Spark did not start, by the text of its error."""
        assert self._jvm is not None
        death = self.death()
        master = self.settings.master
        if death and master.startswith(_STANDALONE):
            return (
                f"Spark's master {master} has not taken this run within a minute: {death}. Check "
                "that a master of the same version of Spark is at this address, and its secret"
            )
        kind, cause = cause_of(text)
        return death or explained(text) or f"Spark did not start: {kind}: {cause}"

    @property
    def cores(self) -> int:
        """Number of tasks that run at the same time."""
        return int(self.spark.sparkContext.defaultParallelism)

    @property
    def pid(self) -> int:
        """The JVM's process id."""
        assert self._jvm is not None
        return self._jvm.pid

    def at_close(self, call: Callable[[], None]) -> None:
        """Call `call` before Spark is stopped."""
        self._at_close.append(call)

    def kill(self) -> None:
        """Kill the JVM, like kill -9."""
        if self._jvm is not None:
            self._jvm.kill()

    def give_up(self) -> None:
        """Do not wait for Spark to start, unless the JVM has to report the end to spark-submit."""
        if isinstance(self._jvm, OwnJvm):
            self._jvm.kill()

    def close(self) -> None:
        """Stop Spark and wait for the JVM's end; a second call does nothing."""
        for call in self._at_close:
            call()
        self._at_close.clear()
        if self._jvm is not None:
            pyspark_private.disconnect(stop_spark=self._jvm.alive)
            self._jvm.end()
            self._jvm = None
        self._temporary.close()


def submitted_conf() -> dict[str, str]:
    """Return the settings given to `spark-submit`, if it started this process."""
    return dict(pyspark_private.conf_of_gateway()) if SubmittingJvm.is_there() else {}


class _Current:
    """The session of this process, with the number of its users."""

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
        """Return the session if it is as wanted, else replace it by a new one."""
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
    """Return the running session if it has these settings, else a new one that replaces it.

    It runs until `close_session`.

    Args:
        settings: its settings; `None`: those of the running session, or the defaults.

    Raises:
        SparkStartError: Spark does not start, or a live run uses the running session.
    """
    with _current.lock:
        with announced_start():
            session = _current.get(settings)
        _current.kept = True
        return session


@contextlib.contextmanager
def borrowed(
    settings: SessionSettings, pass_fds: tuple[int, ...] = (), started: Started = lambda _: None
) -> Iterator[Session]:
    """Lend the running session if it has these settings, else a new one that replaces it.

    It is closed at the end if it has no other user.

    Args:
        settings: the settings it must have.
        pass_fds: descriptors that its JVM must inherit; if there are any, the session is new.
        started: see `Session`.

    Raises:
        SparkStartError: Spark does not start, or a live run uses the running session.
    """
    with _current.lock:
        session = _current.get(settings, pass_fds, started)
        _current.borrowers += 1
    try:
        yield session
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
