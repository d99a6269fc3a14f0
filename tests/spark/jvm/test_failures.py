"""What is said when a process of Spark's does not start or dies; the texts are Spark's own."""

import threading

import pytest
from counted import counting
from wallaroo_spark.engine import SparkEngine
from wallaroo_spark.jvm.failures import end_of_jvm, explained

FAILED = "[STREAM_FAILED] Query [id = 096e-e6, runId = 6f-87] terminated with exception: "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "An error occurred while calling o90.load.\n"
            ': java.io.IOException: Cannot run program "/no/python": error=2, No such file or '
            "directory\n\tat java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)\n"
            "Caused by: java.io.IOException: error=2, No such file or directory\n",
            'Spark cannot run "/no/python" for its Python workers. Workers need Python 3.',
        ),
        (
            ": org.apache.spark.SparkException: \nError from python worker:\n"
            "  /usr/bin/python3: No module named 'pyspark'\nPYTHONPATH was:\n  /x.jar\n"
            "org.apache.spark.SparkException: EOFException occurred while reading the port number "
            "from pyspark.daemon's stdout and terminated with code: 1..\n",
            "Spark's Python workers do not start: /usr/bin/python3: No module named 'pyspark'. ",
        ),
        (
            "Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call "
            "last):\n  x\nwallaroo.errors.ExtraMissingError: Kafka needs the package "
            "confluent-kafka, which is not installed\n\n\tat org.apache.spark.x\n",
            "the Python of Spark's workers lacks a package: Kafka needs the package",
        ),
        (
            "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python "
            "in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run\n",
            "Spark's workers run Python 3.12. Workers need Python 3.",
        ),
        (
            "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
            ": org.apache.spark.SparkIllegalArgumentException: "
            "[INVALID_DRIVER_MEMORY.SYSTEM_MEMORY] Insufficient driver memory: System memory "
            "101384192 must be at least 471859200. Increase heap size.\n",
            "Spark's JVM has too little memory: System memory 101384192 must be at least 471859200 "
            "bytes. Give it more, with --conf spark.driver.memory=1g",
        ),
        (
            ": org.apache.spark.SparkIllegalArgumentException: "
            "[INVALID_EXECUTOR_MEMORY.CONFIG_MEMORY] Insufficient executor memory: Executor memory "
            "104857600 must be at least 471859200.\n",
            "Spark's executors have too little memory: Executor memory 104857600 must be at least",
        ),
        (
            ": org.apache.spark.SparkException: Job aborted due to stage failure: Master removed "
            "our application: FAILED\n",
            "Spark's master has ended the run (FAILED): its executors failed again and again.",
        ),
        (
            ": org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). "
            "Consider setting\nCaused by: java.io.EOFException\n",
            "a Python worker process of Spark's died, in each attempt at the same input, and in no",
        ),
        (
            f"{FAILED}Broken pipe SQLSTATE: XXKST\n=== Streaming Query ===\n",
            "the Python process in which Spark plans micro-batches died: it was killed from",
        ),
        ("java.lang.OutOfMemoryError: Java heap space\n", "Spark's JVM ran out of memory: Java"),
    ],
)
def test_what_spark_says_of_its_processes(text, said):
    assert (explained(text) or "").startswith(said)


def test_other_errors_are_not_of_processes():
    assert explained(f"{FAILED}a Broken pipe of somebody's\n") is None


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (-9, "Spark's JVM (process 7) died of SIGKILL: it was killed from outside (kill -9), or"),
        (143, "Spark's JVM (process 7) died of SIGTERM. Start the run again"),
        (-11, "Spark's JVM (process 7) died of SIGSEGV. "),
        (3, "Spark's JVM ran out of memory. Give it more, with --conf spark.driver.memory=4g"),
        (52, "Spark's JVM ran out of memory. "),
        (1, "Spark's JVM (process 7) ended by itself, with exit code 1. "),
        (200, "Spark's JVM (process 7) died of signal 72. "),
    ],
)
def test_how_a_jvm_ended(code, said):
    assert end_of_jvm(7, code).startswith(said)


class Locked:
    def __init__(self):
        self.lock = threading.Lock()


class Leaving:
    def __init__(self):
        raise KeyboardInterrupt


def test_dead_3_a_check_does_not_end_where_a_builder_does():
    SparkEngine().check(counting(7002, Leaving))


def test_key_5_a_check_looks_at_states(caplog):
    SparkEngine().check(counting(7002))
    assert not caplog.records
    SparkEngine().check(counting(7002, Locked))
    assert "state partition 'counts': each message that meets it becomes a dead letter" in (
        caplog.text
    )
    assert (
        "Locked does not survive pickling: TypeError: cannot pickle '_thread.lock' object"
        in caplog.text
    )
