"""Locust's workers as the nodes of a run.

master                                      a worker
Conductor ── RemoteNode ── a message ──▶ WorkerSide ── ChildNode ──▶ sender, receiver
    ◀──────── Locust's own report, or a message when it matters ────────┘
"""

from __future__ import annotations

import contextlib
import logging
import time
from typing import Any

import gevent
from locust import runners
from locust.env import Environment

from wallaroo.overriding import override
from wallaroo_loadgen.common.config import RunConfig
from wallaroo_loadgen.control import arguments as args
from wallaroo_loadgen.control.nodes import ChildNode, Inbox, Node, node_name
from wallaroo_loadgen.workloads.plan import Plan

_COMMAND = "wallaroo_command"
_REPORTS = "wallaroo_reports"  # a worker's, in a message of their own and in Locust's
_PROGRESS = {"writes", "outputs"}
_PATIENCE = 30.0

logger = logging.getLogger("wallaroo.load")


class RemoteNode(Node):
    """A child process of a Locust worker, as the conductor sees it."""

    def __init__(self, runner: Any, client: str, process: int | None, config: RunConfig) -> None:
        self.name = node_name(process)
        self.client = client
        self._runner = runner
        self.send({"command": "spawn", "config": config.to_json(), "process": process})

    @override
    def send(self, command: dict[str, Any]) -> None:
        with contextlib.suppress(KeyError):  # the worker is gone; the conductor is told so
            self._runner.send_message(_COMMAND, {"node": self.name, **command}, self.client)

    @override
    def close(self) -> None:
        self.send({"command": "close"})


class Workers:
    """In the master: the workers that take part in a run, the first with the lowest index."""

    def __init__(self, environment: Any) -> None:
        self._runner = environment.runner
        self._clients: list[str] = []
        self._nodes: list[RemoteNode] = []
        self._inbox: Inbox = lambda node, report: None
        self._runner.register_message(_REPORTS, self._message)
        environment.events.worker_report.add_listener(self._report)

    def gather(self) -> int:
        """Let the workers that are there take part in the next run; return how many send."""
        clients = self._runner.clients
        ready = [client.id for client in (*clients.ready, *clients.spawning, *clients.running)]
        self._clients = sorted(dict.fromkeys(ready), key=self._runner.get_worker_index)
        self._nodes = []
        return max(1, len(self._clients))

    def start_node(self, plan: Plan, process: int | None, inbox: Inbox) -> Node:
        """Let a worker start a sender, or the first one the receiver; here if there is none."""
        self._inbox = inbox
        if not self._clients:
            return ChildNode(plan, process, inbox)
        node = RemoteNode(self._runner, self._clients[process or 0], process, plan.config)
        self._nodes.append(node)
        return node

    def report_lost(self) -> None:
        """Tell the conductor of workers that are lost, so that it does not wait for them."""
        for node in self._nodes:
            client = self._runner.clients.get(node.client)
            if client is None or client.state == runners.STATE_MISSING:
                self._inbox(node.name, {"kind": "gone", "code": "its worker is lost"})

    def _report(self, client_id: str, data: dict[str, Any]) -> None:
        for name, report in data.get(_REPORTS, ()):
            self._inbox(name, report)

    def _message(self, environment: Environment, msg: Any, **_: Any) -> None:
        self._report("", {_REPORTS: msg.data["reports"]})


class WorkerSide:
    """In a Locust worker: starts child processes, gives them commands, passes their reports on."""

    def __init__(self, environment: Any) -> None:
        self._runner = environment.runner
        self._sent: dict[str, int] = {}
        self._nodes: dict[str, ChildNode] = {}
        self._pending: list[tuple[str, dict[str, Any]]] = []
        self._runner.register_message(_COMMAND, self._command)
        hooks = environment.events
        hooks.report_to_master.add_listener(self._add_to_report)
        hooks.quitting.add_listener(self._wait_for_nodes)

    def _command(self, environment: Environment, msg: Any, **_: Any) -> None:
        name, command = msg.data["node"], msg.data["command"]
        if command == "spawn":
            try:
                plan = Plan(RunConfig.from_json(msg.data["config"]))
            except args.SETUP_ERRORS as error:
                self._inbox(name, {"kind": "failed", "message": str(error)})
                return
            self._nodes[name] = ChildNode(plan, msg.data["process"], self._inbox)
        elif command == "close" and name in self._nodes:
            gevent.spawn(self._close, name)
        elif name in self._nodes:
            self._nodes[name].send(msg.data)

    def _close(self, name: str) -> None:
        self._nodes[name].close()
        del self._nodes[name]

    def _inbox(self, name: str, report: dict[str, Any]) -> None:
        """Keep progress for the next report; send a report that changes the phase at once.

        Both use Locust's one connection, which keeps order, so reports arrive in the order they
        were made.
        """
        self._pending.append((name, report))
        if report["kind"] == "writes":
            self._sent[name] = sum(report["sent"].values())
        elif report["kind"] == "sent":
            logger.info("%s: %d messages sent", name, self._sent[name])
        if report["kind"] not in _PROGRESS:
            self._runner.send_message(_REPORTS, {"reports": self._pending})
            self._pending = []

    def _add_to_report(self, client_id: str, data: dict[str, Any]) -> None:
        data[_REPORTS], self._pending = self._pending, []

    def _wait_for_nodes(self, **_: Any) -> None:
        """Before this worker ends, also by Ctrl-C, wait until its run is drained."""
        deadline = time.monotonic() + _PATIENCE
        while self._nodes and time.monotonic() < deadline:
            gevent.sleep(0.1)
