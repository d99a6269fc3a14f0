"""One run after another against the same application, Ctrl-C included."""

from __future__ import annotations

import dataclasses
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from wallaroo_loadgen.common.config import Address, RunConfig
from wallaroo_loadgen.control.application import Application
from wallaroo_loadgen.control.conductor import Conductor, RunError
from wallaroo_loadgen.control.nodes import ChildNode, Inbox, Node
from wallaroo_loadgen.control.own_figures import OwnFigures
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.verdict import SLO, judge
from wallaroo_loadgen.workloads.plan import Plan

NodeStarter = Callable[[Plan, int | None, Inbox], Node]
"""Starts the receiver (`None`) or a sender process by its number."""


class Session:
    """Makes runs; each gets a run number of its own, and all listen at one address.

    Args:
        application: the one under test, if we start it.
        slos: the bounds by which each run is judged.
        watch: called as a run goes on, and with each new conductor.
        on_listening: called with the address of the listener, once.
        own_figures: where the application gives its own figures (`wallaroo run --metrics`).
        start_node: starts a process of a run; by default a child of this process.
    """

    def __init__(
        self,
        application: Application | None = None,
        slos: Sequence[SLO] = (),
        watch: Callable[[Conductor], None] = lambda _: None,
        on_listening: Callable[[Address], None] = lambda _: None,
        own_figures: Address | None = None,
        start_node: NodeStarter = ChildNode,
    ) -> None:
        self._own_figures = own_figures
        self._application = application
        self._slos = slos
        self._watch = watch
        self._on_listening = on_listening
        self._start_node = start_node
        self._runs = 0
        self._listen: Address | None = None
        self.interrupted = False

    def run(self, config: RunConfig) -> Result:
        """Make one run and judge it.

        Raises:
            WorkloadError: the configuration cannot work.
            ScheduleError: likewise.
        """
        config = dataclasses.replace(
            config, run=config.run + self._runs, listen=self._listen or config.listen
        )
        self._runs += 1
        conductor = Conductor(
            Plan(config),
            lambda: self._watch(conductor),
            failed=lambda: None if self._application is None else self._application.failed,
        )
        self._watch(conductor)
        failure = None
        own = None if self._own_figures is None else OwnFigures(self._own_figures)
        with _stopped_by_signals(conductor):
            try:
                self._lead(conductor)
            except RunError as error:
                failure = str(error)
        self.interrupted = self.interrupted or conductor.stopped
        ended = None
        if self._application is not None:
            ended = self._application.failed if failure is None else self._application.ended
        result = Result.of(conductor, failure, ended)
        if own is not None:
            result.own = own.end()
        judge(result, self._slos)
        return result

    def _lead(self, conductor: Conductor) -> None:
        """Start the processes, lead them through the run, and end them."""
        plan = conductor.plan
        senders = [number for number in range(plan.config.processes) if plan.streams_of(number)]
        nodes: list[Node] = []
        try:
            for process in (None, *senders):
                nodes.append(self._start_node(plan, process, conductor.inbox))
            conductor.run(nodes[0], nodes[1:], self._listening)
        finally:
            for node in nodes:
                node.close()

    def _listening(self, address: Address) -> None:
        if self._listen is None:
            self._on_listening(address)
        self._listen = address
        if self._application is not None:
            try:
                self._application.start(address)
            except OSError as error:
                raise RunError(f"the application cannot be started: {error}") from None


@contextmanager
def _stopped_by_signals(conductor: Conductor) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the run early, with a result; the second one ends it at once."""

    def stop(number: int, frame: FrameType | None) -> None:
        if conductor.stopped:
            raise KeyboardInterrupt
        conductor.stop()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
