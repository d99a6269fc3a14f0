"""Whose a checkpoint is: others are refused by name, before anything is read or written."""

import json
import shutil
from dataclasses import replace

import pytest
from spark_checkpoints import application, begun, count, spark_wrote, total
from wallaroo_spark.live import storage
from wallaroo_spark.live.layout import layout_of, read_layout
from wallaroo_spark.live.options import SparkOptions
from wallaroo_spark.live.spark_part import seen_from

from wallaroo.cli.main import main
from wallaroo.transport.identity import CheckpointError, read_identity, write_identity
from wallaroo.transport.input_log import InputLog
from wallaroo.transport.log_directory import LogEnds


def test_without_a_number_of_partitions_it_is_the_one_from_before(opened):
    assert opened(partitions=3).partitions == 3
    assert opened(default=8).partitions == 3


def test_a_checkpoint_that_lost_its_identity_is_refused(tmp_path, opened):
    opened()
    spark_wrote(tmp_path / "c", {}, [])
    (tmp_path / "c" / "identity.json").unlink()
    with pytest.raises(CheckpointError, match=r"without identity\.json"):
        opened()


@pytest.mark.parametrize(
    ("offsets", "commits", "first", "following", "problem"),
    [
        ({}, [], 0, 0, None),
        ({}, [], 0, 9, None),
        ({}, [], 100, 200, r"begins at record 100, .* those before 0 only. Restore"),
        ({0: 5}, [], 0, 5, None),
        ({0: 5}, [], 0, 4, r"ends before record 4, .* those before 5 have been processed. Restore"),
        ({0: 5}, [0], 5, 5, None),
        ({0: 5}, [0], 0, 0, r"ends before record 0"),
        ({0: 5}, [0], 6, 9, r"begins at record 6, and its state knows those before 5 only"),
        ({8: 50, 9: 60}, [7, 8], 50, 60, None),
        ({8: 50, 9: 60}, [7, 8], 51, 60, r"begins at record 51"),
        ({8: 50, 9: 60}, [7, 8], 50, 59, r"ends before record 59"),
        ({9: 60, 10: 70}, [9, 10], 65, 70, None),
    ],
)
def test_recover_1_a_checkpoint_half_of_which_is_gone_is_refused(
    tmp_path, opened, offsets, commits, first, following, problem
):
    opened()
    spark_wrote(tmp_path / "c", offsets, commits)
    found = opened()
    if problem is None:
        found.check_input(LogEnds(first, following))
    else:
        with pytest.raises(CheckpointError, match=f"half deleted: its input {problem}"):
            found.check_input(LogEnds(first, following))


@pytest.mark.parametrize("how", [["--entities"], ["--migrate", f"{__file__}:spark_wrote"]])
def test_states_that_are_gone_are_refused_and_not_taken_for_none(tmp_path, opened, capsys, how):
    begun(opened())
    spark_wrote(tmp_path / "c", {0: 5}, [0])
    assert main(["checkpoint", str(tmp_path / "c"), *how]) == 1
    assert "spark/state is half deleted: it has the states of 0 operators, not of 1" in (
        capsys.readouterr().err
    )
    assert not (tmp_path / "c.migrated").exists()


def test_recover_1_a_missing_part_is_refused_once_spark_has_committed(tmp_path, opened):
    opened().check_new(tmp_path / "c" / "resume")
    spark_wrote(tmp_path / "c", {0: 5}, [])
    opened().check_new(tmp_path / "c" / "resume")
    spark_wrote(tmp_path / "c", {0: 5}, [0])
    with pytest.raises(CheckpointError, match=r"half deleted: resume is missing. Restore"):
        opened().check_new(tmp_path / "c" / "resume")


def test_recover_1_an_input_that_is_gone_is_refused_and_not_begun_anew(tmp_path, opened):
    begun(opened())  # and killed before its first micro-batch, with acknowledged frames
    for wrote in ({}, {0: 5}):
        spark_wrote(tmp_path / "c", wrote, wrote)
        shutil.rmtree(tmp_path / "c" / "input")
        with pytest.raises(CheckpointError, match=r"half deleted: it has no input\. Restore"):
            opened()
        assert not (tmp_path / "c" / "input").exists()


@pytest.mark.parametrize(
    ("offsets", "commits"), [({}, [0]), ({5: 50}, []), ({5: 50}, [3]), ({5: 50}, [4, 5, 6])]
)
def test_recover_1_sparks_part_with_batches_missing_is_refused(tmp_path, opened, offsets, commits):
    opened()
    spark_wrote(tmp_path / "c", offsets, commits)
    with pytest.raises(CheckpointError, match="spark is half deleted: Spark has planned"):
        opened()


@pytest.mark.parametrize(
    "text", ["", "v1\n", "v1\n{}\n{}", 'v1\n{"conf": {}}\n{"next": 1}', "\0" * 9]
)
def test_a_damaged_file_of_sparks_is_refused_by_name(tmp_path, opened, text):
    opened()
    spark_wrote(tmp_path / "c", {0: 5, 1: 6}, [0])
    (tmp_path / "c" / "spark" / "offsets" / "1").write_text(text)
    with pytest.raises(CheckpointError, match=r"offsets/1 is damaged\. Restore .* or delete it"):
        opened()


def test_what_stands_in_sparks_offsets_alone_is_not_to_be_deleted(tmp_path, opened):
    opened()
    spark_wrote(tmp_path / "c", {0: 5, 1: 6}, [0], records=[])
    (tmp_path / "c" / "spark" / "offsets" / "1").write_text("")
    with pytest.raises(CheckpointError, match=r"offsets/1 is damaged\. Restore [\w ]+$"):
        opened()


def test_kafka_1_a_first_micro_batch_in_sparks_offsets_alone_is_not_dropped(
    tmp_path, opened, capsys
):
    opened()
    spark_wrote(tmp_path / "c", {0: 5}, [], records=[])
    assert main(["checkpoint", str(tmp_path / "c"), "--partitions", "4"]) == 1
    assert "was killed between two steps of a micro-batch" in capsys.readouterr().err


@pytest.mark.parametrize("planned", [{}, {0: 5}])
def test_recover_1_a_run_that_died_before_its_first_batch_leaves_nothing(tmp_path, opened, planned):
    begun(opened(partitions=2)).close()
    spark_wrote(tmp_path / "c", planned, [])
    left = tmp_path / "c" / "spark" / "offsets" / ".0.3f0e.tmp"
    left.touch()
    opened().begin()
    assert left.exists() == bool(planned)


def test_the_command_tells_whose_it_is_and_how_far_it_is(tmp_path, opened, capsys):
    stamp = begun(opened(partitions=2)).born
    spark_wrote(tmp_path / "c", {0: 5, 1: 9}, [0], partitions=2)
    shutil.rmtree(tmp_path / "c" / "input")
    InputLog.open(tmp_path / "c" / "input", 1 << 20, admit=lambda _: stamp).close()
    assert main(["checkpoint", str(tmp_path / "c")]) == 0
    out = capsys.readouterr().out
    assert "spark" in out
    assert "record 5; the input log holds 0 behind it" in out
    assert main(["checkpoint", str(tmp_path / "c"), "--verify"]) == 1
    said = capsys.readouterr().err
    assert "spark/state is half deleted: it has the states of 0 operators, not of 1" in said
    (tmp_path / "c" / "resume").write_text("{")
    assert main(["checkpoint", str(tmp_path / "c"), "--verify"]) == 1
    assert "resume is damaged" in capsys.readouterr().err


def test_nothing_is_read_by_spark_before_it_has_committed(tmp_path, opened, capsys):
    begun(opened(partitions=2))
    assert main(["checkpoint", str(tmp_path / "c"), "--verify"]) == 0
    assert "is whole" in capsys.readouterr().out
    assert main(["checkpoint", str(tmp_path / "c"), "--entities"]) == 1
    out, err = capsys.readouterr()
    assert not out
    assert err.endswith("/c has no entities and no open windows\n")


@pytest.mark.parametrize("text", ["", "{", "{}", '{"layout": "{}", "checksum": 0}', "\0" * 9])
def test_a_layout_that_is_damaged_is_said_so_and_a_run_writes_it_again(
    tmp_path, opened, capsys, text
):
    begun(opened())
    spark_wrote(tmp_path / "c", {0: 5}, [0])
    layout = tmp_path / "c" / "layout.json"
    before = read_layout(layout)
    layout.write_text(text)
    assert main(["checkpoint", str(tmp_path / "c"), "--entities"]) == 1
    assert "layout.json is damaged" in capsys.readouterr().err
    layout.unlink()
    assert main(["checkpoint", str(tmp_path / "c"), "--entities"]) == 1
    assert "layout.json cannot be read: No such file" in capsys.readouterr().err
    opened().begin()
    assert read_layout(layout) == before


def metadata(directory, place):
    """Write what Spark writes of an operator: where its schema lies."""
    path = directory / "spark" / "state" / "0" / "_metadata" / "v2" / "0"
    path.parent.mkdir(parents=True)
    schema = f"file:{place}/spark/state/0/_stateSchema/default/0_a"
    path.write_text("v2\n" + json.dumps({"stateStoreInfo": [{"stateSchemaFilePaths": [schema]}]}))
    path.with_name(".0.crc").touch()
    return path


def test_recover_1_a_checkpoint_that_was_moved_names_its_new_place(tmp_path, opened):
    begun(opened())
    spark_wrote(tmp_path / "c", {0: 5}, [0])
    moved = metadata(tmp_path / "c", "/elsewhere/c")
    before = moved.read_text()
    with seen_from(tmp_path / "c" / "spark") as view:
        seen = json.loads((view / "state/0/_metadata/v2/0").read_text().splitlines()[1])
        (schema,) = seen["stateStoreInfo"][0]["stateSchemaFilePaths"]
        assert schema == f"file:{view}/state/0/_stateSchema/default/0_a"
        assert (view / "offsets" / "0").exists()
    assert moved.read_text() == before
    opened().begin()
    assert f"file:{tmp_path}/c/spark/state/0/_stateSchema/default/0_a" in moved.read_text()
    assert not moved.with_name(".0.crc").exists()
    moved.write_text("v2\n{}")
    with pytest.raises(CheckpointError, match="v2/0 is damaged"):
        opened().begin()


def test_recover_1_an_identity_that_spark_contradicts_is_refused(tmp_path, opened):
    opened(partitions=2)
    spark_wrote(tmp_path / "c", {0: 5}, [0], partitions=2)
    opened()
    path = tmp_path / "c" / "identity.json"
    write_identity(path, replace(read_identity(path), partitions=4))
    with pytest.raises(CheckpointError, match="it says 4 partitions, and Spark's part has 2"):
        opened()


def test_recover_1_another_topology_is_accepted_before_spark_has_committed(tmp_path, opened):
    begun(opened(partitions=2))
    shutil.copytree(tmp_path / "c" / "input", tmp_path / "log")
    spark_wrote(tmp_path / "c", {0: 0}, [])  # a batch was planned, and the run died in it
    (tmp_path / "c" / "input" / f"{0:020}.log").unlink()
    shutil.copytree(tmp_path / "log", tmp_path / "c" / "input", dirs_exist_ok=True)
    changed = application("app", count, total)

    def start(**own):
        options = SparkOptions.given({"checkpoint": tmp_path / "c", **own})
        with storage.opened(tmp_path / "c", changed, options, None) as found:
            return found.checkpoint

    with pytest.raises(CheckpointError, match=r"--accept-topology\. Otherwise"):
        start()
    assert (tmp_path / "c" / "spark" / "offsets" / "0").exists()
    accepted = start(accept_topology=True)
    assert accepted.identity.partitions == 2
    assert not (tmp_path / "c" / "spark" / "offsets").exists()
    assert read_layout(tmp_path / "c" / "layout.json") == layout_of(changed)
    assert read_identity(tmp_path / "c" / "identity.json").has_topology_of(changed)
    start()


class Today(dict[str, str]):
    """A state that is built otherwise than the application's."""


def test_recover_4_a_run_that_accepts_old_states_leaves_the_next_one_to_be_asked(tmp_path, opened):
    begun(opened(), 9)
    spark_wrote(tmp_path / "c", {0: 5}, [0])
    before = read_layout(tmp_path / "c" / "layout.json")
    changed = application(state=Today)
    assert layout_of(changed).fresh != before.fresh
    options = SparkOptions.given({"checkpoint": tmp_path / "c", "accept_old_states": True})
    with storage.opened(tmp_path / "c", changed, options, None):
        pass
    assert read_layout(tmp_path / "c" / "layout.json").fresh == before.fresh
