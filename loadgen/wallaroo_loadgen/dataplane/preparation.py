"""Messages before a run: those that prepare the application, and probes until one is answered."""

from __future__ import annotations

import socket
import time

from wallaroo_loadgen.dataplane.child import connect
from wallaroo_loadgen.workloads.plan import Plan

_PROBE_SECONDS = 0.5


class Preparation:
    """Before the run: send the workload's preparation, then probe until it is processed."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        config = plan.config
        self._socks: dict[int, socket.socket] = {}
        for source, to in enumerate(config.to):
            self._socks[source] = connect(to, config.wait)
        self._deadline = time.monotonic() + config.wait
        self._attempt = 0
        self._next = 0.0
        self._outputs = 0
        self._last = b""
        self.done = False
        self._send(plan.workload.preparation())
        if not plan.workload.probe(0):
            self.done = True

    def _send(self, messages: dict[int, bytes]) -> None:
        for source, data in messages.items():
            self._socks[source].sendall(data)

    def step(self, outputs: list[bytes], connections: int) -> None:
        """Look at what came, and probe again when it is time.

        Raises:
            TimeoutError: when the application has not answered; the message says what came instead.
        """
        workload = self._plan.workload
        self._outputs += len(outputs)
        if outputs:
            self._last = outputs[-1]
            if workload.answers(outputs):
                self.done = True
                return
        now = time.monotonic()
        if now > self._deadline:
            raise TimeoutError(self._unanswered(connections))
        if now >= self._next:
            self._send(workload.probe(self._attempt))
            self._attempt += 1
            self._next = now + _PROBE_SECONDS

    def _unanswered(self, connections: int) -> str:
        """Return what came instead of an answer, and what to check."""
        wait = f"{self._plan.config.wait:g} s"
        if self._outputs:
            seen = repr(self._last[:60])
            return (
                f"outputs came but none answers the probes sent for {wait}, the last one was "
                f"{seen}: is this the right workload, and are the --to addresses in order?"
            )
        if connections:
            return f"the sink connected, but no output came for the probes sent for {wait}"
        return (
            f"no sink connected in {wait}: does the application's --out name the --listen address?"
        )

    def close(self) -> None:
        """End the connections of the preparation."""
        for sock in self._socks.values():
            sock.close()
