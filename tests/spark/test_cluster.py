"""A real standalone cluster on this machine, from the pip package: a master and two workers."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest
from wallaroo_spark.java import MODULE_OPTIONS, find_java

import wallaroo.loading
from wallaroo.engine import ServeOptions

pytestmark = [pytest.mark.alone, pytest.mark.xdist_group("spark-alone")]

EXAMPLES = Path(__file__).parents[2] / "examples"


class Daemon:
    """A master or a worker in a process of its own."""

    def __init__(self, directory, name, *arguments):
        home = Path(pyspark.__file__).parent
        java = find_java()
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_SCALA_VERSION": "2.13",
            "JAVA_HOME": str(java.parent.parent),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(directory),
            "SPARK_WORKER_DIR": str(directory / "work"),
            "PYSPARK_PYTHON": sys.executable,
        }
        environment.pop("PYTHONPATH", None)  # a worker has nothing of ours but what is sent
        timeouts = ["-Dspark.worker.timeout=10", "-Dspark.network.timeout=20s"]
        command = [str(java), "-Xmx512m", *MODULE_OPTIONS, *timeouts, "-cp", f"{home}/jars/*"]
        self.log = directory / f"{name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, f"org.apache.spark.deploy.{name}", *arguments],
                env=environment,
                cwd=directory,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture
def cluster(tmp_path):
    port = free_port()
    master = Daemon(
        tmp_path, "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"
    )
    until(lambda: "I have been elected leader" in master.log.read_text(), "the master")
    daemons = [master]
    for number in range(2):
        directory = tmp_path / str(number)
        directory.mkdir()
        url = f"spark://127.0.0.1:{port}"
        arguments = ["--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "1g", url]
        daemons.append(Daemon(directory, "worker.Worker", *arguments))
    until(lambda: master.log.read_text().count("Registering worker") == 2, "the workers")
    yield url, daemons
    for daemon in daemons:
        daemon.kill()


def until(condition, what, seconds=300.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not come up"
        time.sleep(0.1)


def options(master, data, **changes):
    conf = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
    }
    own = {"master": master, "conf": conf, "batch_bytes": 2000}
    out = io.BytesIO()
    served = ServeOptions(stdin=data, stdout=out, partitions=2, stop_timeout=120, options=own)
    return out, served


def test_word_count_on_a_cluster_gives_what_the_reference_gives(spark_engine, reference, cluster):
    url, daemons = cluster
    text = b"".join([b"the %d cat the dog\n" % (n % 7) for n in range(2000)])
    application = wallaroo.loading.load_application(EXAMPLES / "word_count.py", placeholders=True)
    out, served = options(url, io.BytesIO(text))
    handle = spark_engine.serve(application, served)
    until(lambda: handle.progress().details["batches"] > 2 or handle.wait(0), "the job")
    daemons[2].kill()  # in the middle: its executor goes with it, the other does the rest
    summary = handle.wait(240)
    assert (summary.problem, summary.exit_code) == (None, 0)
    expected = io.BytesIO()
    served = ServeOptions(stdin=io.BytesIO(text), stdout=expected)
    reference.serve(application, served).wait(60)
    assert out.getvalue() == expected.getvalue()
