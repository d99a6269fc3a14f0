"""A run between two topics of its own, on brokers, and what readers of the second one must see.

What must be in the second topic is what the reference says of the records in the first: byte by
byte if the read is bounded, else key by key, since then the engine chooses between partitions, and
each key stands in one partition.
"""

from __future__ import annotations

import contextlib
import logging
import select
import shutil
import socket
import socketserver
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import wallaroo
from wallaroo.components import OwnState
from wallaroo.engine import Case, Engine, ServeOptions, load_engine
from wallaroo.errors import WallarooError
from wallaroo.kafka_records import partition_of
from wallaroo.overriding import override
from wallaroo.testing.input import input_log_of
from wallaroo.topology import Application
from wallaroo_conformance.cases.operators.states import Notebook
from wallaroo_conformance.cases.operators.topics import keyed
from wallaroo_conformance.cases.operators.triples import ByLetter, RememberEach, triple
from wallaroo_conformance.live.peers import wait_until
from wallaroo_conformance.live.served import ServedRun, lacking

if TYPE_CHECKING:
    from confluent_kafka import Message

_INTERVAL = 60.0  # seconds between checkpoints: a kill comes between outputs and the next one
_BATCH = 60  # records that are sent at once
_LETTERS, _ADDED = "abcde", "f"
_READ, _WRITTEN = 2, 3  # partitions of the two topics
_POLLED = 0.1  # seconds that a consumer waits for more


@dataclass(frozen=True)
class KafkaScenario:
    """A run.

    Args:
        rules: what it is about, the most particular first.
        script: what is done.
        until: where the source ends.
        recovers: the engine must recover.
        two_at_once: the engine must serve two runs in one process, so not be `one_at_a_time`.
    """

    rules: tuple[str, ...]
    script: Callable[[KafkaRun], None]
    until: str | None = None
    recovers: bool = True
    two_at_once: bool = False

    def refusal(self, engine: Engine) -> str:
        """Return why an engine cannot do it; empty: it can."""
        if self.two_at_once and getattr(engine, "one_at_a_time", False):
            return "it serves one run at a time"
        return lacking(engine, self.rules, recovers=self.recovers)


class KafkaRun(ServedRun):
    """Two topics, and an application that an engine serves from one to the other.

    Args:
        scenario: what is done.
        engine: the engine.
        brokers: their addresses.
        patience: seconds that any one thing may take.
        other: name of the engine that goes on with its checkpoint.
    """

    def __init__(
        self, scenario: KafkaScenario, engine: Engine, brokers: str, patience: float, *, other: str
    ) -> None:
        from confluent_kafka.admin import AdminClient

        super().__init__(
            *(engine, ServeOptions(stop_timeout=patience), patience),
            interval=_INTERVAL,
            recovers=engine.capabilities().recovery,
        )
        self.other = other
        self._rules = scenario.rules
        self._brokers = brokers
        self._client: dict[str, Any] = {"bootstrap.servers": brokers, "log_level": 0}
        self._admin = AdminClient(self._client)
        name = f"wallaroo-conformance-{uuid.uuid4().hex[:12]}"
        self.topic, self._written = f"{name}-in", f"{name}-out"
        self.application = _application(brokers, self.topic, self._written, scenario.until)
        self._number = 0  # of records sent so far
        self._gone: dict[int, list[Message]] = {}  # that were read, and are deleted now

    def __enter__(self) -> Self:
        self.make(self.topic, _READ)
        self.make(self._written, _WRITTEN)
        return self

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "handle"):
            self.handle.kill()
        self._admin.delete_topics([self.topic, self._written])
        self._directory.cleanup()

    def make(self, topic: str, partitions: int) -> None:
        """Make a topic, and wait until it is there."""
        from confluent_kafka.cimpl import NewTopic

        # Records are of 1970: by their age brokers would delete them at once.
        new = NewTopic(topic, partitions, 1, config={"retention.ms": "-1"})
        self._admin.create_topics([new])[topic].result(self.patience)
        self._until(lambda: self._partitions(topic) == partitions, f"topic {topic} is there")

    def make_again(self) -> None:
        """Delete the topic that is read, and make another of its name."""
        self._admin.delete_topics([self.topic])[self.topic].result(self.patience)
        self._until(lambda: not self._partitions(self.topic), "the topic is gone")
        self.make(self.topic, _READ)

    def add_partition(self) -> None:
        """Let the topic that is read have one partition more."""
        from confluent_kafka.cimpl import NewPartitions

        wanted = self._partitions(self.topic) + 1
        changed = self._admin.create_partitions([NewPartitions(self.topic, wanted)])
        changed[self.topic].result(self.patience)
        self._until(lambda: self._partitions(self.topic) == wanted, "the partition is there")

    def delete_records(self, *, were_read: bool) -> None:
        """Remove all records, as retention does.

        Args:
            were_read: their outputs are there, and stay so.
        """
        from confluent_kafka import TopicPartition

        if were_read:
            self._gone = self._messages(self.topic)

        numbers = range(self._partitions(self.topic))
        ends = [TopicPartition(self.topic, number, -1) for number in numbers]  # -1: to the end
        for removed in self._admin.delete_records(ends).values():
            removed.result(self.patience)

    def send(self, count: int = _BATCH, *, commit: bool | None = None) -> None:
        """Send records, and tombstones; each letter stands in one partition.

        Args:
            count: how many.
            commit: commit them as a transaction, or abort it; `None`: without one.
        """
        from confluent_kafka import Producer

        own = {} if commit is None else {"transactional.id": f"{self.topic}-{self._number}"}
        producer = Producer({**self._client, **own})
        letters = _LETTERS + _ADDED * (self._partitions(self.topic) > _READ)
        if commit is not None:
            producer.init_transactions(self.patience)
            producer.begin_transaction()
        for number in range(self._number, self._number + count):
            letter = letters[number % len(letters)]
            place = _LETTERS.index(letter) % _READ if letter in _LETTERS else _READ
            value = None if number % 11 == 7 else f"{letter} {number} {number}"
            producer.produce(self.topic, value, letter, partition=place, timestamp=1_000 + number)
        self._number += count
        if producer.flush(self.patience):
            raise TimeoutError("the brokers have not taken what was sent")
        if commit is not None:
            finish = producer.commit_transaction if commit else producer.abort_transaction
            finish(self.patience)

    def delete_positions(self) -> None:
        """Have the brokers forget the positions of the topic that is written, as after a week."""
        from confluent_kafka import ConsumerGroupTopicPartitions

        groups = [one.group_id for one in self._admin.list_consumer_groups().result().valid]
        for group in groups:
            asked = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
            places = asked[group].result(self.patience).topic_partitions or []
            if any(place.topic == self._written for place in places):
                self._admin.delete_consumer_groups([group])[group].result(self.patience)

    def copied(self) -> Path:
        """Return a copy of the checkpoint."""
        self.note("the checkpoint is copied")
        return Path(shutil.copytree(self.checkpoint, self.checkpoint.with_name("copy")))

    def serve_before_brokers(self) -> None:
        """Serve while nobody reaches the brokers, and let them be reached once that is said."""
        with Door(self._brokers) as door:
            self.application = _application(door.address, self.topic, self._written, None)
            self.note(f"serve, with brokers at {door.address}, where nobody listens")
            told = _Told(door.address, door.open)
            logging.getLogger("wallaroo").addHandler(told)
            try:
                self.serve()
                self._until(told.said.is_set, "it is said that the brokers cannot be reached")
                self.delivered()
            finally:
                logging.getLogger("wallaroo").removeHandler(told)

    def refused_or_served(self, *words: str) -> bool:
        """Serve from the checkpoint, and return whether that is refused, with these words."""
        try:
            self.serve()
        except WallarooError as error:
            if missing := [word for word in words if word not in str(error)]:
                self.broken(self._rules, f"it is not said {', '.join(missing)}: {error}")
            return True
        return False

    def kill_and_restart(self) -> None:
        """Kill the engine, and start it again."""
        self.handle.kill()
        self.handle = self.handle.restart()

    def end(self, *, stop: bool = True) -> None:
        """Wait for the end of the run, in order."""
        self.ended(self._rules, 0, stop=stop)

    def delivered(self, *, exact: bool = False, repeated: bool = False) -> None:
        """Wait until readers of committed records see what the reference says, once.

        Args:
            exact: partition by partition in their order; else key by key.
            repeated: some may have come again.
        """
        expected = self._expected()
        count = sum(map(len, expected.values()))
        found: Mapping[int, Sequence[Any]] = {}

        def are_there() -> bool:
            nonlocal found
            found = {
                number: [(one.key(), one.value(), one.timestamp()[1]) for one in messages]
                for number, messages in self._messages(self._written).items()
            }
            if repeated:
                found = {number: [*dict.fromkeys(sent)] for number, sent in found.items()}
            return sum(map(len, found.values())) >= count

        with contextlib.suppress(TimeoutError):
            self._until(are_there, "outputs are there")
        wanted, given = (dict(one) if exact else _by_key(one) for one in (expected, found))
        for place in {**wanted, **given}:
            right, got = wanted.get(place, []), given.get(place, [])
            if got != right:
                pairs = enumerate(zip(right, got, strict=False))
                differing = [at for at, (one, other) in pairs if one != other]
                same = (differing or [min(len(right), len(got))])[0]
                self.broken(
                    self._rules,
                    f"expected {len(right)} outputs at {place!r}, and {len(got)} are there; behind "
                    f"the first {same} come {got[same : same + 2]!r:.200}, not "
                    f"{right[same : same + 2]!r:.200}",
                )

    def _expected(self) -> dict[int, list[Any]]:
        """Return what the reference sends, by partition."""
        records = [
            wallaroo.KafkaRecord(
                *(one.value(), one.key(), (), one.timestamp()[1] * 1_000_000, self.topic),
                *(number, one.offset() or 0),
            )
            for number, there in self._messages(self.topic).items()
            for one in [*self._gone.get(number, ()), *there]
        ]
        bounded = _application(self._brokers, self.topic, self._written, "end")
        log = input_log_of(bounded, {"in": records}, end=True)
        [sent] = load_engine("reference").run(Case(bounded, log)).outputs.values()
        expected: dict[int, list[Any]] = {number: [] for number in range(_WRITTEN)}
        for one in sent:
            place = partition_of(one.key, one.number, _WRITTEN)
            expected[place].append((one.key, one.value, one.timestamp))
        return expected

    def _messages(self, topic: str) -> dict[int, list[Message]]:
        """Return the committed messages of a topic, by partition, up to its end now."""
        from confluent_kafka import Consumer, TopicPartition

        own = {"group.id": topic, "enable.auto.commit": False, "enable.partition.eof": True}
        consumer = Consumer({**self._client, **own, "auto.offset.reset": "earliest"})
        found: dict[int, list[Message]] = {number: [] for number in range(self._partitions(topic))}
        consumer.assign([TopicPartition(topic, number, 0) for number in found])
        reading, end = set(found), time.monotonic() + self.patience
        while reading and time.monotonic() < end:
            for message in consumer.consume(1000, _POLLED):
                if message.error() is None:
                    found[message.partition() or 0].append(message)
                else:
                    reading.discard(message.partition() or 0)
        consumer.close()
        return found

    def _partitions(self, topic: str) -> int:
        """Return how many partitions a topic has; 0: it is not there."""
        there = self._admin.list_topics(timeout=self.patience).topics.get(topic)
        return 0 if there is None else len(there.partitions)

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        if not wait_until(holds, self.patience):
            raise TimeoutError(f"within {self.patience:g} s it did not come that {what}")


def _application(brokers: str, read: str, written: str, until: Any) -> Application:
    source = wallaroo.KafkaSourceConfig(
        read, brokers, triple, event_time=wallaroo.kafka_timestamp, until=until
    )
    texts: Any = RememberEach("texts", OwnState(Notebook, "texts", None))
    pipeline: Any = wallaroo.source("in", source).key_by(ByLetter("letters")).to(texts)
    sink = wallaroo.KafkaSinkConfig(written, brokers, keyed)
    return wallaroo.build_application("conformance", pipeline.to_sink(sink))


def _by_key(outputs: Mapping[int, Sequence[Any]]) -> dict[Any, Any]:
    found: dict[Any, list[Any]] = defaultdict(list)
    for number, sent in outputs.items():
        for one in sent:
            found[number, one[0]].append(one)
    return found


class Door(socketserver.ThreadingTCPServer):
    """An address at which brokers cannot be reached until it is `open`; then they are, from there.

    A client asks there who the brokers are, and goes on to the addresses that they say.

    Args:
        brokers: the address of one of them; of several, the first counts.
    """

    daemon_threads = True

    def __init__(self, brokers: str) -> None:
        host, _, port = brokers.partition(",")[0].rpartition(":")
        self.brokers = host, int(port)
        self._is_open = False
        super().__init__(("127.0.0.1", 0), _PassOn, bind_and_activate=False)
        self.server_bind()  # nobody else gets the port, and nobody listens
        self.address = f"127.0.0.1:{self.server_address[1]}"

    def __exit__(self, *_: object) -> None:
        if self._is_open:
            self.shutdown()
        self.server_close()

    def open(self) -> None:
        """Let everybody in."""
        self._is_open = True
        self.server_activate()
        threading.Thread(target=self.serve_forever, name="door", daemon=True).start()


class _PassOn(socketserver.BaseRequestHandler):
    """Passes on what comes from either side, until one of them ends."""

    server: Door

    @override
    def handle(self) -> None:
        with contextlib.suppress(OSError), socket.create_connection(self.server.brokers) as there:
            other_side = {self.request: there, there: self.request}
            while True:
                for came in select.select([*other_side], [], [])[0]:
                    if not (some := came.recv(65_536)):
                        return
                    other_side[came].sendall(some)


class _Told(logging.Handler):
    """Calls a function once, when something is logged that contains some words.

    Attributes:
        said: whether it was.
    """

    def __init__(self, words: str, call: Callable[[], None]) -> None:
        super().__init__()
        self._words = words
        self._call = call
        self.said = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if self._words in record.getMessage() and not self.said.is_set():
            self.said.set()
            self._call()
