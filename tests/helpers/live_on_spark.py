"""What tests of live runs on Spark share: options, a server, and whose process a JVM is."""

import contextlib
import time

import psutil
from wallaroo_spark.jvm.temporary import TemporaryDirectory
from wallaroo_spark.live.options import SparkOptions
from wallaroo_spark.live.serve import Server

from wallaroo.engine import ServeOptions

PATIENCE = 300.0  # seconds


def served_here(app, checkpoint=None, *, partitions=2, clock=time.time_ns, **own):
    """Serve in the session that the tests share: a run with `--checkpoint` has one of its own.

    Args:
        app: the application.
        checkpoint: the run goes on with it; it is moved.
        partitions: their number.
        clock: the run's.
        own: the engine's options.

    Returns:
        The run's handle, and where its checkpoint is.
    """
    temporary = TemporaryDirectory("run")
    place = temporary.path / "checkpoint"
    if checkpoint is not None:
        checkpoint.rename(place)
    options = ServeOptions(partitions=partitions, stop_timeout=PATIENCE)
    return Server(app, options, SparkOptions.given(own), temporary=temporary, clock=clock), place


def options(tmp_path=None, own=None, **changes):
    own = {"checkpoint": tmp_path and tmp_path / "checkpoint", **(own or {})}
    return ServeOptions(**{"partitions": 2, "stop_timeout": 120, "options": own, **changes})


def committed(checkpoint):
    """Whether Spark has planned something, and has committed all that it has planned."""
    planned, done = (
        {int(path.name) for path in (checkpoint / "spark" / part).glob("[0-9]*")}
        for part in ("offsets", "commits")
    )
    return planned == done != set()


def is_idle(handle, checkpoint):
    """Whether Spark has committed all that was received."""
    return handle.progress().details["backlog"] == 0 and committed(checkpoint)


def jvm_of(pid):
    """The process of Spark's JVM that a process has started, if there is one."""
    with contextlib.suppress(psutil.NoSuchProcess):  # it, or the child, has just ended
        for child in psutil.Process(pid).children():
            if any("SparkSubmit" in word for word in child.cmdline()):
                return child.pid
    return None
