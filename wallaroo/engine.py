"""The protocol that every engine implements, and how engines are found.

An engine is an object in the entry-point group ``wallaroo.engines``. The command line, the test
support and the conformance suite use engines only through this module, so anyone's engine works
with them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from wallaroo.errors import EngineNotFoundError, UnsupportedTopology
from wallaroo.findings import Finding
from wallaroo.kafka import KafkaSinkConfig, KafkaSourceConfig
from wallaroo.operations import Branch, Collect, KeyBy, Merge, Stateful, Stateless, Windowed
from wallaroo.records import Frame, Record, with_times_that_never_decrease
from wallaroo.topology import Application, SinkId, Source, Step
from wallaroo.trace import InputLog, Trace

if TYPE_CHECKING:
    from wallaroo.metrics.registry import Registry

ENTRY_POINTS = "wallaroo.engines"
MAX_CONNECTIONS = 1024
"""Connections of senders that an engine accepts at the same time, by default."""

_RULES = {
    Branch: "graph-2",
    Merge: "graph-3",
    KeyBy: "key-1",
    Collect: "key-2",
    Windowed: "window-1",
}

Isolation: TypeAlias = Literal["isolated", "trusting"]
OnError: TypeAlias = Literal["skip", "stop"]
Order: TypeAlias = Literal["total", "entity", "none"]
Stop: TypeAlias = Literal["exact", "batch", "none"]


@dataclass(frozen=True)
class Capabilities:
    """What an engine can do; a case that needs more is ``unsupported`` and is not run.

    Args:
        isolation: the modes it has.
        partitions: it runs on more than one partition.
        batches: it can run the micro-batches that a case asks for.
        live: `serve` works.
        recovery: it keeps recover-1 to recover-4 when it is killed and started again, served with
            the engine's option ``checkpoint``, a directory of the run's own. If it has the option
            ``checkpoint_interval``, that is a number of seconds; ``accept_old_states`` is that of
            recover-4.
        always_logs: what it receives goes into a log on disk in every live run, also without a
            checkpoint. So a sink that reads nothing does not soon stop it from reading.
        faults: kinds of fault `run` can inject, such as ``"task"``.
        unsupported_rules: ids of rules it does not keep at all.
        small: values of `Case.options` that make thresholds small, so that a few small messages
            reach code that otherwise needs many or large ones, such as a split of stored state.
            Conformance runs some of its cases with them.
        order: ``total``: sinks and entities get everything in order of lineage (order-1).
            ``entity``: two messages keep their order as long as they have met the same entities;
            sinks get outputs in any order. ``none``: there is no order.
        stop: ``exact``: an early end (dead-3, dead-4) is between two messages. ``batch``: what was
            received with the message that ended the run may have had its effect. ``none``: an
            error does not end a run early.
        refuses_in_run: `run` refuses applications, and `check` accepts them all, because checking
            is expensive.
        kafka: it reads and writes Kafka (kafka-1 to kafka-17).
    """

    isolation: frozenset[Isolation] = frozenset({"isolated", "trusting"})
    partitions: bool = True
    batches: bool = True
    live: bool = True
    recovery: bool = False
    always_logs: bool = False
    faults: frozenset[str] = frozenset()
    unsupported_rules: frozenset[str] = frozenset()
    small: Mapping[str, Any] = field(default_factory=dict)
    order: Order = "total"
    stop: Stop = "exact"
    refuses_in_run: bool = False
    kafka: bool = False


@dataclass(frozen=True)
class TaskFault:
    """A fault of kind ``"task"``: workers die after their work, before they return the result.

    The engine must do the work again, and its effect must still happen exactly once (recover-1).

    Args:
        batch: number of the micro-batch, from 0.
        stage: 0: the tasks that decode; k: the tasks of the k-th state partition in a row.
        attempts: how many attempts at each of these tasks die.
    """

    batch: int = 0
    stage: int = 0
    attempts: int = 1


@dataclass(frozen=True)
class Case:
    """One bounded run.

    Args:
        application: what to run.
        input_log: the records in the order received; a pair (source, payload) is a frame that
            arrived at time 0.
        batches: sizes of the micro-batches, in records; the records left after them are one more
            batch. `None`: one batch.
        partitions: number of partitions; `None`: the engine's choice, and a trace then numbers
            entities as if there were one.
        isolation: `isolated` keeps every rule for every application.
        on_error: ``stop`` ends the run at the first dead letter (dead-4).
        faults: task attempts to kill, for engines that can (`Capabilities.faults`).
        options: the engine's own thresholds, such as batch or segment size.
    """

    application: Application
    input_log: InputLog
    batches: Sequence[int] | None = None
    partitions: int | None = None
    isolation: Isolation = "isolated"
    on_error: OnError = "skip"
    faults: Sequence[TaskFault] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def records(self) -> list[Record]:
        """The records of the input log, with arrival times that never decrease (time-1)."""
        found: list[Any] = [
            Frame(*entry) if isinstance(entry, tuple) else entry for entry in self.input_log
        ]
        return with_times_that_never_decrease(found)


@dataclass(frozen=True)
class ServeOptions:
    """How to serve an application.

    Args:
        isolation: the mode; `trusting` is the command line's default on the reference engine.
        on_error: ``skip`` goes on after a dead letter, ``stop`` ends the run at the first (dead-4).
        dead_letters: file to which one JSON line per dead letter is added.
        dead_letter_bytes: size of this file and the rotated ones beside it, from which the oldest
            are deleted.
        stdin: payloads are read from here instead of the application's only source: each line is
            one message, without its newline.
        stdout: the outputs of all sinks are written here instead of over TCP, one per line; an
            output that does not end in a newline gets one.
        stop_timeout: seconds a clean stop may take before it gives up.
        max_connections: senders' connections at the same time, for all sources together; more are
            reset.
        idle_timeout: seconds without a byte after which a sender's connection is closed; `None`:
            never.
        partitions: number of partitions; `None`: the engine's choice.
        metrics: the engine fills in its figures; `None`: nothing is measured.
        options: the engine's own options, by the names that its `add_arguments` gave them.
        interruptible: inside its context a signal ends the process: nothing has begun, and what
            the start waits for may never come.
    """

    isolation: Isolation = "trusting"
    on_error: OnError = "skip"
    dead_letters: Path | None = None
    dead_letter_bytes: int = 1 << 30
    stdin: IO[bytes] | None = None
    stdout: IO[bytes] | None = None
    stop_timeout: float = 10.0
    max_connections: int = MAX_CONNECTIONS
    idle_timeout: float | None = None
    partitions: int | None = None
    metrics: Registry | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    interruptible: Callable[[], AbstractContextManager[None]] = nullcontext


@dataclass(frozen=True)
class Summary:
    """What a served run did, from its start to its end.

    Args:
        received: frames per source.
        written: outputs delivered per sink.
        undelivered: outputs per sink that a stop gave up on.
        dead_letters: counts by (pipeline, step, reason).
        deleted_dead_letters: bytes of the oldest ones that were deleted from disk
            (`ServeOptions.dead_letter_bytes`).
        dropped_frames: incomplete or refused frames per source (frame-3, frame-4).
        seconds: from the first listener's start to the end.
        exit_code: 0 if all was delivered, else 1 (stop-1).
        problem: why it ended early, on one line, or `None`.
        findings: about the application, in `isolated` mode.
        refused_connections: connections refused per source (`ServeOptions.max_connections`).
        late: late messages by (step, ``dropped`` or ``partly``) (window-6).
        open_windows: windows that were open at the end and are lost with it (time-5).
        silent: partitions for which windows wait, and from which nothing comes, per source
            (kafka-9).
        tombstones: records of Kafka without a value, filtered, per source (kafka-7).
        unprocessed: records that were received and not processed, because the run ended early.
    """

    received: Mapping[str, int]
    written: Mapping[SinkId, int]
    undelivered: Mapping[SinkId, int]
    dead_letters: Mapping[tuple[str, str | None, str], int]
    dropped_frames: Mapping[str, int]
    seconds: float
    exit_code: int
    problem: str | None = None
    findings: Sequence[Finding] = ()
    refused_connections: Mapping[str, int] = field(default_factory=dict)
    late: Mapping[tuple[str, str], int] = field(default_factory=dict)
    open_windows: int = 0
    deleted_dead_letters: int = 0
    unprocessed: int = 0
    tombstones: Mapping[str, int] = field(default_factory=dict)
    silent: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Progress:
    """What a served run has done so far.

    Args:
        received: frames, of all sources.
        written: outputs delivered, of all sinks.
        pending: outputs not delivered yet.
        dead_letters: their number.
        details: the engine's own figures by name, such as the time of a batch; shown unchanged.
    """

    received: int
    written: int
    pending: int
    dead_letters: int
    details: Mapping[str, int | float | str] = field(default_factory=dict)


class Handle(Protocol):
    """A served application."""

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        """Where each source listens."""

    def progress(self) -> Progress:
        """Return what it has done so far; fast enough to be called several times a second."""

    def wait(self, timeout: float | None = None) -> Summary | None:
        """Wait until the run has ended, `timeout` seconds at most; `None`: it has not."""

    def stop(self) -> None:
        """Ask for a clean stop (stop-1) and return at once; `wait` waits for its end."""

    def kill(self) -> None:
        """End at once, like kill -9."""

    def restart(self) -> Handle:
        """Start again after `kill`, from the same checkpoint where the engine has one."""


class Stepper(Protocol):
    """An application that takes one record after the other.

    An engine that can step has a method ``stepper(application, *, isolation, on_error)`` that
    returns one; `wallaroo.testing.Session` uses it.
    """

    def take(self, record: Record) -> None:
        """Process a record."""

    def due(self) -> int | None:
        """Return the earliest time at which time alone makes something due; `None`: never."""

    def trace(self) -> Trace:
        """Return what all records so far have done."""


@runtime_checkable
class Engine(Protocol):
    """What an engine offers."""

    @property
    def name(self) -> str:
        """The name it is found by."""

    def capabilities(self) -> Capabilities:
        """Return what it can do."""

    def check(self, application: Application) -> None:
        """Refuse an application that this engine cannot run, before any input is read.

        Raises:
            UnsupportedTopology: naming rule and step (build-2).
        """

    def run(self, case: Case) -> Trace:
        """Run one bounded case."""

    def run_many(self, cases: Sequence[Case]) -> Sequence[Trace | Exception]:
        """Run independent cases, in one job if the engine has jobs; traces in their order.

        What `run` would raise for one of them may stand in its trace's place.
        """

    def serve(self, application: Application, options: ServeOptions) -> Handle:
        """Listen on the application's sources and run until stopped.

        Raises:
            WallarooError: an address cannot be listened on, or a file or directory that the options
                name cannot be used; the text says which and why.
            UnsupportedTopology: as `check`.
        """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the engine's own options for ``wallaroo run`` to `parser`."""


def engine_names() -> list[str]:
    """Return the names of the installed engines, sorted."""
    from importlib.metadata import entry_points

    return sorted({point.name for point in entry_points(group=ENTRY_POINTS)})


def load_engine(name: str) -> Engine:
    """Return the engine of that name.

    Raises:
        EngineNotFoundError: there is no such engine, or a package that it needs is not installed.
    """
    # Imported here, because that takes longer than all the rest of `import wallaroo`.
    from importlib.metadata import entry_points

    from wallaroo.extras import install_command

    for point in entry_points(group=ENTRY_POINTS, name=name):
        try:
            engine = point.load()()
        except ImportError as error:
            absent = isinstance(error, ModuleNotFoundError)
            wants = "needs a package that is not installed" if absent else "cannot be imported"
            raise EngineNotFoundError(
                f"engine {name!r} {wants}: {error}; try: {install_command(point)}"
            ) from error
        if not isinstance(engine, Engine):
            raise EngineNotFoundError(f"{point.value} is not an engine: see wallaroo.engine.Engine")
        return engine
    installed = ", ".join(engine_names()) or "none"
    raise EngineNotFoundError(f"no engine is called {name!r}; installed: {installed}")


def rules_beyond_steps(application: Application) -> list[tuple[str, str]]:
    """Return (rule, step) for what an application has beyond steps with and without state.

    These are branches and merges, keys that stay with messages, event times, windows, and Kafka.
    """
    found = places_of_kafka(application)
    for node in application.nodes:
        if isinstance(node, Step):
            operation = node.operation
            if isinstance(operation, Stateful):
                if not operation.computation.pair:
                    found.append(("key-3", node.name))
            elif not isinstance(operation, Stateless):
                found.append((_RULES[type(operation)], node.name))
        elif isinstance(node, Source):
            if node.config.decoder is None:
                found.append(("graph-4", node.pipeline))
            if node.config.event_time is not None:
                found.append(("time-2", node.pipeline))
    for partition in application.partitions:
        if partition.expire_after is not None:
            found.append(("key-4", partition.name))
    if application.codec is not None:
        found.append(("key-5", application.name))
    return found


def places_of_kafka(application: Application) -> list[tuple[str, str]]:
    """Return (rule, place) for the sources and sinks of Kafka that an application has."""
    places = [
        ("kafka-1", name)
        for name, source in application.sources.items()
        if isinstance(source.config, KafkaSourceConfig)
    ]
    places += [
        ("kafka-13", f"{pipeline}/{index}")
        for (pipeline, index), sink in application.sinks.items()
        if isinstance(sink.config, KafkaSinkConfig)
    ]
    return places


def refuse_beyond_steps(application: Application, engine: str) -> None:
    """Refuse an application with anything beyond steps with and without state (build-2).

    For an engine that does not run graphs, keys, time and windows yet.

    Raises:
        UnsupportedTopology: it does; names the first rule and step.
    """
    for rule, step in rules_beyond_steps(application):
        raise UnsupportedTopology(
            rule, step, f"{engine} has no such steps yet. Write: --engine reference"
        )
