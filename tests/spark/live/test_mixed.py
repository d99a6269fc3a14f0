"""recover-3 on Spark: whose a part is, and which run wrote it. No test here needs a JVM."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from unittest import mock

import pytest
from mixed import mixtures, tree
from spark_checkpoints import application, begun
from wallaroo_spark.live.checkpoint import RESUME, Checkpoint
from wallaroo_spark.live.resume import Resume, write_resume

from wallaroo.cli.main import main
from wallaroo.errors import WallarooError
from wallaroo.transport.input_log import InputLog


def run(directory, seed, *words):
    """Open a checkpoint as a run does, and log some frames."""
    draw = random.Random(seed).randbytes
    made = Checkpoint(directory, application(), partitions=2, default_partitions=2, draw=draw)
    try:
        begun(made)
        log = InputLog.open(made.input_log, 1 << 20, admit=lambda _: made.born)
        for word in words:
            log.append("p", [word])
        log.close()
        write_resume(directory / RESUME, Resume(1), made.born)
    finally:
        made.close()


@pytest.mark.parametrize("what", ["another checkpoint", "a copy that is older or went on apart"])
def test_a_part_of_another_checkpoint_is_refused_by_name_and_nothing_is_changed(
    tmp_path, capsys, what
):
    one, other = tmp_path / "one", tmp_path / "other"
    run(one, 1, b"a")
    if what == "another checkpoint":
        run(other, 2, b"a")
    else:
        shutil.copytree(one, other)
    run(one, 3, b"b")
    run(other, 4, b"c")
    names = []
    for name, mixed in mixtures(one, other, tmp_path / "mixed"):
        names.append(name if name.startswith("spark") else name.partition("/")[0])
        before = tree(mixed)
        with pytest.raises(WallarooError) as error:
            run(mixed, 5)
        said = str(error.value)
        assert tree(mixed) == before
        assert "\n" not in said
        assert name in said or name == "identity.json" or "is mixed" in said
        assert what in said or "went on apart" in said
        assert main(["checkpoint", str(mixed), "--verify"]) == 1
        assert said.partition(": ")[0] in capsys.readouterr().err
    assert {*names} == {"identity.json", "input", "layout.json", "resume", "spark/stamp"}


def test_a_kill_while_a_run_stamps_the_parts_does_not_refuse_the_next_start(tmp_path):
    class Killed(BaseException):
        pass

    run(tmp_path / "c", 1, b"a")
    seed = 2
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
                left, seed = calls, seed + 1
                with mock.patch("os.rename", rename), contextlib.suppress(Killed):
                    run(tmp_path / "c", seed, b"a")
            if left > 0:
                break
            if calls % 2:
                run(tmp_path / "c", seed + 1000, b"a")
        assert calls > 4
    run(tmp_path / "c", 0)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in (
            *("identity.json", "layout.json", "resume"),
            *("spark/stamp", "spark/offsets/0", "spark"),
        )
        for kind in ("FIFO", "folder", "device")
        if (name, kind) != ("spark", "folder")  # it is one
    ],
)
def test_what_is_no_regular_file_is_refused_in_a_line(tmp_path, capsys, name, kind):
    run(tmp_path / "c", 1, b"a")
    path = tmp_path / "c" / name
    path.parent.mkdir(exist_ok=True)
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    make = {"FIFO": os.mkfifo, "folder": os.mkdir, "device": lambda it: it.symlink_to("/dev/zero")}
    make[kind](path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(WallarooError, match=r"not a (regular file|folder)|cannot be read") as error:
        run(tmp_path / "c", 2)
    assert "\n" not in str(error.value)
    assert sorted(tmp_path.rglob("*")) == before
    assert main(["checkpoint", str(tmp_path / "c"), "--verify"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
