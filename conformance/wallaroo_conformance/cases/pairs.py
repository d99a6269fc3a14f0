"""Pairs: every operator right behind every other, in pipelines of two steps.

Some faults show only between two neighbours: an engine may hand on a message without a copy, or
make one piece of code for both. A longer row would hold more pairs, but try fewer: messages that
its first operators filter never reach its last.
"""

from __future__ import annotations

from itertools import product

from wallaroo_conformance.cases.case import (
    PIPELINES,
    ConformanceCase,
    Input,
    PartitionSpec,
    PipelineSpec,
    StepSpec,
)
from wallaroo_conformance.cases.operators import ENCODERS, STEPS, Tone, Trait

_PAYLOADS = (b"a", b"b a c")
_EACH_ITS_OWN = (PartitionSpec("keyed"), PartitionSpec("keyed"))
[_EXACT] = ENCODERS.having(Trait.EXACT)


def pairs(tone: Tone) -> list[ConformanceCase]:
    """Return cases that hold every pair of operators; `tame`: of those that make no findings."""
    rows = [_row(one, other) for one, other in product(STEPS.choices(tone), repeat=2)]
    most = len(PIPELINES)
    return [_case(tuple(rows[at : at + most]), tone) for at in range(0, len(rows), most)]


def _row(one: str, other: str) -> PipelineSpec:
    """Return a pipeline of two steps; those with state have a partition each."""
    return PipelineSpec(steps=(StepSpec(one), StepSpec(other, partition=1)), sinks=(_EXACT,))


def _case(rows: tuple[PipelineSpec, ...], tone: Tone) -> ConformanceCase:
    return ConformanceCase(
        rows,
        _EACH_ITS_OWN,
        tuple(Input(at, payload) for payload in _PAYLOADS for at in range(len(rows))),
        isolation="isolated" if tone == "any" else "trusting",
    )
