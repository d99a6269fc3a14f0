"""What of a log goes to tasks: its runs in the workers' form, divided among tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise

from wallaroo.transport.byte_strings import ByteStrings
from wallaroo.transport.input_log import LoggedRun, RecordKind
from wallaroo.transport.skipping import SkippedPayload, skipped
from wallaroo_spark.plans.records import run_of
from wallaroo_spark.wire.job import Frames, Topic, WireKind, WireRun, joined

_SMALL = 64 * 1024  # bytes of payloads; fewer are not divided among tasks
_ASSUMED = 100  # bytes of what stands at an offset, where nobody here has read it


def frames_for_tasks(
    runs: Iterable[LoggedRun], topics: Mapping[str, Topic], skip: Collection[int], tasks: int
) -> list[Frames]:
    """Return records in consecutive parts of about equal number; in one part if they are small.

    Args:
        runs: the records, as the log has them.
        topics: of Kafka sources, by name.
        skip: numbers of records that are left out.
        tasks: the number of tasks.
    """
    runs = skipped(runs, skip) if skip else runs
    return _divided(joined([more for run in runs for more in _sent(run, topics, skip)]), tasks)


def _sent(run: LoggedRun, topics: Mapping[str, Topic], skip: Collection[int]) -> Iterator[WireRun]:
    """Yield a log's run as workers get it."""
    whole = WireRun(0, run.source, run.first, run.payloads, run.at)
    match run.kind:
        case RecordKind.FRAME if isinstance(marked := run.payloads[0], SkippedPayload):
            yield whole._replace(kind=WireKind.SKIPPED, items=[marked.why])
        case RecordKind.FRAME:
            yield whole
        case RecordKind.TICK:
            yield whole._replace(kind=WireKind.TICK)
        case RecordKind.OFFSETS | RecordKind.CONSUMED:
            for part in _apart(run, skip):
                yield _of_topic(part, topics[run.source], skip)
        case RecordKind.VALUE | RecordKind.ASSIGNED | RecordKind.END:
            for number, record in enumerate(run.records(), run.first):
                yield run_of(record, 0, number)


def _apart(run: LoggedRun, skip: Collection[int]) -> Iterator[LoggedRun]:
    """Yield the parts of a run: what is left out stands alone, and so does each logged record."""
    if run.kind is RecordKind.OFFSETS and not skip:
        yield run
        return
    end = run.first + len(run.payloads)
    numbers = {number + more for number in skip for more in (0, 1)}
    if run.kind is RecordKind.CONSUMED:
        numbers = {*range(run.first, end)}
    cuts = sorted({run.first, end, *[one for one in numbers if run.first < one < end]})
    for start, stop in pairwise(cuts):
        yield run.part(start, stop)


def _of_topic(run: LoggedRun, topic: Topic, skip: Collection[int]) -> WireRun:
    """Return a part that `_apart` has yielded as workers get it."""
    if run.kind is RecordKind.OFFSETS:
        partition, first = run.place
        items = range(first, first + len(run.payloads))
        kind = WireKind.OFFSETS
        made = WireRun(0, run.source, run.first, items, run.at, kind, (partition,))
    else:
        (record,) = run.records()
        made = run_of(record, 0, run.first, whole=topic.whole)
    if run.first in skip:
        marked = SkippedPayload(b"", run.first)
        made = made._replace(items=[marked.why], kind=WireKind.SKIPPED)
    return made


def _divided(frames: Frames, parts: int) -> list[Frames]:
    if sum([_bytes(run) for run in frames]) <= _SMALL:
        return [frames]
    size = -(-sum([len(run.items) for run in frames]) // parts)
    divided: list[Frames] = [[]]
    room = size
    for run in frames:
        start = 0
        while start < len(run.items):
            if not room:
                divided.append([])
                room = size
            some = run.items[start : start + room]
            divided[-1].append(run._replace(first=run.first + start, items=some))
            start += len(some)
            room -= len(some)
    return divided


def _bytes(run: WireRun) -> int:
    if run.kind is WireKind.OFFSETS:
        return _ASSUMED * len(run.items)
    if isinstance(run.items, ByteStrings):
        return run.items.size
    return sum([len(item) for item in run.items if isinstance(item, bytes)])
