"""Exchanges: cases about as plain as a case, in which one thing has another's place.

A reduction takes the plainest operator that makes a case fail. A state computation may do something
else besides what the failure needs: it keeps a list, and sends nothing. And two frames of a reduced
case are often equal, since both are plain. If a case fails with the other thing too, the failure
does not need the first (`judge.blaming`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.operators import STATE_COMPUTATIONS
from wallaroo_conformance.cases.payloads import PAYLOADS

_FEW = 10  # payloads, the plainest


def exchanges(case: ConformanceCase) -> list[ConformanceCase]:
    """Return the cases in which one thing has been exchanged, without repetitions."""
    found = dict.fromkeys((*_inputs(case), *_state_computations(case)))
    return [one for one in found if one != case]


def _inputs(case: ConformanceCase) -> Iterator[ConformanceCase]:
    for index, entry in enumerate(case.inputs):
        for payload in PAYLOADS[:_FEW]:
            other = replace(entry, payload=payload)
            yield replace(case, inputs=(*case.inputs[:index], other, *case.inputs[index + 1 :]))


def _state_computations(case: ConformanceCase) -> Iterator[ConformanceCase]:
    for number, pipeline in enumerate(case.pipelines):
        for index, step in enumerate(pipeline.steps):
            for operator in STATE_COMPUTATIONS if step.operator in STATE_COMPUTATIONS else ():
                other = replace(step, operator=operator)
                steps = (*pipeline.steps[:index], other, *pipeline.steps[index + 1 :])
                pipelines = list(case.pipelines)
                pipelines[number] = replace(pipeline, steps=steps)
                yield replace(case, pipelines=tuple(pipelines))
