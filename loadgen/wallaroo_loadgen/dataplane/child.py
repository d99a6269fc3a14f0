"""Code of both kinds of child process: commands come in and reports go out, as JSON lines.

Children are plain Python interpreters started as `python -m wallaroo_loadgen.dataplane.sender` (or
`.receiver`), so that changes which their parent makes to Python, such as gevent's, are not in them.
The first line in is the configuration. A child ends when it is told to `close` or when its input
ends, so none goes on without its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from wallaroo.text import reason
from wallaroo_loadgen.common.config import Address, RunConfig
from wallaroo_loadgen.workloads.plan import Plan

Command = dict[str, Any]
Report = dict[str, Any]

REPORT_SECONDS = 0.25

_PR_SET_TIMERSLACK = 29
_SWITCH_SECONDS = 50e-6
_HIGHER_PRIORITY = -10
_AGAIN_SECONDS = 0.1  # between attempts to connect


class Child:
    """In the child process: `commands` holds the parent's commands, `report` answers."""

    def __init__(self) -> None:
        self.commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self.setup: dict[str, Any] = json.loads(sys.stdin.readline() or "{}")
        self._writing = threading.Lock()

    def report(self, kind: str, **fields: Any) -> None:
        """Write one line. A parent that has ended is noticed when the input ends, not here."""
        line = json.dumps({"kind": kind, **fields}, separators=(",", ":"))
        with self._writing, contextlib.suppress(OSError, ValueError):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def command(self, seconds: float) -> Command | None:
        """Return the next command, or None when none comes in time."""
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
    """Run a child process: `body` until it returns; an exception is its last report."""
    for number in (signal.SIGINT, signal.SIGTERM):  # both may go to the group; the parent decides
        signal.signal(number, signal.SIG_IGN)
    child = Child()
    try:
        plan = Plan(RunConfig.from_json(child.setup["config"]))
        wake_on_time()
        child.report("ready", priority=raise_priority())
        threading.Thread(target=child.listen_to_parent, daemon=True).start()
        body(child, plan)
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent tells the user
        for_user = isinstance(error, (ConnectionError, TimeoutError))
        child.report("failed", message=f"{'' if for_user else type(error).__name__ + ': '}{error}")
        sys.exit(1)


def wake_on_time() -> None:
    """Make this process wake on time: quick changes of threads, no collections, exact timers."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.disable()  # no reference cycles are made here; a collection would be a pause
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(
            _PR_SET_TIMERSLACK, 1, 0, 0, 0
        )  # ns; by default the kernel wakes a thread up to 50 µs late


def raise_priority() -> str:
    """Ask the system to run this process before others; return the priority that it got.

    A sender that waits for a processor would measure the machine. With priority it uses no more
    processor time, but gets it at once. The system reserves a part for other processes.
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


def connect(to: Address, wait: float) -> socket.socket:
    """Connect, trying again for `wait` seconds while no process listens.

    Raises:
        ConnectionError: no process listens in that time.
    """
    deadline = time.monotonic() + wait
    while True:
        try:
            sock = socket.create_connection(to, timeout=max(0.1, deadline - time.monotonic()))
        except OSError as error:
            if time.monotonic() >= deadline:
                where = f"nobody listens at {to[0]}:{to[1]} (waited {wait:g} s)"
                raise ConnectionError(f"{where}: {reason(error)}") from None
            time.sleep(_AGAIN_SECONDS)
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(None)
            return sock
