"""The mutants of the Spark engine, each in two homes.

With the home ``spark``, the workers' code runs in this process (`wallaroo_mutants.machinery`), so
that a kill costs seconds. With the home ``spark-jvm`` the same fault runs on Spark: it is sent with
the shipment that every task unpacks first, and the worker's process then puts it in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from unittest.mock import patch

import wallaroo_spark.bounded.runs
from wallaroo_conformance.killing import Mutant
from wallaroo_spark.bounded.traces import SMALL
from wallaroo_spark.engine import SparkEngine
from wallaroo_spark.jvm.shipping import shipment_of_this_process
from wallaroo_spark.worker.modules import Shipment

from wallaroo.engine import Capabilities, Case
from wallaroo.overriding import override
from wallaroo.trace import Trace
from wallaroo_mutants.catalogue import Entry, MutantEngine, read
from wallaroo_mutants.machinery import run_here
from wallaroo_mutants.patching import NOTHING, Patch

_CLAIMS = Capabilities(isolation=frozenset({"isolated"}), live=False, small=SMALL)
"""No more than the faults need."""


class Machinery(SparkEngine):
    """The Spark engine without Spark, in this process."""

    name = "spark machinery"

    @override
    def capabilities(self) -> Capabilities:
        return Capabilities(live=False, kafka=True, small=SMALL)

    @override
    def run_many(self, cases: Sequence[Case]) -> list[Trace]:
        return run_here(cases)


class OneByOne(Machinery):
    """The same with a job for each case: a fault may leave something behind that others meet."""

    @override
    def run_many(self, cases: Sequence[Case]) -> list[Trace]:
        return [trace for case in cases for trace in run_here([case])]


class WithFault(SparkEngine):
    """The Spark engine, whose workers have a fault."""

    def __init__(self, fault: Patch) -> None:
        self._fault = fault

    @override
    def run_many(self, cases: Sequence[Case]) -> list[Trace]:
        whole = shipment_of_this_process()
        shipment = FaultyShipment(whole.files, whole.paths, self._fault)
        runs = wallaroo_spark.bounded.runs
        with patch.object(runs, "shipment_of_this_process", lambda: shipment):
            return super().run_many(cases)


@dataclass(frozen=True)
class FaultyShipment(Shipment):
    """A shipment that brings a fault along."""

    fault: Patch = NOTHING

    @override
    def covers(self, other: Shipment) -> bool:
        return getattr(other, "fault", NOTHING) == self.fault and super().covers(other)

    @override
    def unpack(self) -> None:
        super().unpack()
        if self.fault not in _brought:
            _in_place.close()  # what another job has brought to this worker's process
            _brought[:] = [self.fault]
            _in_place.enter_context(self.fault.in_place())


_brought: list[Patch] = []
_in_place = ExitStack()


def mutants() -> list[Mutant]:
    """Return all of them: the entry point of the group ``wallaroo.mutants``."""
    return [
        *(mutant for entry in read("spark") for mutant in _mutants(entry)),
        Mutant("machinery without Spark", "", "the same code in one process", Machinery, "spark"),
    ]


def _mutants(entry: Entry) -> Iterator[Mutant]:
    fault = entry.patch

    def here() -> MutantEngine:
        return MutantEngine(entry.name, OneByOne(), fault, _CLAIMS)

    def on_spark() -> MutantEngine:
        return MutantEngine(entry.name, WithFault(fault), fault, _CLAIMS)

    mutant = Mutant(entry.name, entry.rule, entry.says, here, "spark")
    yield mutant
    yield replace(mutant, make=on_spark, home="spark-jvm", slow=True)
