"""Records of every kind in the input log: what is read, their times."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_records import records_in

from wallaroo.kafka_records import KafkaRecord
from wallaroo.records import (
    Assigned,
    Consumed,
    End,
    Frame,
    Record,
    Tick,
    Unused,
    Value,
    with_times_that_never_decrease,
)
from wallaroo.transport.input_log import InputLog, InputLogError, LoggedRun, RecordKind
from wallaroo.transport.log_format import bounded
from wallaroo.transport.stamps import Stamp

MIB = 1 << 20

any_text = st.text(st.characters(exclude_categories=[]), max_size=5)  # lone surrogates as well
times = st.sampled_from([0, 1, 2, 255, 256]) | st.integers(0, 2**63 - 1)
names = st.sampled_from(["a", "b", "ä" * 3])
some_bytes = st.none() | st.binary(max_size=3)
kafka_records = st.builds(
    KafkaRecord,
    some_bytes,
    some_bytes,
    st.lists(st.tuples(st.text(max_size=2), some_bytes), max_size=2).map(tuple),
    st.none() | times | st.integers(2**43, 2**63 - 1).map(lambda ms: ms * 10**6),
    st.text(max_size=3),
    st.integers(0, 2**31),
    st.integers(0, 2**63),
)
any_place = st.tuples(st.integers(0, 9), st.integers(0, 2**63), st.none() | st.integers(0, 2**63))
assigned = st.lists(any_place, max_size=2).map(tuple)
records = st.lists(
    st.builds(Frame, names, st.binary(max_size=5), times)
    | st.builds(Value, names, st.binary(max_size=5), times)
    | st.builds(Tick, times)
    | st.builds(End, names, times)
    | st.builds(End, names, times, any_text, any_text, st.booleans())
    | st.builds(End, names, times, partition=st.integers(0, 2**31))
    | st.builds(Consumed, names, kafka_records, times)
    | st.builds(Assigned, names, assigned, times, st.text(max_size=3))
    | st.builds(Unused, names, st.just(1), times),
    max_size=6,
)


@given(appends=st.lists(st.tuples(records, st.booleans()), max_size=5), data=st.data())
def test_time_1_records_of_every_kind_read_back_with_times_that_never_decrease(appends, data):
    with tempfile.TemporaryDirectory() as directory:
        log = InputLog.open(directory, max_bytes=MIB, file_bytes=150)
        written: list[Record] = []
        for some, restart in appends:
            written += some
            assert log.append_records(some) == len(written)
            if restart:
                log.close()
                log = InputLog.open(directory, max_bytes=MIB, file_bytes=150)
        expected = with_times_that_never_decrease(written)
        start = data.draw(st.integers(0, len(written)))
        stop = data.draw(st.integers(start, len(written)))
        assert records_in(log, start, stop) == expected[start:stop]
        assert log.latest_at == max([record.at for record in written], default=0)
        log.close()


def test_kafka_1_a_run_of_offsets_has_a_number_for_each_and_is_read_from_any_of_them(log):
    log.append("a", [b"1"], 10)
    log.append_offsets("k", 3, 100, 109, 11)
    log.append("a", [b"2"], 12)
    assert log.next_sequence == 12
    _, run, _ = log.runs(0, 12)
    assert (run.kind, run.source, run.first, len(run.payloads)) == (RecordKind.OFFSETS, "k", 1, 10)
    assert run.place == (3, 100)
    (run,) = log.runs(5, 8)
    assert (run.first, len(run.payloads), run.place) == (5, 3, (3, 104))
    assert [*run.payloads[1:]] == [run.part(6, 7).payloads[0], b""]
    assert [*run.part(8, 9).payloads] == []


def test_one_append_of_frames_is_one_run_with_its_arrival_time(log):
    log.append("a", [b"1", b"2"], 10)
    log.append("a", [b"3"])
    log.append_records([Value("g", b"4", 11), Value("g", b"5", 11), Tick(12), End("g", 12)])
    assert [run._replace(payloads=list(run.payloads)) for run in log.runs(1, 7)] == [
        LoggedRun("a", 1, [b"2"], RecordKind.FRAME, 10),
        LoggedRun("a", 2, [b"3"], RecordKind.FRAME, 10),
        LoggedRun("g", 3, [b"4", b"5"], RecordKind.VALUE, 11),
        LoggedRun("", 5, [b""], RecordKind.TICK, 12),
        LoggedRun("g", 6, [bytes(7)], RecordKind.END, 12),
    ]


def test_time_1_what_was_not_taken_moves_no_time(log, monkeypatch):
    log.append("a", [b"w"], 0)
    with pytest.raises(ValueError, match="is not below 2\\*\\*63"):
        log.append_records([Tick(5), Tick(1 << 63)])
    with pytest.raises(TypeError, match="a generator's value as bytes, not int"):
        log.append_records([Tick(5), Value("g", 6, 6)])
    with monkeypatch.context() as patch:
        patch.setattr("os.write", lambda fd, data: (_ for _ in ()).throw(OSError(5, "no disk")))
        with pytest.raises(InputLogError, match="no disk; not taken: 2 records"):
            log.append_records([Tick(5), Tick(6)])
    assert (log.next_sequence, log.latest_at) == (1, 0)
    log.append("a", [b"x"], -1)
    assert records_in(log, 1, 2) == [Frame("a", b"x", 0)]


def test_of_an_end_with_a_long_text_the_beginning_is_kept(log):
    end = End("g", 5, "€" * 70_000, "x" * 1_000_000, ends_run=True)
    log.append_records([end])
    assert records_in(log, 0, 1) == [bounded(end)]
    assert bounded(end) == replace(end, error_type="€" * 1_000, error="x" * 4_000)


def test_a_file_that_begins_at_another_time_than_the_one_before_ended_is_refused(tmp_path):
    for name, at in (("one", 5), ("other", 6)):
        log = InputLog.open(tmp_path / name, max_bytes=MIB, file_bytes=1)
        log.append_records([Tick(at)])
        log.append_records([Tick(7)])
        log.close()
    second = f"{1:020d}.log"
    shutil.copy(tmp_path / "other" / second, tmp_path / "one" / second)
    with pytest.raises(InputLogError, match=f"{second} begins at the time 6, .* ends at 5"):
        InputLog.open(tmp_path / "one", max_bytes=MIB)


def test_a_file_is_these_bytes(tmp_path):
    stamp = Stamp("0f" * 16, 7, "ab" * 8)
    log = InputLog.open(tmp_path / "log", max_bytes=MIB, admit=lambda _: stamp)
    log.append("ä", [b"one", b""], 5)
    log.append_records([Tick(258), End("ä", 258, "E", "no", ends_run=True)])
    log.close()
    (path,) = log.path.glob("*.log")
    assert path.read_bytes() == b"wallaroo input log 1\n" + bytes.fromhex(
        "abef45b0 0000000000000000 0000000000000000"
        "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f 0000000000000007 abababababababab 0000000000000000"
        "00000024 439a2619 0000000000000000 00000002 0002 00 0000000000000005"
        "c3a4 00000003 00000000 6f6e65"
        "0000001b af1c8020 0000000000000002 00000001 0000 02 0000000000000102"
        "00000000"
        "00000027 d1f448f0 0000000000000003 00000001 0002 03 0000000000000102"
        "c3a4 0000000a 03 0001 00000000 45 6e6f"
    )
