"""A Spark standalone cluster on this machine, out of the pip package: a master and two workers."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pyspark
import pytest
from wallaroo_spark.jvm.java import MODULE_OPTIONS
from wallaroo_spark.jvm.session import close_session, session
from wallaroo_spark.jvm.settings import SessionSettings

import wallaroo
from wallaroo.engine import Case
from wallaroo.frames import frames
from wallaroo.loading import load_application, load_module

pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CLOCK = ("--clock", "1000000000")  # order results are stamped with it
WORDS = [line.encode() for line in (EXAMPLES.parent / "LICENSE").read_text().splitlines() if line]

_START_TIMEOUT = 60.0  # seconds until a daemon must have said that it is up
_PR_SET_PDEATHSIG = 1


@pytest.fixture(scope="module")
def market():
    """Payloads by pipeline, and all of them as an input log: market data, then orders."""
    feed = load_module(EXAMPLES / "market_feed.py").module
    symbols = (EXAMPLES / "data" / "symbols.txt").read_text().split()
    data = list(feed.generate_market_data(500, 7, symbols))
    orders = list(feed.generate_orders(500, 7, symbols))
    return data, orders


def market_log(market):
    data, orders = market
    return [("Market Data", each) for each in data] + [("Orders", each) for each in orders]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, java_home, class_archive):
    """The cluster of all tests here; the last of them kills a worker."""
    directory = tmp_path_factory.mktemp("cluster")
    with contextlib.closing(Cluster(directory, java_home, class_archive, workers=2)) as running:
        yield running


@pytest.fixture
def conf(class_archive):
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": f"{QUICK} {class_archive}",
    }


def example(name, *arguments):
    return load_application(EXAMPLES / f"{name}.py", arguments, placeholders=True)


# -- bounded cases ---------------------------------------------------------------------------


@wallaroo.decoder(header_length=4, length_fmt=">I")
def whole(payload):
    return payload


class Executors:
    """The daemons of Python workers under which an entity was touched: one for each executor."""

    def __init__(self):
        self.seen = set()


@wallaroo.state_computation(name="note executor")
def note_executor(message, executors):
    executors.seen.add(os.getppid())
    return str(os.getppid()), True


@wallaroo.partition
def itself(message):
    return message


@wallaroo.encoder
def show(message):
    return message


def where():
    return (
        wallaroo.ApplicationBuilder("where")
        .new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, whole))
        .to_state_partition(note_executor, Executors, "executors", itself)
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, show))
        .build()
    )


def test_order_2_bounded_cases_on_a_cluster(cluster, conf, spark_engine, reference, market):
    cases = [
        Case(application, log, batches, partitions=2)
        for application, log, batches in [
            (example("word_count"), [("Split and Count", line) for line in WORDS], None),
            (example("market_spread", *CLOCK), market_log(market), (300, 400)),
        ]
    ]
    spread = Case(where(), [("p", b"%d" % key) for key in range(20)], (10,), partitions=4)
    session(SessionSettings(master=cluster.url, conf=conf))
    try:
        *found, places = spark_engine.run_many([*cases, spread])
    finally:
        close_session()
    for case, trace in zip(cases, found, strict=True):
        assert trace.comparable() == reference.run(case).comparable()
    assert len(set(places.outputs["p", 0])) == 2  # both executors hold state


# -- live ------------------------------------------------------------------------------------


class Receiver:
    """A sink's peer, which keeps all that comes."""

    def __init__(self):
        self.data = bytearray()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def wait_for(self, length, run):
        while len(self.data) < length:
            assert run.poll() is None, "the run has ended"
            time.sleep(0.02)

    def close(self):
        self._listener.close()
        self._thread.join(10)

    def _receive(self):
        with contextlib.suppress(OSError), self._listener.accept()[0] as connection:
            while data := connection.recv(1 << 16):
                self.data += data


@contextlib.contextmanager
def served(cluster, conf, receiver, log):
    """Run market spread on the cluster; yield the process and its ports by source."""
    command = [
        *(sys.executable, "-m", "wallaroo", "run", str(EXAMPLES / "market_spread.py")),
        *("--engine", "spark", "--master", cluster.url, "--partitions", "2"),
        *[part for pair in conf.items() for part in ("--conf", "=".join(pair))],
        *("--progress", "none", "--stop-timeout", "60", *CLOCK),
        *("--in", "127.0.0.1:0,127.0.0.1:0", "--out", f"127.0.0.1:{receiver.port}"),
    ]
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stderr=stderr)
    try:
        ports = {}
        while len(ports) < 2:
            assert process.poll() is None, log.read_text()
            for name, port in re.findall(
                r"source (Orders|Market Data) listening on .*:(\d+)\n", log.read_text()
            ):
                ports[name] = int(port)
            time.sleep(0.05)
        yield process, ports
    finally:
        process.kill()
        process.wait()


def send(port, payloads):
    """Send frames, and return when they are sequenced (frame-4)."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(frames(payloads))
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""


# The last one here: it leaves the cluster with one worker.
def test_recover_1_a_worker_is_killed_and_the_job_completes(
    cluster, conf, reference, market, tmp_path
):
    data, orders = market
    trace = reference.run(Case(example("market_spread", *CLOCK), market_log(market)))
    expected = b"".join(trace.outputs["Orders", 0])
    with (
        contextlib.closing(Receiver()) as receiver,
        served(cluster, conf, receiver, tmp_path / "log") as (run, ports),
    ):
        send(ports["Market Data"], data)
        send(ports["Orders"], orders[:200])
        receiver.wait_for(1, run)
        assert cluster.kill_worker(0), "it had an executor"
        send(ports["Orders"], orders[200:])
        receiver.wait_for(len(expected), run)
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 0
    assert receiver.data == expected


# -- the cluster -----------------------------------------------------------------------------


class Cluster:
    """A master and workers on loopback, on ports that were free.

    Args:
        directory: for logs, and for what the daemons need.
        java_home: whose Java they run on.
        class_archive: Java's option with which they start sooner.
        workers: number of workers, each of one core.

    Attributes:
        url: of the master.
    """

    def __init__(self, directory: Path, java_home: Path, class_archive: str, workers: int) -> None:
        self._directory = directory
        self._started: list[subprocess.Popen[bytes]] = []
        self._java_home, self._class_archive = java_home, class_archive
        try:
            master = self._start(
                "master",
                "org.apache.spark.deploy.master.Master",
                *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
            )
            self.url = self._said("master", master, r"Starting Spark master at (spark://\S+)")
            self._workers = [
                self._start(
                    f"worker{number}",
                    "org.apache.spark.deploy.worker.Worker",
                    *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
                    *("--cores", "1", "--memory", "1g"),
                    *("--work-dir", str(directory / f"work{number}")),
                    self.url,
                )
                for number in range(workers)
            ]
            for number, worker in enumerate(self._workers):
                self._said(f"worker{number}", worker, r"Successfully (registered) with master")
        except BaseException:
            self.close()
            raise

    def kill_worker(self, number: int) -> list[int]:
        """Kill -9 a worker and the executors it runs; return the pids of these."""
        worker = psutil.Process(self._workers[number].pid)
        executors = worker.children()
        for process in (worker, *executors):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._workers[number].wait()
        return [executor.pid for executor in executors]

    def close(self) -> None:
        """End everything, and wait until it has ended."""
        left = []
        for process in reversed(self._started):
            with contextlib.suppress(psutil.NoSuchProcess):
                left += psutil.Process(process.pid).children(recursive=True)
            process.kill()
            process.wait()
        for child in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(left, timeout=10)

    def _start(self, name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        environment = {
            **os.environ,
            "JAVA_HOME": str(self._java_home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_DIRS": str(self._directory / "local"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SCALA_VERSION": "2.13",  # without it the master kills every application
        }
        environment.pop("PYTHONPATH", None)  # a worker does not have the driver's
        with self._log(name).open("wb") as log:
            process = subprocess.Popen(
                [
                    str(self._java_home / "bin" / "java"),
                    *("-Xmx256m", *QUICK.split(), self._class_archive),
                    "-Dspark.master.rest.enabled=false",  # it would listen on a fixed port
                    *MODULE_OPTIONS,
                    *("-cp", f"{home}/jars/*", main, *arguments),
                ],
                cwd=self._directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,
            )
        self._started.append(process)
        return process

    def _said(self, name: str, process: subprocess.Popen[bytes], pattern: str) -> str:
        """Wait until a daemon has logged `pattern`; return its group."""
        deadline = time.monotonic() + _START_TIMEOUT
        while True:
            log = self._log(name).read_text(errors="replace")
            if found := re.search(pattern, log):
                return found[1]
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Spark's {name} did not come up: {log[-2000:]}")
            time.sleep(0.05)

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"


def _end_with_parent() -> None:
    """Have the kernel kill this process when the tests' process ends, however it does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
