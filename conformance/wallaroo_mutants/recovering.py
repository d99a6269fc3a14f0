"""A live server that recovers by running its log of frames again, and faults in this recovery."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from wallaroo_conformance.killing import Mutant
from wallaroo_reference.engine import ReferenceEngine
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.places import Store
from wallaroo_reference.serving.server import serve

from wallaroo.engine import Capabilities, Handle, OnError, ServeOptions
from wallaroo.topology import Application

Log: TypeAlias = list[tuple[str, bytes]]
"""What was received: (source, payload)."""

Recover: TypeAlias = Callable[["Logging", Log], None]
"""Runs a log on a machine without state; leaves there the outputs that are to be sent."""


class Logging(Interpreter):
    """An interpreter that logs what it is fed."""

    def __init__(self, application: Application, log: Log, on_error: OnError = "skip") -> None:
        super().__init__(application, on_error=on_error)
        self._log = log

    def feed(self, source: str, payloads: Sequence[bytes], at: int = 0) -> None:
        """Log frames, then process them."""
        self._log += [(source, payload) for payload in payloads]
        super().feed(source, payloads, at)

    def run_again(self, log: Log) -> None:
        """Process frames that are in the log already."""
        for source, payload in log:
            super().feed(source, [payload])

    def forget(self) -> None:
        """Lose all entities."""
        self._stores = {name: Store(store.partition) for name, store in self._stores.items()}


class RecoveringEngine(ReferenceEngine):
    """The reference engine with a log that outlives a kill.

    Args:
        recover: what it does with the log after one.
    """

    def __init__(self, recover: Recover) -> None:
        self._recover = recover

    def capabilities(self) -> Capabilities:
        """Return what it claims: recovery."""
        return Capabilities(recovery=True)

    def serve(self, application: Application, options: ServeOptions) -> Handle:
        """Serve; this run and those after a restart share one log."""
        log: Log = []

        def machine() -> Logging:
            fresh = Logging(application, log, options.on_error)
            self._recover(fresh, log)
            return fresh

        return _Restarting(serve(application, machine, options))


class _Restarting:
    """A handle whose server, after a restart, sends the outputs of the recovery."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handle, name)

    def restart(self) -> Handle:
        server: Any = self._handle.restart()
        # Deliver no frames: the server then sends what the machine has given so far.
        server._thread.call(server.deliver, next(iter(server.addresses)), [])
        return _Restarting(server)


def _again(machine: Logging, log: Log) -> None:
    """Run the whole log again: outputs may be repeated, and the state is what it was."""
    machine.run_again(log)


def _forgetful(machine: Logging, log: Log) -> None:
    machine.run_again(log)
    machine.forget()


def _last_doubled(machine: Logging, log: Log) -> None:
    machine.run_again(log)
    given = {sink: outputs[:] for sink, outputs in machine.outputs.items()}
    machine.run_again(log[-1:])
    for sink, outputs in machine.outputs.items():
        outputs[:] = given[sink]


def _last_lost(machine: Logging, log: Log) -> None:
    """Lose the last frame, whose outputs may have been sent before the kill."""
    machine.run_again(log)
    given = {sink: outputs[:] for sink, outputs in machine.outputs.items()}
    machine.forget()
    del log[-1:]
    machine.run_again(log)
    for sink, outputs in machine.outputs.items():
        outputs[:] = given[sink]


def _not_sent(machine: Logging, log: Log) -> None:
    machine.run_again(log)
    for outputs in machine.outputs.values():
        outputs.clear()


def _backwards(machine: Logging, log: Log) -> None:
    machine.run_again(log)
    for outputs in machine.outputs.values():
        outputs.reverse()


def _mutant(rule: str, name: str, says: str, recover: Recover) -> Mutant:
    make = partial(RecoveringEngine, recover)
    return Mutant(name, rule, says, make, "edges", shown_by="live")


RECOVERY_MUTANTS: tuple[Mutant, ...] = (
    _mutant("recover-1", "state gone after a kill", "a checkpoint that forgets", _forgetful),
    _mutant(
        "recover-1", "last frame counted twice", "an offset saved before the state", _last_doubled
    ),
    _mutant(
        "recover-1", "last frame of the log lost", "a good block taken for a torn end", _last_lost
    ),
    _mutant("recover-2", "outputs under way lost", "what was handed on counts as sent", _not_sent),
    _mutant("recover-2", "outputs repeated backwards", "a stack of what is to be sent", _backwards),
)

RECOVERY_EQUIVALENT = _mutant("", "log run again", "all is repeated, in order", _again)
"""What the mutants would be without their faults: the suite must not kill it."""
