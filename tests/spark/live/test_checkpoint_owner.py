"""A checkpoint is for its owner alone, and for one run at a time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from spark_checkpoints import application, begun
from wallaroo_spark.live.checkpoint import Checkpoint

from wallaroo.transport import checkpoint as module
from wallaroo.transport.identity import CheckpointError


def test_a_checkpoint_is_for_its_owner_alone(tmp_path, opened):
    before = os.umask(0)
    try:
        found = begun(opened())
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in found.directory.iterdir()}
    assert modes == {
        "identity.json": 0o600,
        "input": 0o700,
        "layout.json": 0o600,
        "lock": 0o600,
        "spark": 0o700,
    }
    assert found.directory.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("part", ["", "spark", "input"])
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_checkpoint_that_others_can_write_is_refused_with_what_to_do(opened, part, mode):
    found = begun(opened())
    (found.directory / part).chmod(mode)
    with pytest.raises(CheckpointError, match="state is unpickled from it: others can") as caught:
        opened()
    subprocess.run(str(caught.value).rpartition("with: ")[2], shell=True, check=True)
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
