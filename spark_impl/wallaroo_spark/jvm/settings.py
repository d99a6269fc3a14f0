"""A session's settings: the defaults, with which this engine was measured, and the user's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wallaroo_spark.jvm.temporary import SHORT, has_room_for

_SOCKETS = "spark.python.unix.domain.socket.dir"
_SOCKET = ".00000000-0000-0000-0000-000000000000.sock"  # as Spark names one

SETTINGS = {
    # The largest single gain: a job with one Python stage takes 35 ms instead of 85.
    "spark.python.unix.domain.socket.enabled": "true",
    # On other machines; a container of YARN has a folder whose path is too long for sockets.
    _SOCKETS: SHORT,
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.pollingDelay": "2ms",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.stopTimeout": "5s",
    # By default Spark starts a process, `readlink`, for each file it renames: some 40 ms a commit.
    # Renaming needs no such check, and Hadoop's local files have checksums of their own.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Counting rows costs a read before every write: an append to a list took 87 ms.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "256",
    # The sum says whether a repeated task has sent the same bytes. Ours never does, since times of
    # clocks are among them, and what it sends is right all the same. To compute the sum, Java reads
    # each byte of each shuffle once more.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
    # Each of our rows is a packed block of messages: a batch of few rows is already large.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    "spark.sql.legacy.setCommandRejectsSparkCoreConfs": "false",
    "spark.task.maxFailures": "4",
    "spark.log.structuredLogging.enabled": "false",
}


_IN_ONE_JVM = re.compile(r"local(\[.*\])?")  # and not local-cluster[…]


@dataclass(frozen=True)
class SessionSettings:
    """The settings of a session.

    Args:
        master: Spark's master URL; ``local[*]`` runs inside the driver's JVM.
        conf: Spark settings that override this engine's defaults.
        verbose: show Spark's messages on standard error.
        driver_memory: the JVM's largest heap, in Java's notation, such as ``2g``.
    """

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    verbose: bool = False
    driver_memory: str = "2g"

    def spark_master(self) -> str:
        """Return the master URL, with task retries added to a plain ``local[N]``."""
        if self.master == "local":
            return "local[1,4]"
        if self.master.startswith("local[") and "," not in self.master:
            return self.master.replace("]", ",4]")
        return self.master

    @property
    def local(self) -> bool:
        """Whether tasks run on this machine, inside the driver's JVM."""
        return self.master.startswith("local")

    def spark_conf(self, directory: Path) -> dict[str, str]:
        """Return all Spark settings of a session whose files are in `directory`."""
        conf = {
            **SETTINGS,
            "spark.master": self.spark_master(),
            "spark.app.name": "wallaroo",
            "spark.local.dir": str(directory),
            "spark.sql.warehouse.dir": str(directory / "warehouse"),
            "spark.driver.memory": self.driver_memory,
        }
        if not self.verbose:
            conf["spark.log.level"] = "OFF"
        if _IN_ONE_JVM.fullmatch(self.master):
            # Even without a cluster Spark listens on a port, so connections must need a secret.
            # Spark makes it itself; on a cluster the daemons would have to know it.
            conf["spark.authenticate"] = "true"
        if self.local:
            conf["spark.driver.host"] = conf["spark.driver.bindAddress"] = "127.0.0.1"
            if has_room_for(directory, _SOCKET):  # what a kill leaves there is removed
                conf[_SOCKETS] = str(directory)
        conf.update(self.conf)
        return conf
