"""What both kinds of child process share: JSON lines in for commands, JSON lines out for reports.

Children are plain Python interpreters started as `python -m wallaroo_loadgen.dataplane.sender` (or
`.receiver`), so that nothing their parent does, such as gevent's patching, reaches them. The first
line in is the configuration. A child ends when it is told to `close` or its input ends, so none
outlives its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from wallaroo_loadgen.common.config import RunConfig
from wallaroo_loadgen.workloads.plan import Plan

Command = dict[str, Any]
Report = dict[str, Any]

REPORT_SECONDS = 0.25

_PR_SET_TIMERSLACK = 29
_SWITCH_SECONDS = 50e-6
_HIGHER_PRIORITY = -10


class Child:
    """The child's end: `commands` to take from, `report` to answer with."""

    def __init__(self) -> None:
        self.commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self.setup: dict[str, Any] = json.loads(sys.stdin.readline() or "{}")
        self._writing = threading.Lock()

    def report(self, kind: str, **fields: Any) -> None:
        """Write one line; a parent that is gone is noticed by the end of input instead."""
        line = json.dumps({"kind": kind, **fields}, separators=(",", ":"))
        with self._writing, contextlib.suppress(OSError, ValueError):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def command(self, seconds: float) -> Command | None:
        """Return the next command, or None when none comes for that long."""
        try:
            return self.commands.get(timeout=seconds)
        except queue.Empty:
            return None

    def listen_to_parent(self) -> None:
        """Read commands until the input ends, which is a command to close too."""
        for line in sys.stdin:
            self.commands.put(json.loads(line))
        self.commands.put({"command": "close"})


def serve(body: Callable[[Child, Plan], None]) -> None:
    """Run a child process: `body` until it returns; what it raises is its last report."""
    for number in (signal.SIGINT, signal.SIGTERM):  # both may go to the group; the parent decides
        signal.signal(number, signal.SIG_IGN)
    child = Child()
    try:
        plan = Plan(RunConfig.from_json(child.setup["config"]))
        wake_on_time()
        child.report("ready", priority=raise_priority())
        threading.Thread(target=child.listen_to_parent, daemon=True).start()
        body(child, plan)
    except Exception as error:  # noqa: BLE001 - the parent is to say it, whatever it is
        child.report("failed", message=f"{type(error).__name__}: {error}")
        sys.exit(1)


def wake_on_time() -> None:
    """Set this process up to wake on time: short thread slices, no pauses, no slack."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.disable()  # nothing here makes cycles; a collection would be a pause
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)  # default: 50 µs late on purpose


def raise_priority() -> str:
    """Ask to run before everything else when there is something to do; return what was granted.

    A sender that waits for a processor measures the machine. It takes no more time than before,
    only at once; and the system keeps some for others from a process that would not stop.
    """
    if hasattr(os, "sched_setscheduler") and (os.cpu_count() or 1) > 1:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
            return "real time"
    with contextlib.suppress(OSError):
        os.nice(_HIGHER_PRIORITY)
        return "raised"
    return "as others"


def monotonic_start(wall_ns: int) -> int:
    """Return the monotonic time (ns) of a wall-clock time agreed on by several processes."""
    return time.monotonic_ns() + wall_ns - time.time_ns()
