"""The input log on real files: what it keeps, what a crash leaves, what a full disk does."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import threading

import pytest
from running import ran

from wallaroo.transport import input_log
from wallaroo.transport.input_log import InputLog, InputLogError

MIB = 1 << 20


def reopened(log: InputLog, **options) -> InputLog:
    log.close()
    return InputLog.open(log.path, max_bytes=log.max_bytes, **options)


def payloads_of(log: InputLog, start: int, stop: int) -> list[bytes]:
    return [payload for run in log.runs(start, stop) for payload in run.payloads]


def test_an_append_larger_than_a_block_reads_back(tmp_path):
    log = InputLog.open(tmp_path / "log", max_bytes=64 * MIB)
    payloads = [bytes([n]) * MIB for n in range(10)]
    log.append("a", payloads)
    assert payloads_of(log, 0, 10) == payloads
    log.close()


def test_blocks_are_of_bounded_size_unless_one_payload_is_larger():
    sizes = [MIB, 3 * MIB, 1, MIB + 1, 3 * MIB - 1, 5 * MIB, 0]
    parts = input_log._parts([bytes(size) for size in sizes])
    assert [len(payload) for part in parts for payload in part] == sizes
    assert [len(part) for part in parts] == [2, 2, 1, 1, 1]


def test_the_index_finds_frames_far_into_a_file(tmp_path):
    log = InputLog.open(tmp_path / "log", max_bytes=64 * MIB)
    for n in range(3000):
        log.append("a", [b"%d" % n, bytes(100)])
    assert payloads_of(log, 5998, 5999) == [b"2999"]
    log = reopened(log)
    assert payloads_of(log, 3000, 3001) == [b"1500"]
    log.close()


def test_a_range_that_is_not_held_is_an_error(log):
    log.append("a", [b"1"])
    with pytest.raises(InputLogError, match="holds 1 of the records 0 to 2"):
        log.runs(0, 2)


def test_a_batch_ends_by_bytes_or_by_records(log):
    log.append("a", [bytes(10)] * 10)
    assert log.end_within(0) == 0, "nothing is durable yet"
    log.sync()
    assert log.end_within(0) == 10
    assert log.end_within(2, max_records=3) == 5
    assert log.end_within(2, max_bytes=35) == 5
    assert log.end_within(2, max_bytes=1) == 3, "one frame goes in, however large"
    assert log.end_within(9, max_bytes=1) == 10
    assert log.end_within(10, max_bytes=1) == 10


def test_dropping_frees_whole_files_and_the_numbers_go_on(tmp_path):
    log = InputLog.open(tmp_path / "log", max_bytes=4000, file_bytes=1000)
    while not log.full:
        log.append("a", [bytes(100)])
    end = log.sync()
    log.drop_before(end // 2)
    assert not log.full
    assert 0 < log.first_sequence <= end // 2
    assert len(payloads_of(log, end // 2, end)) == end - end // 2
    log.drop_before(end)
    assert log.size < 2000
    log = reopened(log, file_bytes=1000)
    assert log.next_sequence == end
    log.close()


def test_a_file_that_another_thread_deletes_is_not_read_for_what_is_behind_it(tmp_path):
    log = InputLog.open(tmp_path / "log", max_bytes=4000, file_bytes=1000)
    while len(files := sorted(log.path.glob("*.log"))) < 3:
        log.append("a", [bytes(100)])
    end = log.sync()
    files[0].unlink()  # `drop_before` forgets it afterwards
    behind = int(files[1].stem)
    assert len(payloads_of(log, behind, end)) == end - behind
    assert log.end_within(behind, max_bytes=MIB) == end
    log.close()


def test_dropping_what_is_not_durable_is_an_error(log):
    log.append("a", [b"1"])
    with pytest.raises(InputLogError, match="only the records before 0 are durable"):
        log.drop_before(1)


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputLogError, match="cannot be opened: Not a directory"):
        InputLog.open(tmp_path / "file" / "log", max_bytes=MIB)


def test_threads_append_sync_read_and_drop_together(tmp_path):
    log = InputLog.open(tmp_path / "log", max_bytes=MIB, file_bytes=2000)
    done = threading.Event()

    def append() -> None:
        for n in range(500):
            log.append("a", [b"%d" % n])
        done.set()

    writer = threading.Thread(target=append)
    writer.start()
    seen = 0
    while not (done.is_set() and seen == 500):
        end = log.sync()
        assert payloads_of(log, seen, end) == [b"%d" % n for n in range(seen, end)]
        log.drop_before(end)
        seen = end
    writer.join()
    log.close()


@pytest.fixture
def small_disk(tmp_path):
    """(path, words): a command after these words has one MiB of disk at that path, and only it."""
    path = tmp_path / "disk"
    path.mkdir()
    mounted = 'mount -t tmpfs -o size=1m,mode=700 tmpfs "$0" && exec "$@"'
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted, str(path)]
    if shutil.which("unshare") is None or subprocess.run([*words, "true"]).returncode:
        pytest.skip("file systems cannot be mounted here")
    return path, words


ON_A_SMALL_DISK = """
import sys
from wallaroo.transport.input_log import InputLog, InputLogFullError
log = InputLog.open(sys.argv[1], max_bytes=1 << 30)
taken = 0
for payloads in ([b"x" * 1000] * 3, [b""]):  # until there is no room for a byte more
    try:
        while True:
            taken = log.append("a", payloads)
    except InputLogFullError as error:
        print(error)
log.sync()
log.drop_before(taken)  # all of it, in a file that is not large enough to be dropped otherwise
assert log.append("b", [b"y" * 1000]) == taken + 1, "there is room again"
log.sync()
print(len(log.runs(taken, taken + 1)))
"""


def test_a_full_disk_has_room_again_once_all_is_dropped(small_disk):
    path, words = small_disk
    command = [*words, sys.executable, "-c", ON_A_SMALL_DISK, path]
    done = ran(command, check=True)
    assert done.stdout == (
        f"the input log {path} cannot be written: No space left on device; "
        "not taken: 3 records\n"
        f"the input log {path} cannot be written: No space left on device; "
        "not taken: 1 record\n1\n"
    )


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda path: path.unlink(), "No such file"),
        (lambda path: os.truncate(path, path.stat().st_size - 1), "checksum does not fit"),
        (lambda path: os.truncate(path, 40), "cut off"),
    ],
    ids=["gone", "a byte short", "cut inside a header"],
)
def test_reading_what_was_harmed_meanwhile_names_the_file(log, harm, says):
    log.append("a", [b"1", b"2"])
    log.sync()
    (path,) = [path for path in log.path.iterdir() if path.stat().st_size and path.suffix == ".log"]
    harm(path)
    with pytest.raises(InputLogError, match=rf"the input log's file .*{path.name}: .*{says}"):
        log.runs(0, 2)


@pytest.mark.parametrize("failing", [1, 2], ids=["the full file", "the folder"])
def test_a_sync_that_fails_where_a_file_begins_is_final(tmp_path, monkeypatch, failing):
    log = InputLog.open(tmp_path / "log", max_bytes=MIB, file_bytes=1)
    log.append("a", [b"one"])
    descriptors = []

    def fsync(fd, sync=os.fsync):
        if stat.S_ISDIR(os.fstat(fd).st_mode) or not descriptors:
            descriptors.append(fd)
            if len(descriptors) == failing:
                raise OSError(errno.EIO, "Input/output error")
        sync(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(InputLogError, match="could not be synced"):
        log.append("a", [b"two"])
    with pytest.raises(InputLogError, match="could not be synced"):
        log.append("a", [b"two"])
    log.close()
    monkeypatch.undo()
    again = InputLog.open(tmp_path / "log", max_bytes=MIB)
    assert payloads_of(again, 0, again.next_sequence) == [b"one"]
    again.close()


def test_where_a_batch_ends_cannot_be_read(log):
    log.append("a", [b"one", b"two"])
    log.sync()
    next(log.path.glob("*.log")).unlink()
    with pytest.raises(InputLogError, match=r"\.log: .*No such file"):
        log.end_within(0, max_bytes=4)


def test_a_file_that_gets_no_second_name_is_taken_back(tmp_path, monkeypatch):
    (tmp_path / "kept").mkdir()
    log = InputLog.open(tmp_path / "log", MIB, recording=tmp_path / "kept")
    log.append("a", [b"x"])
    log.sync()
    with monkeypatch.context() as broken:
        broken.setattr(os, "write", refusing(errno.ENOSPC))
        broken.setattr(os, "link", refusing(errno.EIO))
        with pytest.raises(InputLogError, match="not taken"):
            log.append("a", [b"y"])
        with pytest.raises(InputLogError, match="not taken"):
            log.drop_before(1)  # begins a file, since the disk was full
    log.append("a", [b"z"])
    again = reopened(log, recording=tmp_path / "kept")
    assert payloads_of(again, 0, 2) == [b"x", b"z"]
    again.close()


def refusing(number: int):
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


def test_a_sync_counts_only_if_no_other_has_failed_meanwhile(tmp_path, monkeypatch):
    log = InputLog.open(tmp_path / "log", max_bytes=MIB)
    log.append("a", [b"one"])
    synced = []

    def fsync(fd):
        synced.append(fd)
        if len(synced) == 2:
            raise OSError(errno.EIO, "Input/output error")  # which the system says once
        with pytest.raises(InputLogError):
            log.sync()

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(InputLogError, match="could not be synced"):
        log.sync()
    assert log.durable_sequence == 0
    log.close()
