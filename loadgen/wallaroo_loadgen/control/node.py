"""The parent's end of a child process."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol

from wallaroo_loadgen.control.lateness import SenderLateness
from wallaroo_loadgen.workloads.plan import Plan

Inbox = Callable[[str, dict[str, Any]], None]
"""A function that takes a node's name and one of its reports; called from threads."""

RECEIVER = "receiver"


class Node(Protocol):
    """Something that takes commands and, through an inbox, answers with reports."""

    name: str

    def send(self, command: dict[str, Any]) -> None:
        """Pass a command on."""

    def close(self) -> None:
        """End it, and return when it has ended."""


class ChildNode:
    """A child process on this machine.

    Args:
        plan: the run's; the child builds its own from the same configuration.
        process: the number of a sender process, or None for the receiver.
        inbox: gets the reports, and `{"kind": "gone"}` when the process has ended by itself.
    """

    def __init__(self, plan: Plan, process: int | None, inbox: Inbox) -> None:
        self.name = RECEIVER if process is None else f"sender {process}"
        self._digest = None if process is None else SenderLateness(plan)
        self._inbox = inbox
        self._closing = False
        module = "receiver" if process is None else "sender"
        self._child = subprocess.Popen(  # noqa: S603 - our own module, our own interpreter
            [sys.executable, "-m", f"wallaroo_loadgen.dataplane.{module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._write({"config": plan.config.to_json(), "process": process})
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def send(self, command: dict[str, Any]) -> None:
        """Pass a command on; if the child is gone, a report says so anyway."""
        self._write(command)

    def close(self) -> None:
        """Tell the child to end; kill it if it does not within a few seconds."""
        self._closing = True
        self._write({"command": "close"})
        stdin, stdout = self._child.stdin, self._child.stdout
        try:
            self._child.wait(3)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._thread.join(3)
        for pipe in (stdin, stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _write(self, command: dict[str, Any]) -> None:
        pipe = self._child.stdin
        assert pipe is not None
        with contextlib.suppress(OSError, ValueError):
            pipe.write(json.dumps(command) + "\n")
            pipe.flush()

    def _read(self) -> None:
        pipe = self._child.stdout
        assert pipe is not None
        for line in pipe:
            report = json.loads(line)
            if self._digest is not None and report["kind"] == "writes":
                report = self._digest.take(report)
            self._inbox(self.name, report)
        code = self._child.wait()
        if not self._closing:
            self._inbox(self.name, {"kind": "gone", "code": code})
