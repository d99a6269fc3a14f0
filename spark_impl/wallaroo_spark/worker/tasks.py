"""What a worker does with a block: the head of a plan, and one level of state.

Both take blocks and return rows; `plans.batch` and `plans.stream` put them into Spark's operators.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from wallaroo.canonical import structure_or_kind
from wallaroo.engine import TaskFault
from wallaroo.transport.kafka.context import Context
from wallaroo_spark.wire.job import (
    FINISHED,
    LEAVING,
    Address,
    CaseSpec,
    HeadBlock,
    Held,
    Leaving,
    LevelBlock,
    Moment,
    Report,
    Row,
    Specs,
    Track,
    WireRun,
    leaving_tasks,
    moments,
    pack,
    shard_ids,
    shard_of,
)
from wallaroo_spark.wire.outbox import Arrival, Finished, Messages, Outbox, arrivals
from wallaroo_spark.worker.call_reports import CallFollower, CallReporter, follower_of
from wallaroo_spark.worker.calls import Calls
from wallaroo_spark.worker.captured_output import Printer, printing
from wallaroo_spark.worker.flow import Flow
from wallaroo_spark.worker.garbage import begin_task
from wallaroo_spark.worker.measuring import looking, worked
from wallaroo_spark.worker.program import program_for
from wallaroo_spark.worker.replay import replay
from wallaroo_spark.worker.segments import Entities, Map, all_entities_in
from wallaroo_spark.worker.states import IsolatedStates, NeedsIsolation, States, TrustingStates
from wallaroo_spark.worker.stored import Form, unpacked


def run_head(block: HeadBlock, shards: int, levels: int) -> list[Row]:
    """Decode frames and take their messages to the first state step, or to the sinks.

    Args:
        block: the frames.
        shards: number of shards of each operator.
        levels: number of operators.
    """
    begin_task()
    began = time.monotonic()
    printer = Printer()
    report = Report(span=block.span)
    contexts: dict[int, Context] = {}
    flows: dict[int, Flow] = {}
    records = sum([len(run.items) for run in block.frames])
    follower = follower_of(block.cases, block.frames)
    with printing(printer, block.cases), looking(block.cases, "head", records) as seen:
        for run in _fetched(block, report, contexts):
            flow = flows.get(run.case)
            if flow is None:
                case = block.cases[run.case]
                flow = flows[run.case] = _flow(case, printer, follower, isolated=case.isolated)
            flow.take(run)
        report.figures = seen()
    outboxes = [(case, flow.outbox) for case, flow in flows.items()]
    trackers = {case: flow.tracker for case, flow in flows.items() if flow.tracker is not None}
    tracks = {case: tracker.finish() for case, tracker in trackers.items()}
    report.printed = printer.finish()
    report.worked = worked(block.cases, records, time.monotonic() - began)
    if follower is not None:
        report.visits = follower.visits
    rows = _rows(block.cases, outboxes, report, shards, shard_ids(shards)[0], tracks, contexts)
    for case in block.cases.values():
        _die_if_asked(case.faults, 0)
    rows += block.rows
    if block.list_entities:
        rows += [Row(id_, level, None) for id_ in shard_ids(shards) for level in range(levels)]
    return rows


def _fetched(block: HeadBlock, report: Report, contexts: dict[int, Context]) -> Iterator[WireRun]:
    """Yield a block's input, with the records of its offsets; what that came to is reported.

    `contexts` gets those of the records, by their numbers.
    """
    if not block.topics:
        yield from block.frames
        return
    from wallaroo_spark.worker.fetching import Fetching  # needs Kafka's client

    fetching = Fetching(block.topics, block.frames, block.most)
    try:
        for run in block.frames:
            yield from fetching.of(run)
    finally:
        report.fetched = fetching.fetched
        contexts.update(fetching.contexts)
        fetching.close()


def run_level(shard: int, blocks: Iterable[LevelBlock], store: Map, shards: int) -> list[Row]:
    """Take messages through the entities that a shard holds.

    Args:
        shard: its id.
        blocks: blocks from all tasks before; together they hold all of the shard's messages.
        store: the shard's entities.
        shards: number of shards of each operator.
    """
    begin_task()
    began = time.monotonic()
    cases: Specs = {}
    messages: dict[Address, list[Messages]] = {}
    tracks: dict[Address, list[Track]] = {}
    for block in blocks:
        for key, value in block.segments:
            store.put(key, value)
        cases.update(block.cases)
        for address, runs in block.messages.items():
            messages.setdefault(address, []).extend(runs)
        for address, some in block.tracks.items():
            tracks.setdefault(address, []).extend(some)
    printer = Printer()
    report = Report()
    outboxes: list[tuple[int, Outbox]] = []
    all_runs = [run for runs in messages.values() for run in runs]
    taken = {address: sum([len(run.keys) for run in runs]) for address, runs in messages.items()}
    records = sum(taken.values())
    follower = follower_of(cases, messages=all_runs)
    part = f"group {min([address.group for address in messages], default=0)}, shard {shard}"
    with printing(printer, cases), looking(cases, part, records) as seen:
        for address in sorted(messages.keys() | tracks.keys()):
            case = cases[address.case]
            given = (arrivals(messages.get(address, ())), moments(tracks.get(address, ())))
            outbox, held = _run_address(case, address, given, store, printer, follower)
            outboxes.append((address.case, outbox))
            report.held[address] = held
            _die_if_asked(case.faults, program_for(case).plan.groups[address.group].level + 1)
        report.figures = seen()
    report.printed = printer.finish()
    report.worked = worked(cases, records, time.monotonic() - began)
    report.taken = {
        address: some for address, some in taken.items() if cases[address.case].measured
    }
    if follower is not None:
        report.visits = follower.visits
    return _rows(cases, outboxes, report, shards, shard)


def _die_if_asked(faults: Iterable[TaskFault], stage: int) -> None:
    """End this process if one of these faults is for this attempt at a task of the stage.

    It dies at the worst moment: user code was called and states were given to the state store, but
    the result was not returned. Spark starts the task again, elsewhere or in a new process.
    """
    attempts = max([fault.attempts for fault in faults if fault.stage == stage], default=0)
    if attempts:
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is not None and context.attemptNumber() < attempts:
            os._exit(1)


def list_entities(shard: int, store: Map) -> Row:
    """Return a report of all the entities that a shard holds."""
    listed = []
    for address, entity, state in all_entities_in(store):
        found = unpacked(state)  # one with a codec cannot be read here; nor can windows
        value = None if found.coded else pickle.loads(found.state)  # noqa: S301 - bytes the states made
        listed.append((address, entity, structure_or_kind(value), state))
    return Row(shard, FINISHED, pack(Report(entities=listed)))


def _run_address(
    case: CaseSpec,
    address: Address,
    given: tuple[list[Arrival], list[Moment]],
    store: Map,
    printer: Printer,
    follower: CallFollower | None,
) -> tuple[Outbox, Held]:
    """Return what a group sends, and what it holds now."""
    program = program_for(case)
    group = program.plan.groups[address.group]
    form = Form(program.application)
    for isolated in (case.isolated, True):
        printed = len(printer.lines)
        noted = 0 if follower is None else len(follower.visits.kept)
        seen = None if program.probes is None else program.probes.mark()
        entities = Entities(store, address, case.segment_bytes)
        kind = IsolatedStates if isolated else TrustingStates
        states: States = kind(entities, program.copies, form)
        flow = _flow(case, printer, follower, isolated=isolated)
        flow.hold(group, states)
        held: Held | None = None
        try:
            if group.windows:
                held = replay(flow, program, group, entities, *given)
            else:
                flow.visit(given[0])
                flow.flush()
        except NeedsIsolation:
            del printer.lines[printed:]
            if follower is not None:
                del follower.visits.kept[noted:]
            if program.probes is not None and seen is not None:
                program.probes.forget(seen)
            continue
        return flow.outbox, held or Held(entities.count)
    raise AssertionError("isolated mode never needs isolation")


def _flow(
    case: CaseSpec, printer: Printer, follower: CallFollower | None, *, isolated: bool
) -> Flow:
    return Flow(
        Calls(
            program_for(case),
            isolated=isolated,
            stop_on_error=case.stop_on_error,
            limit=case.limit,
            topics=case.topics,
            printer=printer,
            reporter=follower if case.monitor is None else CallReporter(case.monitor),
        )
    )


def _rows(
    cases: Specs,
    outboxes: list[tuple[int, Outbox]],
    report: Report,
    shards: int,
    shard: int,
    tracks: Mapping[int, Track] = MappingProxyType({}),
    contexts: Mapping[int, Context] = MappingProxyType({}),
) -> list[Row]:
    """Pack the outboxes: a row for each shard and level that gets messages, one for the driver.

    The tracks, by case, go to all shards that hold windows. Outputs that leave from workers have
    rows of their own, and so have the contexts of records, by number.
    """
    leaving: list[Row] = []
    blocks: dict[tuple[int, int], LevelBlock] = {}

    def block_for(address: Address, level: int) -> LevelBlock:
        target = (shard_of(address, shards), level)
        block = blocks.setdefault(target, LevelBlock({}, {}, {}))
        block.cases[address.case] = cases[address.case]
        return block

    for number, outbox in outboxes:
        groups = program_for(cases[number]).plan.groups
        for group, partition, run in outbox.messages:
            address = Address(number, group, partition)
            block = block_for(address, groups[group].level)
            block.messages.setdefault(address, []).append(run)
        if cases[number].topics:
            leaving += _leaving(outbox.finished, contexts, shards)
        if outbox.finished:
            report.finished.setdefault(number, Finished()).add(outbox.finished)
    for number, track in tracks.items():
        for holder in program_for(cases[number]).plan.groups:
            if not holder.windows:
                continue
            for partition in range(holder.divided(cases[number].partitions)):
                address = Address(number, holder.index, partition)
                block_for(address, holder.level).tracks.setdefault(address, []).append(track)
    rows = [Row(target, level, pack(block)) for (target, level), block in blocks.items()]
    if report:
        rows.append(Row(shard, FINISHED, pack(report)))
    return rows + leaving


def _leaving(finished: Finished, contexts: Mapping[int, Context], shards: int) -> list[Row]:
    """Take the outputs out that leave from workers, and return their rows.

    A partition of a topic belongs to one task. A call at which the run ends is told to all, and so
    are contexts: windows may give outputs to any.
    """
    tasks = leaving_tasks(shards)
    blocks: dict[int, Leaving] = {}
    if finished.ends or contexts:
        blocks = {shard: Leaving([], finished.ends, dict(contexts)) for shard in shard_ids(tasks)}
    staying = []
    for run in finished.outputs:
        if run.partition is None:
            staying.append(run)
        else:
            shard = shard_of(Address(0, run.node, run.partition), tasks)
            blocks.setdefault(shard, Leaving([], [], {})).outputs.append(run)
    finished.outputs = staying
    return [Row(shard, LEAVING, pack(block)) for shard, block in blocks.items()]
