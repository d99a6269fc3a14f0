"""What tests of live runs on Spark share: options, and whose process a JVM is."""

import contextlib

import psutil

from wallaroo.engine import ServeOptions

PATIENCE = 300.0  # seconds


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
