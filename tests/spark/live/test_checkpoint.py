"""Whose a checkpoint is: others are refused by name, before anything is read or written."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from wallaroo_spark.live import checkpoint as module
from wallaroo_spark.live.checkpoint import Checkpoint, CheckpointError

import wallaroo


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload


@wallaroo.state_computation(name="count")
def count(message, state):
    return message, False


@wallaroo.state_computation(name="total")
def total(message, state):
    return message, False


def application(name="app", *steps):
    builder = wallaroo.ApplicationBuilder(name)
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    for step in steps or (count,):
        builder.to_stateful(step, dict, "state")
    return builder.done().build()


@pytest.fixture
def opened(tmp_path):
    def open_it(app=None, partitions=None, default=2):
        found = Checkpoint(
            tmp_path / "c", app or application(), partitions=partitions, default_partitions=default
        )
        found.close()
        return found

    return open_it


def test_recover_1_the_same_application_is_taken_again(opened):
    assert opened(partitions=3).partitions == 3
    assert opened(partitions=3).partitions == 3


def test_without_a_number_of_partitions_it_is_the_one_from_before(opened):
    assert opened(partitions=3).partitions == 3
    assert opened(default=8).partitions == 3


@pytest.mark.parametrize(
    ("app", "partitions", "what"),
    [
        (application("other"), None, r"another application: 'app', not 'other'"),
        (application("app", count, total), None, r"another topology: this one has .*'total'"),
        (application("app", total), None, r"another topology: it has .*'count'.*has .*'total'"),
        (None, 5, r"another number of partitions: 2, not 5"),
    ],
)
def test_recover_1_what_it_does_not_belong_to_is_refused_by_name(opened, app, partitions, what):
    opened()
    with pytest.raises(CheckpointError, match=what):
        opened(app, partitions)


def test_a_directory_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "c").write_text("a file stands in the way")
    with pytest.raises(CheckpointError, match="cannot be written: File exists"):
        Checkpoint(tmp_path / "c", application(), partitions=1, default_partitions=1)


def test_a_checkpoint_that_lost_its_identity_is_refused(tmp_path, opened):
    opened()
    (tmp_path / "c" / "identity.json").unlink()
    (tmp_path / "c" / "spark").mkdir()
    with pytest.raises(CheckpointError, match=r"without identity\.json"):
        opened()


def test_a_checkpoint_that_lost_sparks_part_is_refused(opened):
    found = opened()
    found.check_input(0)
    with pytest.raises(CheckpointError, match="half deleted: its input begins at frame 100"):
        found.check_input(100)


def test_a_damaged_identity_is_refused(tmp_path, opened):
    opened()
    (tmp_path / "c" / "identity.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"identity\.json cannot be read"):
        opened()


def test_a_future_format_is_refused(tmp_path, opened):
    opened()
    path = tmp_path / "c" / "identity.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 9}))
    with pytest.raises(CheckpointError, match="another version: its format is 9, ours 1"):
        opened()


def test_it_is_free_only_once_a_child_that_has_the_lock_has_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LOCK_TIMEOUT", 0.2)
    first = Checkpoint(tmp_path, application(), partitions=1, default_partitions=1)
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(first.lock,)
    )
    first.close()
    with pytest.raises(CheckpointError, match="in use by another run"):
        Checkpoint(tmp_path, application(), partitions=1, default_partitions=1)
    child.communicate()
    Checkpoint(tmp_path, application(), partitions=1, default_partitions=1).close()
