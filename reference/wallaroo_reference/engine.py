"""The reference engine and its compiled path, each as an engine of `wallaroo.engine`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wallaroo.cli.own_options import add_options
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
from wallaroo.findings import Finding
from wallaroo.kafka_records import Output, Produced
from wallaroo.records import Consumed, Frame, Record
from wallaroo.topology import Application, SinkId
from wallaroo.trace import DeadLetter, Lineage, Trace, sorted_entities, sorted_windows
from wallaroo_reference.compiled.codegen import compiled_source
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.lives import Kept
from wallaroo_reference.machine import Machine, process
from wallaroo_reference.options import CheckpointOptions

if TYPE_CHECKING:
    from wallaroo.transport.stored import StoredCheckpoint

_SMALL: Final[Mapping[str, Any]] = {"first_sequence": 2**32 - 1, "lives": (1, 2)}
"""`Case.options` that bring large numbers and restarts, which long runs have, into short ones.

The second frame's sequence number needs more than 32 bits. The first is a multiple of 3 and 5: what
is sent to so many partitions by its number goes to the same ones (kafka-13).
"""


class ReferenceEngine:
    """The semantics: interpreted when `isolated`, compiled when `trusting`."""

    name = "reference"

    def capabilities(self) -> Capabilities:
        """Return what it claims: everything but faults."""
        return Capabilities(recovery=True, kafka=True, small=_SMALL)

    def check(self, application: Application) -> None:
        """Refuse nothing: it runs every application that can be built."""

    def compiled_source(self, application: Application) -> str:
        """Return the Python source that `trusting` mode runs."""
        return compiled_source(application)

    def run(self, case: Case) -> Trace:
        """Run one case.

        Options: with ``thorough=True`` it looks for findings at every call. ``first_sequence=N``
        numbers the frames from N inside the machine, while the trace counts from 0 as always. With
        ``lives=(N, ...)`` the run goes on with a new machine after N records, and so on in turn,
        from what a checkpoint keeps of the one before; it must not show (recover-1).
        """
        stepper = _Stepper(self, case)
        for batch in _batches(case):
            stepper.feed(batch)
        return stepper.trace()

    def stepper(
        self, application: Application, *, isolation: Isolation, on_error: OnError
    ) -> Stepper:
        """Return the application, ready to take one record after the other."""
        options = {"thorough": isolation == "isolated"}
        case = Case(application, (), isolation=isolation, on_error=on_error, options=options)
        return _Stepper(self, case)

    def run_many(self, cases: Sequence[Case]) -> list[Trace]:
        """Run cases one after the other."""
        return [self.run(case) for case in cases]

    def serve(self, application: Application, options: ServeOptions) -> Handle:
        """Listen on the application's sources and run until stopped."""
        from wallaroo_reference.serving.server import Server  # asyncio, only where it is served

        compiled = options.isolation == "trusting"
        checkpoint = CheckpointOptions.given(options.options)
        how: dict[str, Any] = {
            "partitions": options.partitions or 1,
            "on_error": options.on_error,
            "keeps": checkpoint.checkpoint is not None,
        }
        if checkpoint.skip_record:
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
                    return MeasuredCompiled(application, probes, follower=follower, **how)
                return MeasuredInterpreter(probes, follower=follower, **how)
            return Compiled(application, **how) if compiled else Interpreter(application, **how)

        return Server(application, machine, options, checkpoint=checkpoint)

    def stored(self, directory: Path) -> StoredCheckpoint:
        """Return the engine's part of a checkpoint, for `wallaroo checkpoint`."""
        from wallaroo_reference.checkpoints.stored import ReferenceCheckpoint  # SQLite, only here

        return ReferenceCheckpoint(directory)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the engine's own options of ``wallaroo run`` to `parser`."""
        add_options(parser, CheckpointOptions)

    def machine(self, case: Case) -> Machine:
        """Return a new machine for a case."""
        how: dict[str, Any] = {
            "partitions": case.partitions or 1,
            "on_error": case.on_error,
            "keeps": "lives" in case.options,
        }
        if case.isolation == "trusting":
            return Compiled(case.application, **how)
        return Interpreter(
            case.application, thorough=bool(case.options.get("thorough", False)), **how
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
            small=_SMALL,
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
    """A machine that takes records (`wallaroo.engine.Stepper`), or several in turn."""

    def __init__(self, engine: ReferenceEngine, case: Case) -> None:
        self._sources = case.application.sources
        self._make = partial(engine.machine, case)
        self._machine = self._make()
        self._first = self._machine.sequence = case.options.get("first_sequence", 0)
        self._lives = cycle(case.options.get("lives", (sys.maxsize,)))
        self._rest = next(self._lives)  # records that this machine still gets
        self._kept = Kept(self._machine)
        # What came of the machines before this one.
        self._outputs: dict[SinkId, list[Output]] = {sink: [] for sink in self._machine.outputs}
        self._letters: list[DeadLetter] = []
        self._findings: list[Finding] = []
        self._late: Counter[tuple[str, str]] = Counter()

    def take(self, record: Record) -> None:
        """Process a record."""
        self.feed([record])

    def feed(self, batch: Sequence[Record]) -> None:
        """Process records that belong together; see `process`."""
        while batch and self._machine.ended is None:
            if not self._rest:
                self._go_on_with_a_new_machine()
            process(self._machine, self._sources, batch[: self._rest])
            self._rest, batch = max(0, self._rest - len(batch)), batch[self._rest :]

    def due(self) -> int | None:
        """Return when time alone makes something due."""
        return self._machine.due()

    def trace(self) -> Trace:
        """Return what was done so far, with lineages counted from 0."""
        machine, first = self._machine, self._first
        self._collect()

        def from_zero(lineage: Lineage) -> Lineage:
            return (lineage[0] - first, *lineage[1:])

        def sent(output: Output) -> Output:
            if isinstance(output, Produced):
                return output._replace(number=output.number - first)
            return output

        ended = machine.ended
        return Trace(
            outputs={sink: tuple(map(sent, outputs)) for sink, outputs in self._outputs.items()},
            dead_letters=tuple(
                [replace(letter, lineage=from_zero(letter.lineage)) for letter in self._letters]
            ),
            entities=sorted_entities(machine.entities()),
            ended=None if ended is None else replace(ended, lineage=from_zero(ended.lineage)),
            findings=tuple(
                [
                    replace(finding, lineage=from_zero(finding.lineage))
                    for finding in (*self._findings, *machine.findings)
                ]
            ),
            windows=sorted_windows(machine.windows()),
            late=dict(self._late + Counter(machine.late)),
        )

    def _go_on_with_a_new_machine(self) -> None:
        self._collect()
        self._findings += self._machine.findings
        self._late += Counter(self._machine.late)
        self._kept.take(self._machine)
        self._machine = self._make()
        self._kept.put(self._machine)
        self._rest = next(self._lives)

    def _collect(self) -> None:
        """Take outputs and dead letters out of the machine."""
        for sink, outputs in self._machine.outputs.items():
            self._outputs[sink] += outputs
            outputs.clear()
        self._letters += self._machine.dead_letters
        self._machine.dead_letters.clear()


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
