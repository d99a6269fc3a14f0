"""The parent's end of the processes that send and receive: commands go out, reports come back."""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from wallaroo.overriding import override
from wallaroo_loadgen.common.measure import Tally, record
from wallaroo_loadgen.common.schedule import Int64s
from wallaroo_loadgen.workloads.plan import Plan

Inbox = Callable[[str, dict[str, Any]], None]
"""A function that gets a node's name and one of its reports; called from threads."""

RECEIVER = "receiver"

_END_SECONDS = 3.0


def node_name(process: int | None) -> str:
    """Return the name of a sender process by its number, or of the receiver."""
    return RECEIVER if process is None else f"sender {process}"


class Node(Protocol):
    """A process that gets commands and, through an inbox, answers with reports."""

    name: str

    def send(self, command: dict[str, Any]) -> None:
        """Pass a command on; if the process is gone, a report says so anyway."""

    def close(self) -> None:
        """End it, and return when it has ended."""


class ChildNode(Node):
    """A child process on this machine.

    Args:
        plan: the run's; the child builds its own from the same configuration.
        process: the number of a sender process, or None for the receiver.
        inbox: gets the reports, and `{"kind": "gone"}` when the process has ended by itself.
    """

    def __init__(self, plan: Plan, process: int | None, inbox: Inbox) -> None:
        self.name = node_name(process)
        self._lateness = None if process is None else SenderLateness(plan)
        self._inbox = inbox
        self._closing = False
        module = "receiver" if process is None else "sender"
        self._child = subprocess.Popen(  # noqa: S603 - our own module, our own interpreter
            [sys.executable, "-m", f"wallaroo_loadgen.dataplane.{module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.send({"config": plan.config.to_json(), "process": process})
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @override
    def send(self, command: dict[str, Any]) -> None:
        pipe = self._child.stdin
        assert pipe is not None
        with contextlib.suppress(OSError, ValueError):
            pipe.write(json.dumps(command) + "\n")
            pipe.flush()

    @override
    def close(self) -> None:
        self._closing = True
        self.send({"command": "close"})
        try:
            self._child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._thread.join(_END_SECONDS)
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _read(self) -> None:
        pipe = self._child.stdout
        assert pipe is not None
        for line in pipe:
            report = json.loads(line)
            if self._lateness is not None and report["kind"] == "writes":
                report = self._lateness.measured(report)
            self._inbox(self.name, report)
        code = self._child.wait()
        if not self._closing:
            self._inbox(self.name, {"kind": "gone", "code": code})


class SenderLateness:
    """Computes lateness from a sender's record of its writes, away from the sender's clock.

    Lateness is the time from a message's intended time until the kernel had taken its last byte.
    The sender's *own* lateness leaves out the time in which the target's back-pressure held it up:
    it counts from the intended time, or from when the socket took bytes again, if that was later.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._sent: dict[int, int] = {}
        self._held_back = 0
        self._tally = Tally(plan.bin_ns, plan.bins)

    def measured(self, report: dict[str, Any]) -> dict[str, Any]:
        """Return a `writes` report with the lateness computed from the writes."""
        for stream, text in report["streams"].items():
            writes = np.frombuffer(base64.b64decode(text), dtype=np.int64).reshape(-1, 3)
            self._add(int(stream), writes)
        return {
            "kind": "writes",
            "sent": {str(stream): count for stream, count in self._sent.items()},
            "held_back": self._held_back,
            "tally": self._tally.flush(),
            "closed": report["closed"],
            "busy": report["busy"],
        }

    def _add(self, number: int, writes: Int64s) -> None:
        first = self._sent.get(number, 0)
        counts, free, done = writes[:, 0], writes[:, 1], writes[:, 2]
        through = first + np.cumsum(counts)
        self._sent[number] = last = int(through[-1]) if len(writes) else first
        if last == first:
            return
        schedule = self._plan.streams[number]
        due = schedule.intended(np.arange(first, last))
        since = np.repeat(free, counts)
        until = np.repeat(done, counts)
        measured = (due >= schedule.measured_from) & (due < schedule.measured_to)
        lateness = (until - due)[measured] // 1000
        own = (until - np.maximum(due, since))[measured] // 1000
        record(self._tally.histograms["lateness"], lateness)
        record(self._tally.histograms["own_lateness"], own)
        self._held_back += int(np.count_nonzero((since > due)[measured]))
        self._tally.timeline.spread("lateness", due[measured], lateness)
        self._tally.timeline.count("sent", done, counts)
        self._count_expected(number, first, through, done)

    def _count_expected(self, number: int, first: int, through: Int64s, done: Int64s) -> None:
        """Count expected outputs, once for each column of time that the writes fall into."""
        stream = self._plan.workload.streams[number]
        columns = self._tally.timeline.column(done)
        last_of_column = np.flatnonzero(np.append(np.diff(columns) != 0, True))
        before = stream.expected(first)
        for index in last_of_column.tolist():
            now = stream.expected(int(through[index]))
            self._tally.timeline.count("owed", done[index : index + 1], np.array([now - before]))
            before = now
