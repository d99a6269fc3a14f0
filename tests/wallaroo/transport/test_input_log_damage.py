"""The input log on real files that were harmed: torn ends, flipped bits, files of others."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from log_records import records_in

from wallaroo.records import End, Frame, Record, Tick, Value
from wallaroo.transport.input_log import InputLog, InputLogError
from wallaroo.transport.log_format import START

MIB = 1 << 20


def test_damage_before_the_end_is_an_error(tmp_path):
    log = InputLog.open(tmp_path / "log", max_bytes=MIB, file_bytes=1)
    log.append("a", [b"one"])
    log.append("a", [b"two"])
    log.close()
    path = min(log.path.glob("*.log"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputLogError, match="is damaged: a block's checksum does not fit at byte"):
        InputLog.open(log.path, max_bytes=MIB)


def test_a_missing_file_is_an_error(tmp_path):
    log = InputLog.open(tmp_path / "log", max_bytes=MIB, file_bytes=1)
    for _ in range(3):
        log.append("a", [b"x"])
    log.close()
    sorted(log.path.glob("*.log"))[1].unlink()
    with pytest.raises(InputLogError, match="records 1 to 2 are missing"):
        InputLog.open(log.path, max_bytes=MIB)


APPENDS: list[list[list[Record]]] = [
    [[Frame("p", b"one", 5), Frame("p", b"two", 5)], [Frame("p", b"three", 5)], [Tick(5)]],
    [[Value("ä", b"one", 7), Value("ä", b"two", 7)], [Tick(1 << 60)], [End("ä", 1 << 61)]],
    [[Tick(0)], [End("p", 1 << 60, "ValueError", "no", ends_run=True)], [Tick(1 << 61)]],
]


def a_log(
    tmp_path: Path, *appends: list[bytes] | list[Record], first: int = 0
) -> tuple[Path, list[int]]:
    """Return the only file of a log, and where each of its blocks begins."""
    log = InputLog.open(tmp_path / "log", max_bytes=64 * MIB)
    log.append("p", [b""] * first)
    begins = []
    for payloads in appends:
        begins.append(log.size)
        log.append_records(
            [Frame("p", item, 5) if isinstance(item, bytes) else item for item in payloads]
        )
    log.sync()
    log.close()
    (path,) = log.path.glob("*.log")
    return path, begins


@pytest.mark.parametrize("appends", APPENDS, ids=["frames", "values", "ends"])
def test_one_flipped_bit_before_the_last_append_is_refused_wherever_it_is(tmp_path, appends):
    # The next block's number has a byte more.
    path, (begins, middle, last) = a_log(tmp_path, *appends, first=254)
    data = path.read_bytes()
    for place in range(begins, last):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(InputLogError, match=f"{path} is damaged: .* at byte ") as caught:
            InputLog.open(path.parent, max_bytes=MIB)
        where = begins if place < middle else middle
        assert f"truncate -s {where} {path}" in str(caught.value)
        assert path.read_bytes() == damaged


def test_the_line_that_gives_up_frames_gives_up_no_more(tmp_path):
    path, (_, second, _) = a_log(tmp_path, [b"one"], [b"two"], [b"three"])
    damaged = bytearray(path.read_bytes())
    damaged[second + 28] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(InputLogError, match="give up every record from 1 on with: ") as caught:
        InputLog.open(path.parent, max_bytes=MIB)
    subprocess.run(str(caught.value).rpartition("with: ")[2], shell=True, check=True)
    log = InputLog.open(path.parent, max_bytes=MIB)
    assert records_in(log, 0, log.next_sequence) == [Frame("p", b"one", 5)]
    log.close()


def test_frames_far_behind_a_bad_block_are_found(tmp_path):
    path, (begins, _, _) = a_log(
        tmp_path, [bytes(3 * MIB)], [random.Random(1).randbytes(3 * MIB)], [b"x"]
    )
    damaged = bytearray(path.read_bytes())
    damaged[begins] ^= 1  # its length: nobody can tell where it ends
    path.write_bytes(damaged)
    with pytest.raises(InputLogError, match=r"behind it, from byte \d+ \(record 1\)"):
        InputLog.open(path.parent, max_bytes=MIB)


def test_a_torn_append_that_holds_a_copy_of_a_log_is_dropped(tmp_path):
    (tmp_path / "other").mkdir()
    other, _ = a_log(tmp_path / "other", [b"x"], [b"x"])
    path, (last,) = a_log(tmp_path, [other.read_bytes() * 2])
    data = path.read_bytes()
    for cut in range(last, len(data), 3):
        path.write_bytes(data[:cut])
        log = InputLog.open(path.parent, max_bytes=MIB)
        assert log.next_sequence == 0
        log.close()


@pytest.mark.parametrize("lost", [slice(0, None), slice(10, None), slice(100, 200)])
def test_a_hole_of_zeros_in_the_last_append_is_a_torn_end(tmp_path, lost):
    path, (_, last) = a_log(tmp_path, [b"one"], [b"x" * 300])
    data = bytearray(path.read_bytes())
    hole = range(last, len(data))[lost]
    data[hole.start : hole.stop] = bytes(len(hole))
    path.write_bytes(data + bytes(5000))
    log = InputLog.open(path.parent, max_bytes=MIB)
    assert records_in(log, 0, log.next_sequence) == [Frame("p", b"one", 5)]
    log.close()


def test_a_block_with_a_number_that_belongs_elsewhere_is_refused(tmp_path):
    path, (begins, second) = a_log(tmp_path, [b"one"], [b"two"])
    data = path.read_bytes()
    for doubled in (data + data[second:], data[:second] + data[begins:second]):
        path.write_bytes(doubled)
        with pytest.raises(InputLogError, match=r"record \d where \d belongs at byte"):
            InputLog.open(path.parent, max_bytes=MIB)


def test_a_damaged_header_of_the_last_file_is_refused(tmp_path):
    path, (begins,) = a_log(tmp_path, [b"one"])
    data = path.read_bytes()
    assert begins == START
    for place in range(START):
        for flipped in (1, 128):
            damaged = bytearray(data)
            damaged[place] ^= flipped
            path.write_bytes(damaged)
            with pytest.raises(InputLogError, match="no header of an input log at byte 0"):
                InputLog.open(path.parent, max_bytes=MIB)
    path.write_bytes(data[: START - 1])
    with pytest.raises(InputLogError, match="no header of an input log at byte 0"):
        InputLog.open(path.parent, max_bytes=MIB)


def test_a_file_with_a_foreign_name_is_refused(tmp_path):
    (tmp_path / "diary.log").touch()
    with pytest.raises(InputLogError, match=r"diary\.log is not a file of an input log"):
        InputLog.open(tmp_path, max_bytes=MIB)
