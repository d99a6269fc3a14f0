"""Leads one run through its phases, whether its nodes are on this machine or on others.

    listening → prepared → connected → (start) … sent → (drain) … drained → closed

A node is a child process, or a Locust worker that has some. The conductor sends commands, takes
reports, and never looks at a message.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import psutil

from wallaroo_loadgen.common.schedule import NS
from wallaroo_loadgen.control.collector import Collector
from wallaroo_loadgen.control.node import RECEIVER, ChildNode, Node
from wallaroo_loadgen.workloads.plan import Plan

_START_NS = NS // 2  # from the command to the start, so that every node is ready by then
_SPAWN_SECONDS = 30.0  # for an interpreter with its imports on a busy machine
_LOOK_SECONDS = 0.1


class RunError(Exception):
    """The run could not be made or ended early; the message says why, for the user."""


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
        self._times = processor_times()
        self._stop = threading.Event()
        self._on_report = on_report
        self._failed = failed
        self._inbox: queue.SimpleQueue[tuple[str, dict[str, Any]]] = queue.SimpleQueue()
        self._reported: dict[str, set[str]] = {}

    def inbox(self, node: str, report: dict[str, Any]) -> None:
        """Take a node's report; may be called from any thread."""
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
        (stolen, total), (stolen_then, total_then) = processor_times(), self._times
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
            raise RunError("interrupted before the first message was sent")
        self.started_ns = time.time_ns() + _START_NS
        self._times = processor_times()
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
        config = self.plan.config
        limit = self.plan.schedule.seconds + config.drain
        stopped_at: float | None = None
        while not self._all_reported("sent", senders):
            self._take(_LOOK_SECONDS)
            elapsed = (time.time_ns() - self.started_ns) / NS
            if stopped_at is None and (self._stop.is_set() or elapsed > limit):
                stopped_at = elapsed
                for sender in senders:
                    sender.send({"command": "stop"})
            if stopped_at is not None and elapsed > stopped_at + _SPAWN_SECONDS:
                raise RunError("a sender process did not stop")

    def _await(self, kind: str, nodes: Sequence[Node], seconds: float | None) -> None:
        deadline = None if seconds is None else time.monotonic() + seconds
        while not self._all_reported(kind, nodes):
            self._take(_LOOK_SECONDS)
            if self._stop.is_set() and kind != "drained":
                raise RunError("interrupted before the first message was sent")
            failure = None if kind == "drained" else self._failed()
            if failure is not None:
                raise RunError(failure)
            if deadline is not None and time.monotonic() > deadline:
                silent = [
                    node.name for node in nodes if kind not in self._reported.get(node.name, ())
                ]
                raise RunError(f"not {kind} within {seconds:g} s: {', '.join(silent)}")

    def _all_reported(self, kind: str, nodes: Sequence[Node]) -> bool:
        return all(kind in self._reported.get(node.name, ()) for node in nodes)

    def _take(self, seconds: float) -> None:
        try:
            node, report = self._inbox.get(timeout=seconds)
        except queue.Empty:
            return
        kind = report["kind"]
        self._reported.setdefault(node, set()).add(kind)
        if kind in {"writes", "outputs"}:
            self.collector.take(node, report)
            self._on_report()
        elif kind == "ready":
            self.collector.priority[node] = report["priority"]
        elif kind == "listening":
            host, port = report["address"]
            self.listening = (host, port)
        elif kind == "failed":
            raise RunError(_plain(report["message"]))
        elif kind == "gone":
            raise RunError(f"the {node} process ended by itself (exit {report['code']})")


def processor_times() -> tuple[float, float]:
    """Return the time stolen from this machine's processors, and their whole time, in seconds."""
    times = psutil.cpu_times()
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return getattr(times, "steal", 0.0), total  # guests' time is part of user time


def _plain(message: str) -> str:
    """Return a child's error; without its class if the message is written for the user."""
    name, _, text = message.partition(": ")
    return text if name in {"ConnectionError", "TimeoutError"} else message


def run_here(
    conductor: Conductor, on_listening: Callable[[tuple[str, int]], None] = lambda _: None
) -> None:
    """Make the run with child processes of this one.

    Raises:
        RunError: as `Conductor.run`.
    """
    plan = conductor.plan
    nodes: list[Node] = [ChildNode(plan, None, conductor.inbox)]
    try:
        nodes += [
            ChildNode(plan, process, conductor.inbox)
            for process in range(plan.config.processes)
            if plan.streams_of(process)
        ]
        assert nodes[0].name == RECEIVER
        conductor.run(nodes[0], nodes[1:], on_listening)
    finally:
        for node in nodes:
            node.close()
