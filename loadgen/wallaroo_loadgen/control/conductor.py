"""Leads one run through its phases, whether its nodes are on this machine or on others.

    listening → prepared → connected → (start) … sent → (drain) … drained → closed

A node is a child process, or a Locust worker that has some. The conductor sends commands, adds up
reports, and never looks at a message.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import psutil

from wallaroo_loadgen.common.measure import Tally
from wallaroo_loadgen.common.schedule import NS
from wallaroo_loadgen.control.nodes import Node
from wallaroo_loadgen.workloads.plan import Plan

_START_NS = NS // 2  # from the command to the start, so that every node is ready by then
_SPAWN_SECONDS = 30.0  # for an interpreter with its imports on a busy machine
_LOOK_SECONDS = 0.1
_INTERRUPTED = "interrupted before the first message was sent"


class RunError(Exception):
    """The run could not be made or ended early; the message says why, for the user."""


class Collector:
    """What all nodes of a run have reported: exact counts, and one tally.

    Counters in a report are totals of its node, its tally is what is new.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.tally = Tally(plan.bin_ns, plan.bins)
        self.sent = [0] * len(plan.streams)
        self.closed: dict[str, str] = {}
        self.busy: dict[str, float] = {}
        self.priority: dict[str, str] = {}
        self.received: dict[str, Any] = {}
        self._held_back: dict[str, int] = {}

    def add(self, node: str, report: dict[str, Any]) -> None:
        """Add a `writes` or `outputs` report."""
        self.busy[node] = report["busy"]
        self.tally.merge(report["tally"])
        if report["kind"] == "writes":
            for stream, count in report["sent"].items():
                self.sent[int(stream)] = count
            self._held_back[node] = report["held_back"]
            self.closed.update(report["closed"])
        else:
            self.received = report

    def counts(self) -> dict[str, int]:
        """Return every count of the run.

        `held_back` are measured messages that were due while the target's back-pressure held their
        sender up; `unanswered` are outputs of a workload that does not know what they answer.
        """
        streams = self.plan.workload.streams
        expected = sum(
            stream.expected(count) for stream, count in zip(streams, self.sent, strict=True)
        )
        names = ("received", "distinct", "repeated", "reordered", "unmatched", "early", "held_up")
        counts = {name: int(self.received.get(name, 0)) for name in (*names, "sinks_closed")}
        unanswered = getattr(self.plan.workload, "unanswered", False)
        counts["unanswered"] = int(self.received.get("ignored", 0)) if unanswered else 0
        return {
            "scheduled": sum(schedule.total for schedule in self.plan.streams),
            "sent": sum(self.sent),
            "expected": expected,
            "missing": expected - counts["distinct"],
            "held_back": sum(self._held_back.values()),
            **counts,
        }


class Conductor:
    """One run.

    Args:
        plan: the run's.
        on_report: called after each report that changed the collector.
        failed: returns why the application cannot answer any more, or None.
    """

    def __init__(
        self,
        plan: Plan,
        on_report: Callable[[], None] = lambda: None,
        failed: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.plan = plan
        self.collector = Collector(plan)
        self.phase = "starting"
        self.listening: tuple[str, int] | None = None
        self.started_ns: int | None = None
        self._times = _processor_times()
        self._stop = threading.Event()
        self._on_report = on_report
        self._failed = failed
        self._inbox: queue.SimpleQueue[tuple[str, dict[str, Any]]] = queue.SimpleQueue()
        self._reported: dict[str, set[str]] = {}

    def inbox(self, node: str, report: dict[str, Any]) -> None:
        """Queue a node's report; may be called from any thread."""
        self._inbox.put((node, report))

    def stop(self) -> None:
        """Let the run end early: outputs still due are awaited, and the result is partial."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    def stolen(self) -> float:
        """Return the part of the processors' time that the hypervisor has taken since the start."""
        (stolen, total), (stolen_then, total_then) = _processor_times(), self._times
        return (stolen - stolen_then) / max(total - total_then, 1)

    def run(
        self,
        receiver: Node,
        senders: Sequence[Node],
        on_listening: Callable[[tuple[str, int]], None] = lambda _: None,
    ) -> None:
        """Lead the nodes through the run.

        Args:
            receiver: the node that listens, started.
            senders: the nodes that send, started.
            on_listening: called with the receiver's address once it listens.

        Raises:
            RunError: when a phase could not be reached.
        """
        config = self.plan.config
        self._await("listening", [receiver], _SPAWN_SECONDS)
        assert self.listening is not None
        on_listening(self.listening)
        self.phase = "preparing"
        receiver.send({"command": "prepare"})
        self._await("prepared", [receiver], 2 * config.wait + _SPAWN_SECONDS)
        self.phase = "connecting"
        for sender in senders:
            sender.send({"command": "connect"})
        self._await("connected", senders, config.wait + _SPAWN_SECONDS)
        if self._stop.is_set():
            raise RunError(_INTERRUPTED)
        self.started_ns = time.time_ns() + _START_NS
        self._times = _processor_times()
        for node in (receiver, *senders):
            node.send({"command": "start", "at": self.started_ns})
        self.phase = "sending"
        self._send_all(senders)
        self.phase = "draining"
        sent = {str(stream): count for stream, count in enumerate(self.collector.sent)}
        receiver.send({"command": "drain", "sent": sent})
        self._await("drained", [receiver], None)
        self.phase = "done"

    def _send_all(self, senders: Sequence[Node]) -> None:
        """Wait until all is sent, or the time for it is over, or the run is to stop."""
        assert self.started_ns is not None
        limit = self.plan.schedule.seconds + self.plan.config.drain
        stopped_at: float | None = None
        while self._without("sent", senders):
            self._receive()
            elapsed = (time.time_ns() - self.started_ns) / NS
            if stopped_at is None and (self._stop.is_set() or elapsed > limit):
                stopped_at = elapsed
                for sender in senders:
                    sender.send({"command": "stop"})
            if stopped_at is not None and elapsed > stopped_at + _SPAWN_SECONDS:
                raise RunError("a sender process did not stop")

    def _await(self, kind: str, nodes: Sequence[Node], seconds: float | None) -> None:
        deadline = None if seconds is None else time.monotonic() + seconds
        while silent := self._without(kind, nodes):
            self._receive()
            if kind != "drained":
                if self._stop.is_set():
                    raise RunError(_INTERRUPTED)
                failure = self._failed()
                if failure is not None:
                    raise RunError(failure)
            if deadline is not None and time.monotonic() > deadline:
                raise RunError(f"not {kind} within {seconds:g} s: {', '.join(silent)}")

    def _without(self, kind: str, nodes: Sequence[Node]) -> list[str]:
        """Return the nodes that have not reported this."""
        return [node.name for node in nodes if kind not in self._reported.get(node.name, ())]

    def _receive(self) -> None:
        """Wait a moment for a report."""
        try:
            node, report = self._inbox.get(timeout=_LOOK_SECONDS)
        except queue.Empty:
            return
        kind = report["kind"]
        self._reported.setdefault(node, set()).add(kind)
        if kind in {"writes", "outputs"}:
            self.collector.add(node, report)
            self._on_report()
        elif kind == "ready":
            self.collector.priority[node] = report["priority"]
        elif kind == "listening":
            host, port = report["address"]
            self.listening = (host, port)
        elif kind == "failed":
            raise RunError(report["message"])
        elif kind == "gone":
            raise RunError(f"the {node} process ended by itself (exit {report['code']})")


def _processor_times() -> tuple[float, float]:
    """Return the time stolen from this machine's processors, and their whole time, in seconds."""
    times = psutil.cpu_times()
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return getattr(times, "steal", 0.0), total  # guests' time is part of user time
