"""recover-3: a part of another checkpoint, or of a copy that went on apart, is refused by name."""

from __future__ import annotations

import itertools
import random
import shutil

import counting
import pytest
from counting import application, checkpoint
from mixed import mixtures, tree
from wallaroo_reference.checkpoints.collecting import Collector
from wallaroo_reference.compiled.machine import Compiled

from wallaroo.cli.main import main
from wallaroo.errors import WallarooError

_seeds = itertools.count()


def opened(directory):
    return counting.opened(directory, draw=random.Random(next(_seeds)).randbytes)


def run(directory, *words):
    """Run a bit on a checkpoint: its state is stored, and one record lies behind it."""
    recovery = opened(directory)
    machine = Compiled(application(), keeps=True)
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


@pytest.fixture(params=["another checkpoint", "a copy that is older or went on apart"])
def two(tmp_path, request):
    """Two checkpoints with as many runs, and what is said of the other's parts."""
    one, other = tmp_path / "one", tmp_path / "other"
    run(one, b"a", b"b")
    if request.param == "another checkpoint":
        run(other, b"x", b"y")
    else:
        shutil.copytree(one, other)
    run(one, b"a")
    run(other, b"x")
    return one, other, request.param


def test_a_part_of_another_checkpoint_is_refused_by_name_and_nothing_is_changed(
    two, tmp_path, capsys
):
    one, other, what = two
    names = []
    for name, mixed in mixtures(one, other, tmp_path / "mixed"):
        names.append(name.partition("/")[0])
        before = tree(mixed)
        with pytest.raises(WallarooError) as error:
            opened(mixed)
        said = str(error.value)
        assert "\n" not in said
        assert tree(mixed) == before
        # If the identity is the stranger, the part that was looked at first is named.
        assert name in said or name == "identity.json" or "is mixed" in said
        assert what in said or "went on apart" in said
        assert "checkpoint from one copy" in said
        assert main(["checkpoint", str(mixed), "--verify"]) == 1
        assert said.partition(": ")[0] in capsys.readouterr().err
    assert {*names} == {"identity.json", "input", "reference"}
