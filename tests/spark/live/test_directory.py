"""The directory of a checkpoint, of both engines: for its owner, for one run, with its own parts.

No test here needs a JVM.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import counting
import pytest
import spark_checkpoints
from counting import checkpoint
from mixed import mixtures, tree
from wallaroo_reference.checkpoints.collecting import Collector
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_spark.live.checkpoint import RESUME, Checkpoint
from wallaroo_spark.live.resume import Resume, write_resume

from wallaroo.cli.main import main
from wallaroo.errors import WallarooError
from wallaroo.transport import checkpoint as module
from wallaroo.transport.identity import CheckpointError
from wallaroo.transport.input_log import InputLog


class OnReference:
    """What a run of the reference engine does with a checkpoint."""

    parts = frozenset({"identity.json", "input", "reference"})
    files = ("identity.json", "reference/state.db", "reference/state.db-wal")

    def opened(self, directory):
        return counting.opened(directory)

    def run(self, directory, *words):
        """Process some words and store the state; one record lies behind it."""
        recovery = self.opened(directory)
        machine = Compiled(counting.application(), keeps=True)
        recovery.restore(machine)
        for _, payloads, *_ in recovery.later():
            machine.feed("p", payloads)
        blob = 0 if recovery.head is None else recovery.head.next_blob
        first = 0 if recovery.head is None else recovery.head.first_blob
        recovery.log.append("p", list(words))
        machine.feed("p", list(words))
        checkpoint(recovery, machine, Collector(machine.cells(), first, blob), blob)
        recovery.log.append("p", [b"behind"])
        recovery.log.sync()
        recovery.close()


class OnSpark:
    """What a run on Spark does with a checkpoint before Spark begins."""

    parts = frozenset({"identity.json", "input", "layout.json", "resume", "spark"})
    files = ("identity.json", "layout.json", "resume", "spark/stamp", "spark/offsets/0", "spark")

    def opened(self, directory):
        app = spark_checkpoints.application()
        return Checkpoint(directory, app, partitions=2, default_partitions=2)

    def run(self, directory, *words):
        """Log some words."""
        made = self.opened(directory)
        try:
            spark_checkpoints.begun(made)
            log = InputLog.open(made.input_log, 1 << 20, admit=lambda _: made.born)
            for word in words:
                log.append("p", [word])
            log.close()
            write_resume(directory / RESUME, Resume(1), made.born)
        finally:
            made.close()


ON: dict[str, Any] = {"reference": OnReference(), "spark": OnSpark()}


@pytest.fixture(params=ON)
def on(request):
    return ON[request.param]


def refusal(on, directory):
    """Return why a run is refused, which is one line."""
    with pytest.raises(WallarooError) as error:
        on.run(directory, b"c")
    assert "\n" not in str(error.value)
    return str(error.value)


def open_now():
    """Return the descriptors of this process."""
    return [fd for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink() and fd.exists()]


def test_it_is_for_its_owner_alone(on, tmp_path):
    before = os.umask(0)
    try:
        on.run(tmp_path / "c", b"a")
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o077 for path in [tmp_path / "c", *(tmp_path / "c").rglob("*")]}
    assert modes == {0}


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_what_others_can_write_is_refused_with_what_to_do(on, tmp_path, mode):
    on.run(tmp_path / "c", b"a")
    for part in (tmp_path / "c", *[one for one in (tmp_path / "c").iterdir() if one.is_dir()]):
        part.chmod(mode)
        said = refusal(on, tmp_path / "c")
        assert "state is unpickled from it: others can write into" in said
        subprocess.run(said.rpartition("with: ")[2], shell=True, check=True)
        on.run(tmp_path / "c", b"b")


def test_one_in_use_is_waited_for_until_a_child_that_has_the_lock_has_ended_too(
    on, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(module, "_LOCK_TIMEOUT", 0.05)
    monkeypatch.setattr(module, "_SAY_AFTER", 0.0)
    caplog.set_level("INFO", "wallaroo")
    first = on.opened(tmp_path / "c")
    [lock] = [fd for fd in open_now() if fd.readlink() == tmp_path / "c" / "lock"]
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(int(lock.name),)
    )
    for _ in range(2):
        with pytest.raises(CheckpointError, match=r"in use by another run.*$"):
            on.opened(tmp_path / "c")
        first.close()
    assert "waiting for its end" in caplog.messages[0]
    child.communicate()
    on.opened(tmp_path / "c").close()


@pytest.mark.parametrize(
    ("engine", "name", "kind"),
    [
        (engine, name, kind)
        for engine, on in ON.items()
        for name in on.files
        for kind in ("FIFO", "folder", "device")
        if (name, kind) != ("spark", "folder")  # it is one
    ],
)
def test_what_is_no_regular_file_is_refused_in_a_line(tmp_path, capsys, engine, name, kind):
    ON[engine].run(tmp_path / "c", b"a")
    path = tmp_path / "c" / name
    path.parent.mkdir(exist_ok=True)
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    make = {"FIFO": os.mkfifo, "folder": os.mkdir, "device": lambda it: it.symlink_to("/dev/zero")}
    make[kind](path)
    before = sorted(tmp_path.rglob("*"))
    said = refusal(ON[engine], tmp_path / "c")
    assert "not a regular file" in said or "not a folder" in said or "cannot be read" in said
    assert sorted(tmp_path.rglob("*")) == before
    assert main(["checkpoint", str(tmp_path / "c"), "--verify"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("what", ["another checkpoint", "a copy that is older or went on apart"])
def test_recover_3_a_part_of_another_checkpoint_is_refused_by_name_and_nothing_is_changed(
    on, tmp_path, capsys, what
):
    one, other = tmp_path / "one", tmp_path / "other"
    on.run(one, b"a", b"b")
    if what == "another checkpoint":
        on.run(other, b"x", b"y")
    else:
        shutil.copytree(one, other)
    on.run(one, b"a")
    on.run(other, b"x")
    names = []
    for name, mixed in mixtures(one, other, tmp_path / "mixed"):
        names.append(name.partition("/")[0])
        before = tree(mixed)
        said = refusal(on, mixed)
        assert tree(mixed) == before
        # If the identity is the stranger, the part that was looked at first is named.
        assert name in said or name == "identity.json" or "is mixed" in said
        assert what in said or "went on apart" in said
        assert "checkpoint from one copy" in said
        assert main(["checkpoint", str(mixed), "--verify"]) == 1
        assert said.partition(": ")[0] in capsys.readouterr().err
    assert {*names} == on.parts


def test_recover_3_a_kill_while_a_run_stamps_the_parts_does_not_refuse_the_next_start(tmp_path):
    """On Spark; on the reference engine the simulation kills runs just so."""

    class Killed(BaseException):
        pass

    on = ON["spark"]
    on.run(tmp_path / "c", b"a")
    for dies_behind in (False, True):
        for calls in range(1, 100):
            left = calls

            def rename(old, new, dies_behind=dies_behind, real=os.rename):
                nonlocal left
                left -= 1
                if left or dies_behind:
                    real(old, new)
                if not left:
                    raise Killed

            for _ in range(2):  # twice at one place, so that three runs' stamps are there
                left = calls
                with mock.patch("os.rename", rename), contextlib.suppress(Killed):
                    on.run(tmp_path / "c", b"a")
            if left > 0:
                break
            if calls % 2:
                on.run(tmp_path / "c", b"a")
        assert calls > 4
    on.run(tmp_path / "c")
