"""What a worker does with a block: the head of a plan, and one level of state.

Both take blocks and give rows; `wallaroo_spark.batch` and `wallaroo_spark.stream` put them into
Spark's operators.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator

from wallaroo.canonical import structure
from wallaroo.keys import decode_key, partition_number
from wallaroo_spark.flow import Flow
from wallaroo_spark.job import (
    FINISHED,
    CaseSpec,
    Events,
    Frames,
    Job,
    Report,
    Row,
    pack,
)
from wallaroo_spark.outbox import Event, Outbox
from wallaroo_spark.prints import Printer, printing
from wallaroo_spark.segments import Address, Entities, Map, stored
from wallaroo_spark.shards import shard_ids
from wallaroo_spark.states import IsolatedStates, Redo, TrustingStates, entity_of


def run_head(job: Job, frames: Frames) -> list[Row]:
    """Decode frames and take their messages to the first state step, or to the sinks."""
    printer = Printer()
    flows: dict[int, Flow] = {}
    with printing(printer):
        for number, source, first, payloads in frames:
            flow = flows.get(number)
            if flow is None:
                case = job.cases[number]
                flow = flows[number] = _flow(case, printer, isolated=case.isolated)
            for offset, payload in enumerate(payloads):
                flow.decode(source, first + offset, payload)
    outboxes = [(case, flow.outbox) for case, flow in flows.items()]
    return _rows(job, outboxes, Report(printed=printer.finish()), shard_ids(job.shards)[0])


def run_level(
    job: Job, shard: int, blocks: Iterable[Events], store: Map, *, list_entities: bool
) -> list[Row]:
    """Take messages through the entities that a shard holds.

    Args:
        job: the job.
        shard: which.
        blocks: from all tasks before; together they hold every message of this batch.
        store: the shard's entities.
        list_entities: report the entities as they are afterwards.
    """
    events: dict[Address, list[Event]] = {}
    for block in blocks:
        for address, some in block.items():
            events.setdefault(address, []).extend(some)
    printer = Printer()
    report = Report()
    outboxes: list[tuple[int, Outbox]] = []
    with printing(printer):
        for address in sorted(events):
            # Spark keeps no order among rows; an entity meets its messages in theirs (order-1).
            arrived = sorted(events[address], key=_arrival)
            outbox, count = _run_address(job, address, arrived, store, printer)
            outboxes.append((address.case, outbox))
            report.counts[address] = count
        if list_entities:
            report.entities = list(_listed(job, store))
    report.printed = printer.finish()
    return _rows(job, outboxes, report, shard)


def _run_address(
    job: Job, address: Address, events: list[Event], store: Map, printer: Printer
) -> tuple[Outbox, int]:
    """Return what came out, and the number of entities there are now."""
    case = job.cases[address.case]
    component = case.plan.components[address.component]
    for isolated in (case.isolated, True):
        printed = len(printer.lines)
        entities = Entities(store, address, case.segment_bytes)
        states = IsolatedStates(entities) if isolated else TrustingStates(entities)
        flow = _flow(case, printer, isolated=isolated)
        flow.hold(component, states)
        try:
            for event in events:
                flow.visit(event)
            states.flush()
        except Redo:
            del printer.lines[printed:]
            continue
        return flow.outbox, entities.count
    raise AssertionError("isolated mode asks for no redo")


def _arrival(event: Event) -> tuple[tuple[int, ...], int]:
    # Nodes stand in topological order, so a node's index orders the steps of one pipeline.
    return event.lineage, event.node


def _flow(case: CaseSpec, printer: Printer, *, isolated: bool) -> Flow:
    return Flow(
        case.plan,
        partitions=case.partitions,
        isolated=isolated,
        stop_on_error=case.stop_on_error,
        limit=case.limit,
        printer=printer,
    )


def _rows(job: Job, outboxes: list[tuple[int, Outbox]], report: Report, shard: int) -> list[Row]:
    """Pack what came out: a row for each shard and level it goes to, one for the driver."""
    events: dict[tuple[int, int], dict[Address, list[Event]]] = {}
    for case, outbox in outboxes:
        components = job.cases[case].plan.components
        for (component, number), some in outbox.events.items():
            address = Address(case, component, number)
            target = (job.shard(address), components[component].level)
            events.setdefault(target, {}).setdefault(address, []).extend(some)
        if outbox.finished:
            finished = report.finished.setdefault(case, type(outbox.finished)())
            finished.outputs += outbox.finished.outputs
            finished.letters += outbox.finished.letters
            finished.ends += outbox.finished.ends
    rows = [Row(shard, level, pack(block)) for (shard, level), block in events.items()]
    if report:
        rows.append(Row(shard, FINISHED, pack(report)))
    return rows


def _listed(job: Job, store: Map) -> Iterator[tuple[int, str, bytes, int, object]]:
    for address, entity, state in stored(store):
        case = job.cases[address.case]
        partition, key = entity_of(case.plan.components[address.component], entity)
        number = partition_number(decode_key(key), case.partitions)
        value = pickle.loads(state)  # noqa: S301 - bytes the states made
        yield address.case, partition, key, number, structure(value)
