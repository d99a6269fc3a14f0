"""What tasks get of a log, record by record: each once, and marked if it is left out."""

from itertools import chain

from drawn_runs import any_numbers, every_kind, in_a_log, one_by_one, times
from hypothesis import given
from hypothesis import strategies as st
from wallaroo_spark.live.to_tasks import frames_for_tasks
from wallaroo_spark.wire.job import Topic, WireKind, unpack

from wallaroo.records import Assigned, Consumed, End, Frame, Value
from wallaroo.transport.byte_strings import ByteStrings
from wallaroo.transport.log_format import LoggedRun, RecordKind, offsets_group
from wallaroo.transport.logged import decoded

LARGE = b"x" * 70_000
large = st.builds(lambda at: [(RecordKind.FRAME, "frames", at, [LARGE])], times)
many = st.builds(lambda at: [offsets_group("topic", 1, 100, 149, at)], times)
runs = in_a_log(every_kind | large | many)


def for_a_task(one, left_out, whole):
    """Return kind, item and partitions of a record as a task is to get it; `None`: it gets none."""
    number, source, kind, at, content = one
    why = f"it is left out, as --skip-record {number} says"
    if kind is RecordKind.OFFSETS:
        partition, offset = content
        made = WireKind.OFFSETS, offset, (partition,)
        return (WireKind.SKIPPED, why, (partition,)) if left_out else made
    (record,) = LoggedRun(source, number, [content], kind, at).records()
    match record:
        case Frame():
            return (WireKind.SKIPPED, why, ()) if left_out else (WireKind.FRAMES, content, ())
        case Value():
            pickled, hindered = (b"", why) if left_out else decoded(content)
            if hindered is not None:
                return WireKind.UNPORTABLE, hindered, ()
            return WireKind.VALUES, pickled, ()
        case Consumed(record=read):
            of = (read.partition,)
            if left_out:
                return WireKind.SKIPPED, why, of
            return WireKind.RECORDS, read if whole else read.value, of
        case Assigned(partitions=places):
            return WireKind.ASSIGNED, b"", tuple(number for number, _, _ in places)
        case End(partition=partition):
            return WireKind.END, record, () if partition is None else (partition,)
    return (WireKind.TICK, b"", ()) if kind is RecordKind.TICK else None


@given(
    runs, st.just(()) | any_numbers, st.integers(1, 4), st.booleans(), st.sets(st.integers(0, 9))
)
def test_tasks_get_each_record_once_with_its_number_and_time(
    runs, numbers, tasks, whole, in_one_piece
):
    expected = []
    for one in one_by_one(runs):
        if made := for_a_task(one, one.number in numbers, whole):
            expected.append((one.number, one.source, one.at, *made))
    for at, run in enumerate(runs):
        if at in in_one_piece and run.kind is not RecordKind.OFFSETS:  # as on disk
            runs[at] = run._replace(payloads=ByteStrings.of(run.payloads))
    topic = Topic("t", "b:1", (), committed_only=True, whole=whole, traced=False)
    parts = frames_for_tasks(runs, {"topic": topic}, numbers, tasks)
    found = []
    for run in chain(*parts):
        for number, item in enumerate(run.items, run.first):
            content = unpack(item) if run.kind is WireKind.END else item
            found.append((number, run.source, run.at, run.kind, content, run.partitions))
        assert run.kind is not WireKind.OFFSETS or type(run.items) is range
    assert found == expected
    if any(LARGE in one for one in found):
        assert max(sum(len(run.items) for run in part) for part in parts) <= -(-len(found) // tasks)
