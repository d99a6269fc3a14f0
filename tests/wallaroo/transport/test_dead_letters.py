"""What becomes of dead letters: lines of JSON, counts, a log that stays readable (dead-1)."""

import base64
import errno
import json
import logging
import os
import re
import threading

import pytest
from letters import dead_letter

from wallaroo.trace import Reason
from wallaroo.transport.dead_letter_file import DeadLetterFile, files_of
from wallaroo.transport.dead_letters import DeadLetterFileError, DeadLetters
from wallaroo.transport.rate_limit import RateLimited
from wallaroo.user_code.failure import Cause, UserFrame


def letter(sequence=0, **changes):
    return dead_letter(lineage=(sequence, 2), **changes)


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_dead_1_a_json_line_each_with_the_fields_of_the_rule(tmp_path):
    path = tmp_path / "dead.jsonl"
    letters = DeadLetters(path)
    letters.add([letter(7), letter(8, step=None, key=None, sink=1, reason=Reason.ENCODE)])
    letters.close()
    first, second = map(json.loads, path.read_text().splitlines())
    assert first == {
        "lineage": [7, 2],
        "source": "p",
        "pipeline": "p",
        "step": "count",
        "sink": None,
        "key": {"str": "k"},
        "reason": "raised",
        "error_type": "ValueError",
        "error": "it\nbroke \x1b[31m",
        "payload": base64.b64encode(b"\xff\x00").decode(),
        "where": [],
        "causes": [],
        "run": letters.run,
    }
    assert (second["step"], second["sink"], second["key"]) == (None, 1, None)
    assert path.stat().st_mode & 0o777 == 0o600  # it holds users' payloads


def test_dead_1_they_are_logged_escaped_and_not_too_often(caplog):
    clock = Clock()
    letters = DeadLetters(clock=clock)
    letters.add([letter(n) for n in range(1000)])
    assert len(caplog.records) == 5
    assert caplog.records[0].getMessage() == (
        "dead letter: pipeline p, step count, raised (ValueError), message 0.2: "
        "it\\nbroke \\x1b[31m"
    )
    clock.now = 60.0
    letters.add([letter(1000), letter(1001)])
    letters.close()
    assert caplog.records[5].getMessage().endswith(" (and 995 more like it)")
    assert caplog.records[6].getMessage().startswith("dead letter: pipeline p, step count, raised")
    assert "message 1001.2" in caplog.records[6].getMessage()
    assert len(caplog.records) == 7


def test_dead_1_they_say_where_user_code_failed(caplog):
    caplog.set_level(logging.DEBUG, "wallaroo.dead_letters")
    where = UserFrame("app.py", 3, "count"), UserFrame("a\x1b.py", 7, "find")
    cause = Cause("KeyError", "'\n'", (UserFrame("app.py", 5, "look"),))
    DeadLetters().add([letter(n, where=where, causes=(cause,)) for n in range(6)])
    warned, *traced = [record.getMessage() for record in caplog.records[:6]]
    assert warned.endswith(": it\\nbroke \\x1b[31m; at a\\x1b.py, line 7, in find")
    assert traced == [
        "message 0.2: ValueError: it\\nbroke \\x1b[31m",
        "message 0.2:   app.py, line 3, in count",
        "message 0.2:   a\\x1b.py, line 7, in find",
        "message 0.2: caused by KeyError: '\\n'",
        "message 0.2:   app.py, line 5, in look",
    ]
    assert len(caplog.records) == 5 * 6  # those that are not logged have no traceback either


def test_what_the_file_holds_stays_and_half_a_line_spoils_no_other(tmp_path):
    path = tmp_path / "dead.jsonl"
    path.write_text('{"old": 1}\n{"torn": ')
    letters = DeadLetters(path)
    letters.add([letter()])
    letters.close()
    old, torn, new = path.read_text().splitlines()
    assert (json.loads(old), torn) == ({"old": 1}, '{"torn": ')
    assert json.loads(new)["lineage"] == [0, 2]


def test_a_disk_that_is_full_inside_a_line_has_the_whole_ones_before_it(tmp_path, monkeypatch):
    lines = [f"{'x' * size}\n".encode() for size in (9, 30, 17)]
    before = b"y" * 44 + b"\n"
    for room in range(sum(map(len, lines))):
        path = tmp_path / f"{room}.jsonl"
        path.write_bytes(before)
        letters = DeadLetterFile(path, 1 << 20)
        left = [room]

        def write(fd, data, left=left, real=os.write):
            if not left[0]:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            count = real(fd, data[: min(7, left[0])])
            left[0] -= count
            return count

        with monkeypatch.context() as patch:
            patch.setattr("os.write", write)
            with pytest.raises(OSError, match="No space"):
                letters.write(lines)
        letters.close()
        assert path.read_bytes() == before + b"".join(lines[: letters.written])
        assert letters.written == len([n for n in (1, 2) if room >= sum(map(len, lines[:n]))])


def numbers(path):
    """Return the sequence numbers in the files, those of the oldest first, and their sizes."""
    files = files_of(path)
    lines = [line for file in files for line in file.read_text().splitlines()]
    return [json.loads(line)["lineage"][0] for line in lines], [f.stat().st_size for f in files]


def test_beyond_the_bound_the_oldest_are_deleted_and_that_is_said(tmp_path, caplog):
    path = tmp_path / "dead.jsonl"
    letters = DeadLetters(path, most=10_000)
    written = 0
    for n in range(100):
        letters.add([letter(n)])
        found, sizes = numbers(path)
        assert sum(sizes) <= 10_000
        written += len(json.dumps({**letter(n).to_json(), "run": letters.run})) + 1
    letters.close()
    assert 20 < len(found) < 100
    assert found == list(range(100 - len(found), 100))
    assert letters.deleted == written - sum(sizes)
    said = [one.getMessage() for one in caplog.records if "oldest" in one.getMessage()]
    assert re.fullmatch(
        rf"the oldest dead letters, \d+ bytes in {path}\.000001, are deleted, because all take "
        r"more than 10,000 bytes \(--dead-letter-bytes\)",
        said[0],
    )


@pytest.mark.parametrize("there_is_another", [False, True])
def test_a_file_that_is_moved_away_gets_nothing_more(tmp_path, there_is_another):
    path, away = tmp_path / "dead.jsonl", tmp_path / "away.jsonl"
    letters = DeadLetters(path)
    letters.add([letter(1)])
    path.rename(away)
    if there_is_another:
        path.touch()
    letters.add([letter(2)])
    letters.close()
    assert (numbers(away)[0], numbers(path)[0]) == ([1], [2])


def test_a_sync_under_way_does_not_vouch_for_a_file_that_is_rotated_meanwhile(
    tmp_path, monkeypatch
):
    letters = DeadLetterFile(tmp_path / "dead.jsonl", 1600)  # 100 in a file
    letters.write([b"a" * 90])
    rotates = threading.Thread(target=letters.write, args=([b"b" * 90],))
    named = []

    def sync_names(path):
        named.append(sorted(one.name for one in tmp_path.iterdir()))
        if len(named) == 1:
            rotates.start()
            rotates.join(0.2)

    monkeypatch.setattr("wallaroo.transport.dead_letter_file.sync_way_to", sync_names)
    letters.sync()
    rotates.join()
    letters.close()
    assert named == [["dead.jsonl"], ["dead.jsonl.000001"]]


def test_a_link_stays_and_what_it_leads_to_is_rotated(tmp_path):
    target, link = tmp_path / "there" / "dead.jsonl", tmp_path / "link"
    target.parent.mkdir()
    link.symlink_to(target)
    letters = DeadLetters(link, most=3_000)
    letters.add([letter(n) for n in range(4)])
    letters.close()
    assert link.is_symlink()
    assert numbers(link) == numbers(target)
    assert numbers(link)[0] == list(range(4))


def test_a_file_that_cannot_be_opened_is_one_line(tmp_path):
    with pytest.raises(DeadLetterFileError, match=r"cannot be written to .*: Is a directory"):
        DeadLetters(tmp_path)


def test_once_they_are_closed_no_other_file_is_synced(tmp_path, monkeypatch):
    letters = DeadLetters(tmp_path / "dead")
    letters.add([letter()])
    letters.close()
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    letters.sync()
    assert synced == []


def test_a_kind_of_event_is_logged_a_few_times_then_now_and_then(caplog):
    clock = Clock()
    limited = RateLimited(logging.getLogger("test"), burst=2, interval=10.0, clock=clock)
    for n in range(10):
        limited.log(logging.WARNING, "a", "a %d", n)
    limited.log(logging.WARNING, "b", "b")
    clock.now = 10.0
    limited.log(logging.WARNING, "a", "a %d", 10)
    limited.flush()
    texts = [record.getMessage() for record in caplog.records]
    assert texts == ["a 0", "a 1", "b", "a 10 (and 8 more like it)"]


def test_a_kind_that_is_over_begins_anew(caplog):
    limited = RateLimited(logging.getLogger("test"), burst=1, clock=Clock())
    for n in range(2):
        limited.log(logging.WARNING, "a", "a %d", n)
    limited.forget("a")
    limited.log(logging.WARNING, "a", "a again")
    limited.flush()
    assert [record.getMessage() for record in caplog.records] == ["a 0", "a again"]


def test_a_fifo_that_nobody_reads_is_refused_at_once(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with pytest.raises(DeadLetterFileError) as caught:
        DeadLetters(path)
    assert str(caught.value) == (
        f"dead letters cannot be written to {path}: nobody reads it (a FIFO); start its reader "
        "first"
    )


def test_a_fifo_whose_reader_stops_reading_ends_it_and_blocks_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("wallaroo.transport.dead_letter_file._PATIENCE", 0.01)
    path = tmp_path / "fifo"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    letters = DeadLetters(path)
    letters.add([letter(1)])
    assert json.loads(os.read(reader, 10_000))["lineage"] == [1, 2]
    with pytest.raises(DeadLetterFileError, match=r"its reader has read nothing for 0\.01 s"):
        letters.add([letter(2, payload=bytes(1 << 20))])
    letters.close()
    os.close(reader)
