"""The reference engine and its compiled path, each as an engine of `wallaroo.engine`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from wallaroo.engine import Capabilities, Case, Handle, ServeOptions
from wallaroo.errors import UnsupportedTopology
from wallaroo.records import Frame, Record
from wallaroo.topology import Application
from wallaroo.trace import Lineage, Trace, sorted_entities, sorted_windows
from wallaroo_reference.compiled import Compiled, compiled_source
from wallaroo_reference.interpreter import Interpreter
from wallaroo_reference.machine import Machine

_LATE_IN_A_LONG_RUN: Final[Mapping[str, Any]] = {"first_sequence": 2**32 - 2}
"""`Case.options` under which the third frame's sequence number needs more than 32 bits."""


class ReferenceEngine:
    """The semantics: interpreted when `isolated`, compiled when `trusting`."""

    name = "reference"

    def capabilities(self) -> Capabilities:
        """Return what it claims: everything but recovery and faults."""
        return Capabilities(small=_LATE_IN_A_LONG_RUN)

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
        machine = self._machine(case)
        first = machine.sequence = case.options.get("first_sequence", 0)
        for batch in _batches(case):
            if isinstance(batch[0], Frame):
                payloads = [record.payload for record in batch if isinstance(record, Frame)]
                machine.feed(batch[0].source, payloads, batch[0].at)
            else:
                machine.take(batch[0])

        def from_zero(lineage: Lineage) -> Lineage:
            return (lineage[0] - first, *lineage[1:])

        ended = machine.ended
        return Trace(
            outputs={sink: tuple(outputs) for sink, outputs in machine.outputs.items()},
            dead_letters=tuple(
                [replace(one, lineage=from_zero(one.lineage)) for one in machine.dead_letters]
            ),
            entities=sorted_entities(machine.entities()),
            ended=None if ended is None else replace(ended, lineage=from_zero(ended.lineage)),
            findings=tuple(
                [replace(one, lineage=from_zero(one.lineage)) for one in machine.findings]
            ),
            windows=sorted_windows(machine.windows()),
            late=dict(machine.late),
        )

    def run_many(self, cases: Sequence[Case]) -> list[Trace]:
        """Run cases one after the other."""
        return [self.run(case) for case in cases]

    def serve(self, application: Application, options: ServeOptions) -> Handle:
        """Listen on the application's sources and run until stopped."""
        from wallaroo_reference.server import serve  # asyncio, only where it is served

        make = Interpreter if options.isolation == "isolated" else Compiled

        def machine() -> Machine:
            return make(application, partitions=options.partitions or 1, on_error=options.on_error)

        return serve(application, machine, options)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add nothing: it has no options of its own."""

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
        return Capabilities(isolation=frozenset({"trusting"}), small=_LATE_IN_A_LONG_RUN)

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


def _batches(case: Case) -> list[list[Record]]:
    """Return the records in the case's batches, which are divided further.

    A feed takes frames of one source with one arrival time; every other record comes alone.
    """
    sizes = list(case.batches or ())
    records = case.records
    found: list[list[Record]] = []
    position = 0
    while position < len(records):
        size = sizes.pop(0) if sizes else len(records) - position
        last: Record | None = None
        for record in records[position : position + size]:
            if not _together(last, record):
                found.append([])
            found[-1].append(record)
            last = record
        position += size
    return found


def _together(one: Record | None, other: Record) -> bool:
    """Whether two records are frames of one source that arrived at one time."""
    if not isinstance(one, Frame) or not isinstance(other, Frame):
        return False
    return (one.source, one.at) == (other.source, other.at)
