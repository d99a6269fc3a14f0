"""Why Spark failed: the cause out of the pages that it tells. The texts are Spark's, shortened."""

import struct
import tempfile
import zlib
from pathlib import Path

import pytest
from wallaroo_spark.live.failures import explained

from wallaroo.transport.identity import RESTORE

CHECKPOINT = Path("/c")

QUERY = "[STREAM_FAILED] Query [id = 096e-e6, runId = 6f-87] terminated with exception: "
IN_BATCH = (
    "[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in "
    "foreach batch sink. Reason: An exception was raised by the Python Proxy. Return Message: "
    "Traceback (most recent call last):\n"
    '  File "py4j/clientserver.py", line 644, in _call_proxy\n'
    "    return_value = getattr(self.pool[obj_id], method)(*params)\n"
)
IN_JAVA = (
    "    raise Py4JJavaError(\n"
    "py4j.protocol.Py4JJavaError: An error occurred while calling o127.getResult.\n"
    ": org.apache.spark.SparkException: Exception thrown in awaitResult: \n"
    "\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)\n"
    "Caused by: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error "
    "occurred during loading state.  SQLSTATE: 58030\n"
    "\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotLoadStore(Q.scala:2256)\n"
    "Caused by: {}\n"
    "\tat org.apache.hadoop.fs.FSInputChecker.verifySums(FSInputChecker.java:336)\n"
)
IN_PYTHON = (
    "pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python "
    "worker:\nTraceback (most recent call last):\n"
    '  File "wallaroo_spark/stored.py", line 30, in restored\n'
    "    return reader.load()\n"
    "ModuleNotFoundError: No module named 'wallaroo_app_x'\n\n"
    "The above exception was the direct cause of the following exception:\n\n"
    "Traceback (most recent call last):\n"
    '  File "wallaroo_spark/nodes.py", line 172, in visit\n'
    "    state = states[entity]\n"
    "{}\n"
)
END = (
    " SQLSTATE: 39000 SQLSTATE: XXKST\n=== Streaming Query ===\n"
    "Identifier: [id = 096e-e6, runId = 6f-87]\nSomeError: in the plan\n"
)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            QUERY
            + IN_BATCH
            + IN_JAVA.format(
                "org.apache.hadoop.fs.ChecksumException: Checksum error: "
                "file:/c/spark/state/0/1/1.changelog at 0 exp: 63 got: -16"
            )
            + END,
            "the checkpoint /c is damaged: Checksum error: file:/c/spark/state/0/1/1.changelog at "
            f"0 exp: 63 got: -16. {RESTORE}",
        ),
        (
            QUERY + IN_BATCH + IN_JAVA.format("java.io.IOException: No space left on device") + END,
            "the disk is full: No space left on device. Spark writes to /c/spark and to "
            f"{tempfile.gettempdir()}: make room, and start again; nothing that was received is "
            "lost to the checkpoint",
        ),
        (
            QUERY
            + IN_BATCH
            + IN_PYTHON.format(
                "wallaroo_spark.worker.stored.StateError: its class Count is not there"
            )
            + END,
            "the checkpoint /c does not fit the application: its class Count is not there",
        ),
        (
            QUERY
            + IN_BATCH
            + IN_PYTHON.format("wallaroo.transport.kafka.cluster.BrokerError: offset 3 is wanted")
            + END,
            "offset 3 is wanted",
        ),
        (
            QUERY + IN_BATCH + IN_PYTHON.format("KeyError: 'x'") + END,
            "Spark failed: KeyError: 'x'",
        ),
        (QUERY + IN_BATCH + "AssertionError\n" + END, "Spark failed: AssertionError"),
        (
            QUERY + IN_BATCH + IN_JAVA.format("java.lang.OutOfMemoryError: Java heap space") + END,
            "Spark's JVM ran out of memory: Java heap space. Give it more, with --conf "
            "spark.driver.memory=4g, or take smaller batches, with --batch-bytes",
        ),
        (
            QUERY + "Job aborted due to stage failure" + END,
            "Spark failed: Job aborted due to stage failure",
        ),
        (
            "An error occurred while calling o1.load.\n"
            ": java.io.FileNotFoundException: File x does not exist\n",
            f"the checkpoint /c is damaged: File x does not exist. {RESTORE}",
        ),
        ("[Errno 111] Connection refused", "Spark failed: [Errno 111] Connection refused"),
    ],
)
def test_the_cause_is_told_in_a_line(told, said):
    assert explained(told, CHECKPOINT) == said


@pytest.mark.parametrize(
    ("damage", "place"), [(b"", 0), (b"x" * 600, 0), (b"a" * 512 + b"x", 512), (b"a" * 512, 512)]
)
def test_a_damaged_file_is_named_whatever_spark_says(tmp_path, damage, place):
    file = tmp_path / "spark" / "commits" / "5"
    file.parent.mkdir(parents=True)
    sums = [zlib.crc32(b"a" * size) for size in (512, 88)]
    file.with_name(".5.crc").write_bytes(b"crc\0" + struct.pack(">3I", 512, *sums))
    told = "java.lang.IllegalStateException: Incomplete log file in the offset commit log"
    file.write_bytes(b"a" * 600)
    assert explained(told, tmp_path).startswith("Spark failed: IllegalStateException: Incomplete")
    torn = file.with_name("6")  # its checksums were not all written when a run was killed
    torn.write_bytes(b"a" * 600)
    file.with_name(".6.crc").write_bytes(b"crc\0" + struct.pack(">2I", 512, 1))
    assert explained(told, tmp_path).startswith("Spark failed: IllegalStateException: Incomplete")
    file.write_bytes(damage)
    assert explained(told, tmp_path) == (
        f"{file} is damaged: its checksum does not fit from byte {place} on. {RESTORE}. "
        "Spark's cause: Incomplete log file in the offset commit log"
    )
