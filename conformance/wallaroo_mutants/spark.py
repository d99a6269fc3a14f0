"""The mutants of the Spark engine: its workers' code, which runs in this process.

So a kill costs seconds (`wallaroo_mutants.machinery`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from wallaroo_conformance.killing import Mutant
from wallaroo_spark.bounded.traces import SMALL
from wallaroo_spark.engine import SparkEngine

from wallaroo.engine import Capabilities, Case
from wallaroo.overriding import override
from wallaroo.trace import Trace
from wallaroo_mutants.catalogue import Entry, MutantEngine, read
from wallaroo_mutants.machinery import run_here

_CLAIMS = Capabilities(isolation=frozenset({"isolated"}), live=False, kafka=True, small=SMALL)
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


def mutants() -> list[Mutant]:
    """Return all of them: the entry point of the group ``wallaroo.mutants``."""
    return [
        *map(_mutant, read("spark")),
        Mutant("machinery without Spark", "", "the same code in one process", Machinery, "spark"),
    ]


def _mutant(entry: Entry) -> Mutant:
    made = partial(MutantEngine, entry.name, OneByOne(), entry.patch, _CLAIMS)
    return Mutant(entry.name, entry.rule, entry.says, made, "spark")
