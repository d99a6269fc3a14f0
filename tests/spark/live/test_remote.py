"""A checkpoint at a URL: here of Hadoop's viewfs, whose files lie where a table says."""

import json
import uuid
from pathlib import Path

import pytest
from spark_checkpoints import application
from wallaroo_spark.jvm.session import session
from wallaroo_spark.live.checkpoint import Checkpoint
from wallaroo_spark.live.remote import (
    FILE_MANAGER,
    CheckpointUrl,
    Remote,
    checkpoint_place,
    refuse_other_sources,
)
from wallaroo_spark.live.resume import Resume, read_resume, write_resume

from wallaroo.errors import UsageError, WallarooError
from wallaroo.transport.identity import IDENTITY, CheckpointError, read_identity

pytestmark = pytest.mark.xdist_group("spark")  # in the session that all such tests share

SCHEMA = "state/0/_metadata/v2/0"


@pytest.fixture
def far(tmp_path):
    """The folder of what is at the URL."""
    folder = tmp_path / "far"
    folder.mkdir()
    return folder


@pytest.fixture
def copied(far, tmp_path):
    """A function that opens the checkpoint at the URL with a new copy."""
    spark = session().spark
    before = spark.conf.get(FILE_MANAGER)
    table = uuid.uuid4().hex
    spark.conf.set(f"fs.viewfs.mounttable.{table}.link./there", f"file://{far}")
    url = CheckpointUrl(f"viewfs://{table}/there/orders")
    copies = []

    def open_it(**given):
        copies.append(tmp_path / f"copy{len(copies)}" / "c")
        given = {"resume": False, "chosen": False, **given}
        return Remote(spark, url, copies[-1], **given), copies[-1]

    yield open_it
    spark.conf.set(FILE_MANAGER, before)


def opened(remote, copy):
    return Checkpoint(
        copy,
        application(),
        partitions=2,
        default_partitions=2,
        offsets_only=True,
        remote=remote,
    )


def begun(remote, copy):
    """A run's checkpoint once the run has begun."""
    checkpoint = opened(remote, copy)
    checkpoint.begin_run()
    checkpoint.begin()
    checkpoint.close()
    return checkpoint


def test_recover_1_another_machine_finds_what_a_run_has_published(copied, far):
    first = begun(*copied())
    write_resume(first.resume, Resume(7), first.born)
    first.publish()
    assert {"identity.json", "layout.json", "resume"} <= {
        path.name for path in (far / "orders").iterdir()
    }
    remote, copy = copied()
    second = begun(remote, copy)
    assert second.size() == sum([one.stat().st_size for one in far.rglob("[!.]*") if one.is_file()])
    assert second.restarts == 1
    assert second.born.checkpoint == first.born.checkpoint
    assert read_resume(copy / "resume").sequence == 7
    assert read_identity(far / "orders" / IDENTITY).stamp == second.born


def test_recover_3_a_part_of_another_checkpoint_is_refused(copied, far):
    first = begun(*copied())
    write_resume(first.resume, Resume(7), first.born._replace(checkpoint="0" * 32))
    first.publish()
    remote, copy = copied()
    with pytest.raises(CheckpointError, match="does not belong here") as refused, remote.named():
        opened(remote, copy)
    assert str(copy) not in str(refused.value)
    assert f"{remote.url}/resume" in str(refused.value)


def test_a_checkpoint_that_was_moved_names_its_new_place(copied, far):
    begun(*copied())
    form = {"stateStoreInfo": [{"stateSchemaFilePaths": ["hdfs://h:1/d/spark/state/0/s"]}]}
    path = far / "orders" / "spark" / SCHEMA
    path.parent.mkdir(parents=True)
    path.write_text(f"v2\n{json.dumps(form)}")
    for name, text in (("offsets/0", OFFSETS), ("commits/0", "v1\n{}")):
        (path.parents[4] / name).parent.mkdir()
        (path.parents[4] / name).write_text(text)
    remote, copy = copied()
    begun(remote, copy)
    assert f"{remote.url}/spark/state/0/s" in path.read_text()


OFFSETS = "\n".join(["v1", '{"conf":{"spark.sql.shuffle.partitions":"2"}}', '{"next":3}'])


def test_what_a_run_left_that_died_before_its_first_batch_is_deleted(copied, far):
    begun(*copied())
    (far / "orders" / "spark" / "state" / "0").mkdir(parents=True)
    begun(*copied())
    assert not (far / "orders" / "spark" / "state").exists()


def test_resume_refuses_an_empty_place(copied):
    with pytest.raises(UsageError, match=r"viewfs://.* holds no checkpoint"):
        copied(resume=True)


def test_what_cannot_be_read_is_one_line(copied, tmp_path):
    url = CheckpointUrl("nowhere://there/orders")
    with pytest.raises(CheckpointError, match="nowhere://there/orders cannot be read") as refused:
        Remote(session().spark, url, tmp_path / "c", resume=False, chosen=False)
    assert "\n" not in str(refused.value)


def test_places():
    assert checkpoint_place("state/orders") == Path("state/orders")
    assert checkpoint_place("file:///state/orders") == Path("/state/orders")
    assert checkpoint_place("hdfs://name:8020/orders/") == "hdfs://name:8020/orders"


def test_sources_that_are_no_topics_are_refused():
    with pytest.raises(WallarooError, match="is not a topic of Kafka, so its input log"):
        refuse_other_sources(application(), "hdfs://name/orders", None)
