"""`run_many`: hundreds of independent cases in one job.

Cases with chosen batches go into one stream, the others into one batch job. When a run ends early,
other shards may have processed later messages already, and their entities show it. So such a case
is run again without the calls after its end; in a stream, while the other cases continue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from wallaroo.engine import Case
from wallaroo.trace import Trace
from wallaroo.user_code.output import show
from wallaroo_spark.bounded.micro_batches import StreamCase, StreamJob, StreamQuery
from wallaroo_spark.bounded.traces import Records, spec_of, trace_of
from wallaroo_spark.jvm.session import Session
from wallaroo_spark.jvm.shipping import shipment_of_this_process
from wallaroo_spark.plans.batch import run_batch
from wallaroo_spark.plans.reports import first_end
from wallaroo_spark.wire.job import Address, CaseSpec, Frames, Report
from wallaroo_spark.wire.outbox import Finished
from wallaroo_spark.worker.modules import Shipment
from wallaroo_spark.worker.plan import plan

_Entities = list[tuple[Address, bytes, Any, bytes]]
_Result = tuple[Finished, _Entities]

_query: StreamQuery | None = None  # the running query of the process's only session


def run_cases(session: Session, cases: Sequence[Case]) -> list[Trace]:
    """Run cases and return their traces, in their order.

    Raises:
        ShippingError: an application cannot be sent to workers.
        ValueError: a case asks for something this engine does not have.
    """
    specs = [spec_of(case) for case in cases]
    records = [Records(case) for case in cases]
    plans = [plan(case.application) for case in cases]
    shipment = shipment_of_this_process()
    whole = [index for index, case in enumerate(cases) if case.batches is None]
    streamed = [index for index, case in enumerate(cases) if case.batches is not None]
    levels = max([plan.levels for plan in plans], default=0)
    results = dict(_in_a_batch(session, records, specs, whole, levels, shipment))
    if streamed:
        job = StreamJob(
            [
                StreamCase(
                    specs[index], records[index], records[index].bounds(cases[index].batches)
                )
                for index in streamed
            ],
            session.cores,
        )
        _running_query(session, levels, shipment).run(job)
        results.update(_divided(streamed, job.numbers, job.report))
    return [
        trace_of(case, records[index], plans[index], *results[index])
        for index, case in enumerate(cases)
    ]


def _in_a_batch(
    session: Session,
    records: Sequence[Records],
    specs: list[CaseSpec],
    indices: list[int],
    levels: int,
    shipment: Shipment,
) -> Iterator[tuple[int, _Result]]:
    """Yield the results of cases without chosen batches."""
    while indices:
        frames: Frames = []
        for index in indices:
            ((start, stop),) = records[index].bounds(None)
            limit = specs[index].limit
            frames += records[index].frames(
                index, start, stop if limit is None else limit[0][0] + 1
            )
        some = {index: specs[index].in_batch(0) for index in indices}
        report = Report.merged(
            run_batch(session.spark, some, frames, levels, session.cores, shipment)
        )
        again: list[int] = []
        for index, result in _divided(indices, indices, report):
            end = first_end(result[0])
            if end is not None and specs[index].limit is None:
                specs[index] = replace(specs[index], limit=end.order)
                again.append(index)
            else:
                yield index, result
        indices = again


def _running_query(session: Session, levels: int, shipment: Shipment) -> StreamQuery:
    """Return a query with at least that many levels, which can find all modules."""
    global _query  # noqa: PLW0603 - as there is one session a process
    if _query is not None:
        same = _query.session is session and _query.usable
        if same and _query.levels >= levels and _query.shipment.covers(shipment):
            return _query
        if same:
            levels = max(levels, _query.levels)
        _query.close()
    _query = StreamQuery(session, levels, session.cores, shipment)
    return _query


def _divided(indices: list[int], numbers: list[int], report: Report) -> list[tuple[int, _Result]]:
    """Return each case's part of a report, found by the case's number."""
    for line in report.printed:
        show(line)
    entities: dict[int, _Entities] = {}
    for entity in report.entities:
        entities.setdefault(entity[0].case, []).append(entity)
    return [
        (index, (report.finished.get(number, Finished()), entities.get(number, [])))
        for index, number in zip(indices, numbers, strict=True)
    ]
