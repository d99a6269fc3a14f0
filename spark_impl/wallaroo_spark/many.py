"""`run_many`: hundreds of independent cases in one job.

Cases with chosen cuts go into one stream, the others into one batch job. A case that ended early is
run once more with all calls after its end left out, because other shards had gone on and their
entities show it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from wallaroo.engine import Case
from wallaroo.trace import Trace
from wallaroo_spark.batch import run_batch
from wallaroo_spark.job import CaseSpec, Frames, Job, Report
from wallaroo_spark.outbox import Finished
from wallaroo_spark.shipping import shipment_of_this_process
from wallaroo_spark.traces import first_end, frames_of, limited, merged, spec_of, trace_of


def run_cases(spark: Any, cases: Sequence[Case], shards: int) -> list[Trace]:
    """Run cases and return their traces, in their order.

    Raises:
        ShippingError: an application cannot be sent to workers.
        ValueError: a case asks for what there is not.
    """
    specs = [spec_of(case) for case in cases]
    traces: dict[int, Trace] = {}
    numbers = list(range(len(cases)))
    while numbers:
        again: list[int] = []
        for number, finished, entities in _run(spark, cases, specs, numbers, shards):
            end = first_end(finished)
            if end is not None and specs[number].limit is None:
                specs[number] = limited(specs[number], end.order)
                again.append(number)
            else:
                case = cases[number]
                traces[number] = trace_of(case.application, case.input_log, finished, entities)
        numbers = again
    return [traces[number] for number in range(len(cases))]


def _run(
    spark: Any, cases: Sequence[Case], specs: list[CaseSpec], numbers: list[int], shards: int
) -> list[tuple[int, Finished, list[tuple[str, bytes, int, Any]]]]:
    results = []
    for streaming in (False, True):
        chosen = [n for n in numbers if (cases[n].batches is not None) == streaming]
        if not chosen:
            continue
        job = Job(shards, shipment_of_this_process(), tuple([specs[n] for n in chosen]))
        if streaming:
            from wallaroo_spark.cuts import run_stream

            report = run_stream(spark, job, [cases[n] for n in chosen])
        else:
            frames: Frames = []
            for index, number in enumerate(chosen):
                log = cases[number].input_log
                frames += frames_of(index, log, 0, len(log))
            report = merged(run_batch(spark, job, frames))
        _show(report)
        entities: dict[int, list[tuple[str, bytes, int, Any]]] = {}
        for index, *entity in report.entities:
            entities.setdefault(index, []).append(tuple(entity))
        for index, number in enumerate(chosen):
            finished = report.finished.get(index, Finished())
            results.append((number, finished, entities.get(index, [])))
    return results


def _show(report: Report) -> None:
    for step, line in report.printed:
        print(f"[{step}] {line}" if step else line, file=sys.stderr)
