"""Temporary directories: gone with their owner, or at the next start after its death."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from wallaroo_spark.jvm.temporary import TemporaryDirectory, remove_abandoned

OWNER = """
import sys, time
from wallaroo_spark.jvm.temporary import TemporaryDirectory
made = TemporaryDirectory("run")
(made.path / "state").mkdir()
print(made.path, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


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


def test_what_has_no_lock_is_not_touched(folder):
    (folder / "wallaroo-run-abc").mkdir()
    (folder / "wallaroo-spark-abc").mkdir()
    (folder / "wallaroo-spark-abc" / "lock").symlink_to(folder / "elsewhere")
    remove_abandoned()
    assert len(list(folder.iterdir())) == 2
