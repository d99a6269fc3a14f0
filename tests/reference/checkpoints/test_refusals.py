"""A checkpoint that cannot be used is refused before any input, in a line that says what to do."""

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import zlib
from dataclasses import replace

import pytest
from counted import line, text
from counting import application, checkpoint, opened
from wallaroo_reference.checkpoints.collecting import Collector
from wallaroo_reference.checkpoints.stored import ReferenceCheckpoint
from wallaroo_reference.compiled.machine import Compiled

import wallaroo
from wallaroo.cli.main import main
from wallaroo.transport.identity import CheckpointError, read_identity
from wallaroo.transport.input_log import InputLogError
from wallaroo.transport.stored import rewrite


def filled(directory, count=300, app=None, rounds=2):
    """Make a checkpoint of some entities, and a few records behind it."""
    app = app or application()
    recovery = opened(directory, app)
    machine = Compiled(app, keeps=True)
    collector = Collector(machine.cells())
    blob = 0
    for _ in range(rounds):
        payloads = [b"key %d" % one for one in range(count)]
        recovery.log.append("p", payloads)
        machine.feed("p", payloads)
        blob = checkpoint(recovery, machine, collector, blob)
    recovery.log.append("p", [b"behind"])
    recovery.log.sync()
    recovery.close()
    return counts(machine)


def counts(machine):
    return {entity.key: entity.state for entity in machine.entities()}


def restored(directory, app=None):
    app = app or application()
    recovery = opened(directory, app)
    try:
        machine = Compiled(app, keeps=True)
        recovery.restore(machine)
        list(recovery.later())
        return counts(machine)
    finally:
        recovery.close()


def in_one_line(error):
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_was_stored_is_there(tmp_path):
    assert filled(tmp_path / "c") == restored(tmp_path / "c")


def damaged_copies(tmp_path, name, change, places):
    """Yield copies of a checkpoint in which one file is changed at one place."""
    file = tmp_path / "c" / name
    whole = file.read_bytes()
    for place in places(len(whole)):
        shutil.rmtree(tmp_path / "d", ignore_errors=True)
        shutil.copytree(tmp_path / "c", tmp_path / "d")
        (tmp_path / "d" / name).write_bytes(change(whole, place))
        yield tmp_path / "d"


def flipped(whole, place):
    return whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :]


def cut(whole, place):
    return whole[:place]


def some(length):
    draw = random.Random(1)
    return [*range(0, 100, 13), *[draw.randrange(length) for _ in range(32)]]


@pytest.mark.parametrize(
    ("name", "why"), [("identity.json", "identity.json "), ("reference/state.db", " is damaged: ")]
)
@pytest.mark.parametrize("change", [flipped, cut], ids=["flipped", "cut off"])
def test_damage_is_refused_or_harmless(tmp_path, name, why, change):
    wanted = filled(tmp_path / "c", 40)
    refused = 0
    for copy in damaged_copies(tmp_path, name, change, some):
        try:
            found = restored(copy)
        except CheckpointError as error:
            said = str(error)
            refused += 1
        else:  # SQLite does not use every byte of its file
            assert found == wanted
            continue
        assert str(copy) in said
        assert why in said
        assert "\n" not in said
    assert refused > 5


def test_a_file_that_cannot_be_opened_is_not_called_damaged(tmp_path):
    filled(tmp_path / "c")
    (tmp_path / "c" / "reference" / "state.db").unlink()
    with pytest.raises(CheckpointError, match=r"state\.db cannot be read: unable to open") as error:
        ReferenceCheckpoint(tmp_path / "c").state()
    in_one_line(error)


def test_a_damaged_record_of_the_log_is_refused(tmp_path):
    filled(tmp_path / "c", rounds=1)
    (log,) = (tmp_path / "c" / "input").glob("*.log")
    log.write_bytes(flipped(log.read_bytes(), 2000))
    with pytest.raises(
        InputLogError, match=r"\.log is damaged: .* at byte \d+, and whole"
    ) as error:
        restored(tmp_path / "c")
    in_one_line(error)


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("reference/state.db", "half deleted: its input has records, and state.db is missing"),
        ("reference", "half deleted: its input has records, and state.db is missing"),
        ("input", "half deleted: it has no input"),
        ("identity.json", "holds a checkpoint without identity.json"),
    ],
)
def test_a_missing_part_is_refused(tmp_path, missing, said):
    filled(tmp_path / "c")
    path = tmp_path / "c" / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    for _ in range(2):  # and the refusal leaves it as it was
        with pytest.raises(CheckpointError, match=said) as error:
            restored(tmp_path / "c")
        in_one_line(error)


def test_an_input_that_is_gone_before_a_state_was_stored_is_refused(tmp_path):
    recovery = opened(tmp_path / "c")
    recovery.log.append("p", [b"acknowledged"])
    recovery.log.sync()
    recovery.close()
    shutil.rmtree(tmp_path / "c" / "input")
    for _ in range(2):
        with pytest.raises(CheckpointError, match="half deleted: it has no input"):
            opened(tmp_path / "c")


def shortened(log):
    os.truncate(log, log.stat().st_size - 100)  # so that records are gone whose effect is stored


def test_a_refused_start_changes_nothing_on_disk(tmp_path):
    filled(tmp_path / "c")
    [log] = (tmp_path / "c" / "input").glob("*.log")
    shortened(log)
    before = log.read_bytes()
    with pytest.raises(CheckpointError, match="half deleted: its input ends before record"):
        opened(tmp_path / "c")
    assert log.read_bytes() == before


@pytest.mark.parametrize("lose", [shortened, os.remove])
def test_what_is_half_deleted_is_not_called_whole(tmp_path, capsys, lose):
    filled(tmp_path / "c")
    assert main(["checkpoint", str(tmp_path / "c"), "--verify"]) == 0
    [log] = (tmp_path / "c" / "input").glob("*.log")
    lose(log)
    assert main(["checkpoint", str(tmp_path / "c"), "--verify"]) == 1
    assert "is half deleted: its state knows" in capsys.readouterr().err


def test_a_checkpoint_in_use_is_said_to_be(tmp_path, capsys):
    recovery = opened(tmp_path / "c")
    main(["checkpoint", str(tmp_path / "c")])
    assert "in use by a run" in capsys.readouterr().out
    recovery.close()
    main(["checkpoint", str(tmp_path / "c")])
    assert "in use by a run" not in capsys.readouterr().out


def test_a_child_that_user_code_has_forked_does_not_keep_it_in_use(tmp_path):
    recovery = opened(tmp_path / "c")
    child = os.fork()
    while not child:
        signal.pause()
    recovery.close()
    try:
        opened(tmp_path / "c").close()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_an_older_copy_of_the_state_is_refused_once_the_log_is_cut(tmp_path):
    filled(tmp_path / "c", rounds=1)
    recovery = opened(tmp_path / "c")
    shutil.copytree(tmp_path / "c" / "reference", tmp_path / "old")
    machine = Compiled(application(), keeps=True)
    recovery.restore(machine)
    for start in range(0, 200_000, 1000):
        payloads = [b"key %d" % number for number in range(start, start + 1000)]
        recovery.log.append("p", payloads)
    recovery.log.sync()
    recovery.log.drop_before(recovery.log.next_sequence)
    recovery.close()
    shutil.rmtree(tmp_path / "c" / "reference")
    shutil.copytree(tmp_path / "old", tmp_path / "c" / "reference")
    with pytest.raises(CheckpointError, match="half deleted: its input begins at record") as error:
        restored(tmp_path / "c")
    in_one_line(error)


@pytest.mark.parametrize(
    ("app", "partitions", "said"),
    [
        (application("other"), None, "another application: 'app', not 'other'"),
        (application(), 5, "another number of partitions: 1, not 5"),
    ],
)
def test_another_application_is_refused(tmp_path, app, partitions, said):
    filled(tmp_path / "c")
    with pytest.raises(CheckpointError, match=said) as error:
        opened(tmp_path / "c", app, partitions)
    in_one_line(error)


def test_scale_2_outputs_to_kafka_of_records_that_wait_go_on_with_no_other_engine(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("wallaroo.transport.stored.shut_out_old", lambda *_: None)  # no brokers
    made = wallaroo.ApplicationBuilder("app")
    made.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
    app = made.to_sink(wallaroo.KafkaSinkConfig("topic", "127.0.0.1:1", line)).build()
    recovery = opened(tmp_path / "c", app)
    recovery.log.append("p", [b"a", b"b"])
    recovery.close()
    old = read_identity(tmp_path / "c" / "identity.json")
    other, new = replace(old, engine="spark"), tmp_path / "new"
    with pytest.raises(CheckpointError, match="2 records wait in "):
        rewrite(tmp_path / "c", old, new, other, application=app)
    assert not new.exists()


@pytest.mark.parametrize("name", ["lock", "input/reserve"])
def test_a_fifo_where_nothing_is_read_is_no_reason_to_wait(tmp_path, name):
    filled(tmp_path / "c")
    (tmp_path / "c" / name).unlink()
    os.mkfifo(tmp_path / "c" / name)
    assert main(["checkpoint", str(tmp_path / "c")]) == 0
    opened(tmp_path / "c").close()


def test_a_checkpoint_on_a_disk_that_nobody_can_write_can_be_looked_at(tmp_path, monkeypatch):
    filled(tmp_path / "c")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    looked_at = ReferenceCheckpoint(tmp_path / "c")
    before = sorted(tmp_path.rglob("*"))
    with looked_at._open() as store:
        assert store.head() is not None
        assert sorted(tmp_path.rglob("*")) == before  # SQLite needs no file of its own
    looked_at.verify()


def test_a_future_format_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("wallaroo_reference.checkpoints.head.FORMAT", 9)
    filled(tmp_path / "c")
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match=r"another version: its format is 9, ours 2\."):
        restored(tmp_path / "c")


def test_the_file_stays_small_and_nothing_is_lost_in_rounds(tmp_path):
    """Cells that never change are written again before what held them is deleted."""
    app = application()
    recovery = opened(tmp_path / "c", app)
    machine = Compiled(app, keeps=True)
    collector = Collector(machine.cells())
    blob = 0
    for turn in range(30):
        payloads = [b"key %d" % one for one in ([turn % 7] if turn else range(1000))]
        recovery.log.append("p", payloads)
        machine.feed("p", payloads)
        blob = checkpoint(recovery, machine, collector, blob)
        if turn % 11 == 0:
            recovery.log.sync()
            recovery.close()
            recovery, before = opened(tmp_path / "c", app), counts(machine)
            machine = Compiled(app, keeps=True)
            recovery.restore(machine)
            assert counts(machine) == before
            collector = Collector(machine.cells(), recovery.head.first_blob, blob)
    assert collector.first_blob > 0
    kept = sum([len(cells) for _, cells in recovery.store.cells(recovery.store.head())])
    assert kept < 4 * 1000 + 30 * 300
    recovery.close()


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("name", "nonsense"),
    [
        ("at", '"x"'),
        ("sequence", '"5"'),
        ("now", "null"),
        ("first", "[]"),
        ("sources", '{"p": ["x", null, false]}'),
        ("sources", '{"p": [null, null, 3]}'),
        ("watermarks", '["x"]'),
        ("watermarks", DEEP),
        ("cells", '[["other", "counts 0", 1]]'),
        ("cells", '[["partition", "counts 0", "1"]]'),
        ("sinks", '[["p", 0, "x"]]'),
        ("generators", '{"p": ["", "x"]}'),
        ("blobs", '["0", "1"]'),
    ],
    ids=lambda value: value[:20],
)
def test_nonsense_under_a_right_checksum_is_refused_in_a_line(tmp_path, name, nonsense):
    filled(tmp_path)
    database = sqlite3.connect(tmp_path / "reference" / "state.db")
    with contextlib.closing(database), database:
        ((text,),) = database.execute("SELECT data FROM head").fetchall()
        form = json.dumps({**json.loads(text), name: "@"}).replace('"@"', nonsense)
        database.execute(
            "UPDATE head SET data = ?, checksum = ?", (form, zlib.crc32(form.encode()))
        )
    with pytest.raises(CheckpointError, match=r"state\.db is damaged: in its head, it cannot be"):
        opened(tmp_path)
    with pytest.raises(CheckpointError, match=r"state\.db is damaged"):
        ReferenceCheckpoint(tmp_path).verify()
