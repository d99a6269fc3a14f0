"""Parts of a checkpoint that are replaced together: all of them or none, wherever a run dies."""

from pathlib import Path

import pytest
from small_windows import events, sink

import wallaroo
from wallaroo.transport.checkpoint import CheckpointDirectory
from wallaroo.transport.identity import read_identity

OLD = wallaroo.build_application("app", events("one").to_sink(sink()))
NEW = wallaroo.build_application("app", events("two").to_sink(sink()))
STEPS = 4  # renames until three parts are in their places


def parts(directory):
    """Return what the parts say: those of files, of a directory, and the identity's topology."""
    topology = read_identity(directory / "identity.json").topology
    files = [(directory / name).read_text() for name in ("layout", "own/file")]
    return (*files, topology[0])


def begun(directory, application):
    opened = CheckpointDirectory(directory, "own")
    opened.identify(application, 1)
    return opened


@pytest.mark.parametrize("died", range(STEPS + 1))
def test_recover_1_a_run_that_dies_while_it_replaces_parts_leaves_all_or_none(
    tmp_path, monkeypatch, died
):
    opened = begun(tmp_path, OLD)
    opened.begin_run()
    opened.own_part.mkdir()
    for name in ("layout", "own/file"):
        (tmp_path / name).write_text("old")
    opened.close()

    rename, renamed = Path.rename, []

    def dies(path, target):
        if path.parent.name != "replacing.new":  # those are files that are written durably
            if len(renamed) == died:
                raise KeyboardInterrupt
            renamed.append(path)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", dies)
    opened = begun(tmp_path, NEW)
    try:
        with opened.replaced() as new:
            (new / "layout").write_text("new")
            (new / "own").mkdir()
            (new / "own/file").write_text("new")
    except KeyboardInterrupt:
        assert died < STEPS
    opened.close()
    monkeypatch.undo()

    begun(tmp_path, NEW).close()
    assert parts(tmp_path) == (("new",) * 2 if died else ("old",) * 2) + (
        "source 'two'" if died else "source 'one'",
    )
    assert not list(tmp_path.glob("replacing*"))
