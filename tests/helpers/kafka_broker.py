"""A broker on loopback, in a process of its own: Apache Kafka, one KRaft node.

Its jars come from Maven Central and are kept in the user's cache folder, so they are fetched once.
Where Maven or Java is missing, it is the broker of the package noida-db, which can do less.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from ports import free_port

_POM = Path(__file__).with_name("kafka_pom.xml")
_COPY = "dependency:copy-dependencies"
_UP = 120.0  # seconds that a broker has to start


class NoBrokerError(Exception):
    """There is no broker here: Maven or Java is missing, or a download failed."""


def jars(project: Path = _POM) -> Path:
    """Return the folder of a Maven project's jars, fetched if they are not there.

    Args:
        project: the project's file; the default is what a broker needs.

    Raises:
        NoBrokerError: they cannot be fetched.
    """
    pom = project.read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "wallaroo-tests" / f"kafka-{hashlib.sha256(pom).hexdigest()[:12]}"
    there = folder.is_dir()
    if shutil.which("java") is None or (shutil.which("mvn") is None and not there):
        raise NoBrokerError("Kafka's broker needs Java 17 and Maven, which are not installed")
    if there:
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        fetched = subprocess.run(
            ["mvn", "-q", "-B", "-f", str(project), f"-DoutputDirectory={made}/jars", _COPY],
            capture_output=True,
            text=True,
            check=False,
        )
        if fetched.returncode:
            raise NoBrokerError(f"Maven could not fetch the broker: {fetched.stdout[-2000:]}")
        with contextlib.suppress(OSError):  # another process was first
            Path(made, "jars").rename(folder)
    return folder


class Broker:
    """One broker. `start` it; `close` it.

    Args:
        folder: where its data lives; it outlives a `kill`.
        port: where it listens.

    Attributes:
        name: which one it is.
        lacks: what it cannot do that tests may need; empty: nothing.
    """

    name: str
    lacks = ""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"127.0.0.1:{port}"

    def start(self) -> None:
        """Start it, and return once it answers.

        Raises:
            NoBrokerError: it does not.
        """
        with (self._folder / "out").open("ab") as out:
            process = subprocess.Popen(
                self._command(), stdout=out, stderr=out, start_new_session=True
            )
        self._process = process
        end = time.monotonic() + _UP
        while time.monotonic() < end and process.poll() is None:
            with contextlib.suppress(Exception):
                self.admin().list_topics(timeout=1.0)
                return
        ended = "has not answered" if process.poll() is None else f"ended with {process.poll()}"
        self.kill()
        said = (self._folder / "out").read_text()[-2000:]
        raise NoBrokerError(f"the broker at {self.address} {ended}: {said}")

    def kill(self) -> None:
        """End it at once."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def admin(self) -> AdminClient:
        """Return a client that manages topics."""
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def topic(self, partitions: int = 1, name: str = "", **options: object) -> str:
        """Make a topic and return its name."""
        name = name or f"t{uuid.uuid4().hex[:8]}"
        config = {key.replace("_", "."): str(value) for key, value in options.items()}
        new = NewTopic(name, partitions, 1, config=config)
        admin = self.admin()
        admin.create_topics([new])[name].result(30)
        while not self._led(name, partitions):
            pass
        return name

    def partitions(self, topic: str) -> int:
        """Return how many partitions a topic has; 0: it is not there, or not yet."""
        return len(self.admin().list_topics(topic, 30).topics[topic].partitions)

    def send(self, topic: str, *records: Mapping[str, Any], **options: object) -> None:
        """Send records: the arguments of `confluent_kafka.Producer.produce`, `value` and so on."""
        producer = Producer(
            {"bootstrap.servers": self.address, "linger.ms": 0, "log_level": 2, **options}
        )
        if "transactional.id" in options:
            producer.init_transactions(30)
            producer.begin_transaction()
        for record in records:
            producer.produce(topic, **record)
            producer.poll(0)
        if "transactional.id" in options:
            producer.commit_transaction(30)
        assert not producer.flush(30)

    def records(self, topic: str, isolation: str = "read_committed") -> dict[int, list[Any]]:
        """Return the messages of each partition of a topic, up to its end now.

        A transaction is committed some moments before its partitions are marked so: the marks are
        waited for.
        """
        consumer = self._consumer(isolation)
        partitions = sorted(consumer.list_topics(topic, 30).topics[topic].partitions)
        if isolation == "read_committed":
            self._wait_for_marks(consumer, topic, partitions)
        found: dict[int, list[Any]] = {partition: [] for partition in partitions}
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        reading = set(partitions)
        while reading:
            for message in consumer.consume(1000, 0.05):
                if message.error() is None:
                    found[message.partition()].append(message)
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    reading.discard(message.partition())
        consumer.close()
        return found

    def _consumer(self, isolation: str) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": "looks",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 2,
                "isolation.level": isolation,
            }
        )

    def _wait_for_marks(self, committed: Consumer, topic: str, partitions: Sequence[int]) -> None:
        """Return once what is there now is marked, or in ten seconds: some may stay open."""
        until, every = time.monotonic() + 10.0, self._consumer("read_uncommitted")
        for partition in partitions:
            place = TopicPartition(topic, partition)
            end = every.get_watermark_offsets(place, 30)[1]
            while committed.get_watermark_offsets(place, 30)[1] < end and time.monotonic() < until:
                time.sleep(0.02)
        every.close()

    def _led(self, topic: str, partitions: int) -> bool:
        there = self.admin().list_topics(topic, 30).topics[topic].partitions.values()
        return len([one for one in there if one.leader >= 0]) == partitions

    def _end(self, number: int) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)
            self._process.wait(60)
            self._process = None

    def _command(self) -> list[str]:
        raise NotImplementedError


class ApacheBroker(Broker):
    """Apache Kafka.

    Args:
        folder: as for `Broker`.
        options: of the broker, in place of those that suit tests.

    Raises:
        NoBrokerError: it cannot be had.
    """

    name = "Apache Kafka"

    def __init__(self, folder: Path, options: Mapping[str, object] | None = None) -> None:
        port, controller = free_port(), free_port()
        super().__init__(folder, port)
        self._jars = jars()
        properties = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": folder / "data",
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
            "group.initial.rebalance.delay.ms": 0,
            "log.retention.ms": -1,  # what tests write is as old as its event times
            "broker.session.timeout.ms": 2000,  # so that one that was killed may come back soon
            "broker.heartbeat.interval.ms": 500,
            **(options or {}),
        }
        self._properties = folder / "server.properties"
        self._properties.write_text("".join(f"{k}={v}\n" for k, v in properties.items()))
        cluster = base64.b64encode(b"wallaroo-testing").decode().rstrip("=")
        done = subprocess.run(
            self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c"),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NoBrokerError(f"the broker's folder cannot be made: {done.stderr[-2000:]}")

    def _command(self) -> list[str]:
        return self._java("kafka.Kafka")

    def _java(self, *main: str) -> list[str]:
        # Small, and quick to start: a test's broker lives a minute.
        quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
        return ["java", *quick, "-cp", f"{self._jars}/*", *main, str(self._properties)]


class NoidaBroker(Broker):
    """The broker of noida-db.

    Raises:
        NoBrokerError: it is not installed.
    """

    name = "noida-db"
    lacks = "has no ids of topics, gives no transaction up, and may lose what it acknowledged last"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, free_port())
        package = find_spec("noida_db")
        if package is None or package.origin is None:
            raise NoBrokerError("Kafka's tests need Java 17 and Maven, or the package noida-db")
        self._program = Path(package.origin).with_name("noida-db")

    def _command(self) -> list[str]:
        port = self.address.partition(":")[2]
        listens = ["--only", "kafka", "--kafka-port", port]
        return [str(self._program), "start", *listens, "--data-dir", str(self._folder / "data")]


def which() -> type[Broker]:
    """Return which broker there is here."""
    try:
        jars()
    except NoBrokerError:
        return NoidaBroker
    return ApacheBroker


@contextlib.contextmanager
def broker(options: Mapping[str, object] | None = None) -> Iterator[Broker]:
    """Start a broker, and end it, and delete what it stored. Options need Apache Kafka."""
    with tempfile.TemporaryDirectory() as folder:
        apache = options is not None or which() is ApacheBroker
        made = ApacheBroker(Path(folder), options) if apache else NoidaBroker(Path(folder))
        made.start()
        try:
            yield made
        finally:
            made.kill()
