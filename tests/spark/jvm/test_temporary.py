"""Temporary directories: gone with their owner, or at the next start after its death."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from small_steps import decode
from wallaroo_spark.jvm.temporary import TemporaryDirectory, remove_abandoned
from wallaroo_spark.live.checkpoint import Checkpoint

import wallaroo
from wallaroo.engine import ServeOptions
from wallaroo.transport.identity import CheckpointError

MARK = "wallaroo-removes-this-directory"

OWNER = """
import sys, time
from wallaroo_spark.jvm.temporary import TemporaryDirectory
made = TemporaryDirectory("run")
(made.path / "state").mkdir()
print(made.path, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def folder(monkeypatch):
    with tempfile.TemporaryDirectory() as place:  # pytest's own may have long paths
        monkeypatch.setattr(tempfile, "tempdir", place)
        monkeypatch.setenv("TMPDIR", place)
        yield Path(place)


def test_it_is_gone_once_closed(folder):
    made = TemporaryDirectory("spark")
    (made.path / "file").write_text("")
    made.close()
    made.close()
    assert list(folder.iterdir()) == []


def test_what_is_in_use_stays_and_what_a_kill_left_goes(folder):
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE) as owner:
        path = Path(owner.stdout.readline().decode().strip())
        own = TemporaryDirectory("spark")
        remove_abandoned()
        assert sorted(folder.iterdir()) == sorted([path, own.path])
        owner.send_signal(signal.SIGKILL)
    remove_abandoned()
    assert list(folder.iterdir()) == [own.path]
    own.close()


def test_a_child_that_has_the_lock_is_an_owner_too(folder):
    made = TemporaryDirectory("run")
    with subprocess.Popen(["sleep", "600"], pass_fds=(made.lock,)) as child:
        os.close(made.lock)
        remove_abandoned()
        assert list(folder.iterdir()) == [made.path]
        child.kill()
    remove_abandoned()
    assert list(folder.iterdir()) == []


def test_where_paths_are_too_long_for_sockets_it_is_elsewhere(folder, monkeypatch):
    long = folder / ("container" * 10)  # as YARN's are
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    made = TemporaryDirectory("run")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(made.path / "feed12345"))
    made.close()
    assert not made.path.exists()
    assert list(long.iterdir()) == []


def test_what_has_no_mark_is_not_touched(folder):
    (folder / "wallaroo-run-abc").mkdir()
    (folder / "wallaroo-spark-abc").mkdir()
    (folder / "wallaroo-spark-abc" / MARK).symlink_to(folder / "elsewhere")
    remove_abandoned()
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("name", ["wallaroo-run-mine", "wallaroo-spark-mine"])
def test_recover_1_a_checkpoint_is_not_removed_whatever_its_name(folder, name):
    app = wallaroo.ApplicationBuilder("app")
    app.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    path = folder / name
    made = Checkpoint(path, app.done().build(), partitions=1, default_partitions=1)
    made.begin_run()
    made.close()
    before = sorted(path.iterdir())
    remove_abandoned()
    assert sorted(path.iterdir()) == before
    (path / MARK).touch()  # nor where a run that was killed had its files at first
    remove_abandoned()
    assert sorted(path.iterdir()) == sorted([*before, path / MARK])


def test_a_checkpoint_in_a_temporary_directory_of_ours_is_refused(folder, spark_engine):
    made = TemporaryDirectory("run")
    inside = made.path / "checkpoint"
    app = wallaroo.ApplicationBuilder("app")
    app.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    with pytest.raises(CheckpointError, match=r"which is removed when nobody uses it\. Move it"):
        spark_engine.serve(app.done().build(), ServeOptions(options={"checkpoint": inside}))
    assert not inside.exists()
    made.close()
