"""What tests of live runs on Spark are given."""

import pytest
from spark_checkpoints import application
from wallaroo_spark.live.checkpoint import Checkpoint


@pytest.fixture
def opened(tmp_path):
    """A function that opens the checkpoint `c` as a run does, and lets it go."""

    def open_it(app=None, partitions=None, default=2):
        found = Checkpoint(
            tmp_path / "c", app or application(), partitions=partitions, default_partitions=default
        )
        found.begin_run()
        found.close()
        return found

    return open_it
