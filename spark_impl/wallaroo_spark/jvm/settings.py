"""What a session is started with: the settings this engine was measured with, and the user's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SETTINGS = {
    # The largest single gain there is: a job of one Python stage takes 35 ms instead of 85.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.pollingDelay": "2ms",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.stopTimeout": "5s",
    # Spark's default starts `readlink` about the files it renames, a process every time: some 40 ms
    # a commit. A rename is the same without, and Hadoop's local files have checksums of their own.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Counting rows costs a read before every write: 87 ms for an append to a list, once.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "256",
    # Each of our rows is a packed block of messages: a batch of few rows is already large.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    "spark.sql.legacy.setCommandRejectsSparkCoreConfs": "false",
    "spark.task.maxFailures": "4",
    "spark.log.structuredLogging.enabled": "false",
}


_IN_ONE_JVM = re.compile(r"local(\[.*\])?")  # and not local-cluster[…]


@dataclass(frozen=True)
class SessionSettings:
    """What a session is started with.

    Args:
        master: Spark's master URL; ``local[*]`` runs inside the driver's JVM.
        conf: Spark settings over this engine's own.
        verbose: Spark's messages go to standard error.
        server_jvm: the optimising compiler and the parallel collector, for throughput; otherwise
            the quick compiler and the serial collector: short starts and low latency.
        driver_memory: the JVM's largest heap, as Java writes it.
    """

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    verbose: bool = False
    server_jvm: bool = False
    driver_memory: str = "2g"

    def spark_master(self) -> str:
        """Return the master URL with task retries, which a plain ``local[N]`` does not have."""
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
        """Return all settings of a session that has `directory` for its files."""
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
            # Even without a cluster Spark listens, and trusts whoever connects. It makes the secret
            # itself; on a cluster the daemons would have to know it.
            conf["spark.authenticate"] = "true"
        if self.local:
            conf["spark.driver.host"] = conf["spark.driver.bindAddress"] = "127.0.0.1"
        conf.update(self.conf)
        return conf
