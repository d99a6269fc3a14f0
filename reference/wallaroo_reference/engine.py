"""The reference engine and its compiled path, each as an engine of `wallaroo.engine`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wallaroo.engine import (
    Capabilities,
    Case,
    Handle,
    Isolation,
    OnError,
    ServeOptions,
    Stepper,
)
from wallaroo.errors import UnsupportedTopology
from wallaroo.kafka_records import Output, Produced
from wallaroo.records import Consumed, Frame, Record
from wallaroo.topology import Application
from wallaroo.trace import Lineage, Trace, sorted_entities, sorted_windows
from wallaroo_reference.compiled.codegen import compiled_source
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.machine import Machine, process
from wallaroo_reference.options import add_arguments, checkpoint_options

if TYPE_CHECKING:
    from wallaroo.transport.stored import StoredCheckpoint

_LATE_IN_A_LONG_RUN: Final[Mapping[str, Any]] = {"first_sequence": 2**32 - 1}
"""`Case.options` under which the second frame's sequence number needs more than 32 bits.

It is a multiple of 3 and 5: what is sent to so many partitions by its number goes to the same ones
(kafka-13).
"""


class ReferenceEngine:
    """The semantics: interpreted when `isolated`, compiled when `trusting`."""

    name = "reference"

    def capabilities(self) -> Capabilities:
        """Return what it claims: everything but faults."""
        return Capabilities(recovery=True, kafka=True, small=_LATE_IN_A_LONG_RUN)

    def check(self, application: Application) -> None:
        """Refuse nothing: it runs every application that can be built."""

    def compiled_source(self, application: Application) -> str:
        """Return the Python source that `trusting` mode runs."""
        return compiled_source(application)

    def run(self, case: Case) -> Trace:
        """Run one case.

        The option ``thorough=True`` looks for findings at every call; ``first_sequence=N`` numbers
        the frames from N inside the machine, while the trace counts from 0 as always.
        """
        stepper = _Stepper(
            self._machine(case), case.application, case.options.get("first_sequence", 0)
        )
        for batch in _batches(case):
            stepper.feed(batch)
        return stepper.trace()

    def stepper(
        self, application: Application, *, isolation: Isolation, on_error: OnError
    ) -> Stepper:
        """Return the application, ready to take one record after the other."""
        options = {"thorough": isolation == "isolated"}
        case = Case(application, (), isolation=isolation, on_error=on_error, options=options)
        return _Stepper(self._machine(case), application, 0)

    def run_many(self, cases: Sequence[Case]) -> list[Trace]:
        """Run cases one after the other."""
        return [self.run(case) for case in cases]

    def serve(self, application: Application, options: ServeOptions) -> Handle:
        """Listen on the application's sources and run until stopped."""
        from wallaroo_reference.serving.server import Server  # asyncio, only where it is served

        compiled = options.isolation == "trusting"
        partitions, on_error = options.partitions or 1, options.on_error

        checkpoint = checkpoint_options(options.options)
        keeps = checkpoint.directory is not None
        if checkpoint.skip:
            from wallaroo.transport.skipping import skipping

            application = skipping(application)

        def machine() -> Machine:
            if options.metrics is not None:
                from wallaroo.metrics.following import Follower
                from wallaroo.metrics.probes import Probes
                from wallaroo_reference.compiled.measured import MeasuredCompiled
                from wallaroo_reference.isolated.measured import MeasuredInterpreter

                probes = Probes(application, options.metrics, always=not compiled)
                follows = options.metrics.on_followed is not None
                follower = Follower(probes.application) if follows else None
                if compiled:
                    return MeasuredCompiled(
                        application,
                        probes,
                        partitions=partitions,
                        on_error=on_error,
                        follower=follower,
                        keeps=keeps,
                    )
                return MeasuredInterpreter(
                    probes, partitions=partitions, on_error=on_error, follower=follower, keeps=keeps
                )
            make = Compiled if compiled else Interpreter
            return make(application, partitions=partitions, on_error=on_error, keeps=keeps)

        return Server(application, machine, options, checkpoint=checkpoint)

    def stored(self, directory: Path) -> StoredCheckpoint:
        """Return the engine's part of a checkpoint, for `wallaroo checkpoint`."""
        from wallaroo_reference.checkpoints.stored import ReferenceCheckpoint  # SQLite, only here

        return ReferenceCheckpoint(directory)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the engine's own options of ``wallaroo run`` to `parser`."""
        add_arguments(parser)

    def _machine(self, case: Case) -> Machine:
        partitions = case.partitions or 1
        if case.isolation == "trusting":
            return Compiled(case.application, partitions=partitions, on_error=case.on_error)
        return Interpreter(
            case.application,
            partitions=partitions,
            on_error=case.on_error,
            thorough=bool(case.options.get("thorough", False)),
        )


class CompiledEngine(ReferenceEngine):
    """The compiled path as an engine of its own, so that it can be checked like any other."""

    name = "compiled"

    def capabilities(self) -> Capabilities:
        """Return what it claims: it has no `isolated` mode."""
        return Capabilities(
            isolation=frozenset({"trusting"}),
            recovery=True,
            kafka=True,
            small=_LATE_IN_A_LONG_RUN,
        )

    def run(self, case: Case) -> Trace:
        """Run one case in `trusting` mode.

        Raises:
            UnsupportedTopology: the case asks for `isolated` mode.
        """
        if case.isolation != "trusting":
            raise UnsupportedTopology(
                "state-4", case.application.name, "the compiled path has no isolated mode"
            )
        return super().run(case)


class _Stepper:
    """A machine that takes records: `wallaroo.engine.Stepper`."""

    def __init__(self, machine: Machine, application: Application, first: int) -> None:
        self._machine = machine
        self._sources = application.sources
        self._first = machine.sequence = first

    def take(self, record: Record) -> None:
        """Process a record."""
        self.feed([record])

    def feed(self, batch: Sequence[Record]) -> None:
        """Process records that belong together; see `process`."""
        process(self._machine, self._sources, batch)

    def due(self) -> int | None:
        """Return when time alone makes something due."""
        return self._machine.due()

    def trace(self) -> Trace:
        """Return what was done so far, with lineages counted from 0."""
        machine, first = self._machine, self._first

        def from_zero(lineage: Lineage) -> Lineage:
            return (lineage[0] - first, *lineage[1:])

        def sent(output: Output) -> Output:
            if isinstance(output, Produced):
                return output._replace(number=output.number - first)
            return output

        ended = machine.ended
        return Trace(
            outputs={sink: tuple(map(sent, outputs)) for sink, outputs in machine.outputs.items()},
            dead_letters=tuple(
                [
                    replace(letter, lineage=from_zero(letter.lineage))
                    for letter in machine.dead_letters
                ]
            ),
            entities=sorted_entities(machine.entities()),
            ended=None if ended is None else replace(ended, lineage=from_zero(ended.lineage)),
            findings=tuple(
                [
                    replace(finding, lineage=from_zero(finding.lineage))
                    for finding in machine.findings
                ]
            ),
            windows=sorted_windows(machine.windows()),
            late=dict(machine.late),
        )


def _batches(case: Case) -> list[list[Record]]:
    """Return the records in the case's batches, which are divided further.

    A feed takes frames of one source with one arrival time; every other record comes alone.
    """
    sizes = list(case.batches or ())
    records = case.records
    feeds: list[list[Record]] = []
    position = 0
    while position < len(records):
        size = sizes.pop(0) if sizes else len(records) - position
        last: Record | None = None
        for record in records[position : position + size]:
            if not _together(last, record):
                feeds.append([])
            feeds[-1].append(record)
            last = record
        position += size
    return feeds


def _together(first: Record | None, second: Record) -> bool:
    """Whether two records are frames of one source, or of one partition, of one arrival time."""
    if isinstance(first, Frame) and isinstance(second, Frame):
        return (first.source, first.at) == (second.source, second.at)
    if not isinstance(first, Consumed) or not isinstance(second, Consumed):
        return False
    one, other = first.record.partition, second.record.partition
    return (first.source, first.at, one) == (second.source, second.at, other)
