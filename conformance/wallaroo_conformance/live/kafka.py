"""Rules that only runs against Kafka's brokers can keep or break: a table of runs.

Each run has two topics of its own. What must be in the second one is what the reference says of the
records in the first: byte by byte if the read is bounded, else key by key, since then the engine
chooses between partitions, and each key stands in one partition.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import wallaroo
from wallaroo.components import OwnState
from wallaroo.engine import Case, Engine, ServeOptions, load_engine
from wallaroo.kafka_records import partition_of
from wallaroo.testing.input import input_log_of
from wallaroo.topology import Application
from wallaroo_conformance.cases.operators.states import Notebook
from wallaroo_conformance.cases.operators.topics import keyed
from wallaroo_conformance.cases.operators.triples import ByLetter, RememberEach, triple
from wallaroo_conformance.judge.law import Law, LawResult
from wallaroo_conformance.judge.results import Failure, fits
from wallaroo_conformance.live.served import OTHER, BrokenRuleError, ServedRun, home_of, lacking
from wallaroo_conformance.search.running import crash

if TYPE_CHECKING:
    from confluent_kafka import Message

_LAWS = {
    "kafka-1": "whoever has the log and the topic has the same sequence, after kills and restarts, "
    "too; and a topic that lacks what comes next, or was made again, is refused by name",
    "kafka-6": "a partition that is added to a topic is read from its first record on",
    "kafka-10": "a bounded read gives the same bytes as without a broker",
    "kafka-11": "records of a transaction that is taken back are not read",
    "kafka-15": "after kills and restarts readers of committed records see each output once",
    "scale-2": "with another number of partitions, and on another engine, readers of committed "
    "records see each output once, and a run from the old checkpoint is refused",
}
KAFKA_LAWS: Mapping[str, Law] = {rule: Law(rule, "brokers", says) for rule, says in _LAWS.items()}
"""What must hold against brokers: one law for each rule."""

_INTERVAL = 60.0  # seconds between checkpoints: a kill comes between outputs and the next one
_KILLS = 4
_BATCH = 60  # records that are sent at once
_LETTERS, _ADDED = "abcde", "f"
_READ, _WRITTEN = 2, 3  # partitions of the two topics
_POLLED = 0.1  # seconds between two looks


class KafkaRun(ServedRun):
    """Two topics, and an application that an engine serves from one to the other.

    Args:
        engine: the engine.
        scenario: what it is about.
        brokers: their addresses.
        patience: seconds that any one thing may take.
        other: name of the engine that goes on with its checkpoint.
    """

    def __init__(
        self, engine: Engine, scenario: _Scenario, brokers: str, patience: float, other: str
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

    def delete_records(self) -> None:
        """Remove all records, as retention does."""
        from confluent_kafka import TopicPartition

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

    def kill_and_restart(self) -> None:
        """Kill the engine, and start it again."""
        self.handle.kill()
        self.handle = self.handle.restart()

    def end(self, *, stop: bool = True) -> None:
        """Wait for the end of the run, in order."""
        self.ended(self._rules, 0, stop=stop)

    def delivered(self, *, exact: bool = False) -> None:
        """Wait until readers of committed records see what the reference says, once.

        Args:
            exact: partition by partition in their order; else key by key.
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
            for number, messages in self._messages(self.topic).items()
            for one in messages
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
        end = time.monotonic() + self.patience
        while not holds():
            if time.monotonic() > end:
                raise TimeoutError(f"within {self.patience:g} s it did not come that {what}")
            time.sleep(_POLLED)


def _application(brokers: str, read: str, written: str, until: Any) -> Application:
    source = wallaroo.KafkaSourceConfig(
        read, brokers, triple, event_time=wallaroo.kafka_timestamp, until=until
    )
    texts: Any = RememberEach("texts", OwnState(Notebook, "texts", None))
    pipeline: Any = wallaroo.source("in", source).key_by(ByLetter("letters")).to(texts)
    sink = wallaroo.KafkaSinkConfig(written, brokers, keyed)
    return wallaroo.build_application("conformance", pipeline.to_sink(sink))


# -- the table -------------------------------------------------------------------------------------


def _bounded(run: KafkaRun) -> None:
    run.send(commit=True)
    run.send(commit=False)
    run.send()
    run.serve()
    run.end(stop=False)
    run.delivered(exact=True)


def _killed(run: KafkaRun) -> None:
    run.send(commit=True)
    run.serve()
    for number in range(_KILLS):
        run.send(commit=number % 2 == 0)
        if number % 2:
            run.delivered()
        run.kill_and_restart()
    run.send()
    run.delivered()
    run.end()
    run.delivered()


def _grown(run: KafkaRun) -> None:
    run.send()
    run.serve()
    run.delivered()
    run.add_partition()
    run.send()
    run.delivered()
    run.end()


def _cut(run: KafkaRun) -> None:
    _round(run)
    run.send()
    run.delete_records()
    run.refused("kafka-1", run.checkpoint, run.topic, "partition", "offset")


def _made_again(run: KafkaRun) -> None:
    _round(run)
    run.make_again()
    run.refused("kafka-1", run.checkpoint, run.topic)


def _moved(run: KafkaRun) -> None:
    _round(run)
    checkpoint, home = run.checkpoint, home_of(run.checkpoint)
    for name, engine, partitions in (("moved", run.other, 3), ("moved again", home, 1)):
        checkpoint = run.moved("scale-2", checkpoint, name, engine, partitions)
        run.send()
        run.serve_from(checkpoint, None if engine == home else load_engine(engine))
        run.delivered()
        run.end()
    run.refused("scale-2", run.checkpoint, "in/0")
    run.delivered()


def _round(run: KafkaRun) -> None:
    run.send()
    run.serve()
    run.delivered()
    run.end()


@dataclass(frozen=True)
class _Scenario:
    """A run.

    Args:
        rules: what it is about, the most particular first.
        script: what is done.
        until: where the source ends.
        recovers: the engine must recover.
    """

    rules: tuple[str, ...]
    script: Callable[[KafkaRun], None]
    until: str | None = None
    recovers: bool = True


_SCENARIOS = (
    _Scenario(("kafka-11", "kafka-10"), _bounded, "end", recovers=False),
    _Scenario(("kafka-6",), _grown, recovers=False),
    _Scenario(("kafka-15", "kafka-1"), _killed),
    _Scenario(("kafka-1",), _cut),
    _Scenario(("kafka-1",), _made_again),
    _Scenario(("scale-2",), _moved),
)


def check_kafka(
    engine: Engine, rules: str, brokers: str, patience: float, *, other: str = OTHER
) -> tuple[list[LawResult], list[Failure]]:
    """Check the rules that fit the pattern `rules` against brokers; the first failure ends it.

    Raises:
        MissingExtraError: Kafka's client is not installed.
    """
    count: Counter[str] = Counter()
    failures: list[Failure] = []
    for scenario in _SCENARIOS:
        about = [KAFKA_LAWS[rule] for rule in scenario.rules if fits(rule, rules)]
        if not about or lacking(engine, scenario.rules, recovers=scenario.recovers):
            continue
        try:
            with KafkaRun(engine, scenario, brokers, patience, other) as run:
                scenario.script(run)
        except Exception as error:  # noqa: BLE001 - what an engine raises is its answer
            text = error.text if isinstance(error, BrokenRuleError) else crash(error).error
            failures.append(Failure(tuple(about), None, text=text))
            break
        count.update([law.rule for law in about])
    kept = [law.result("kept", count[law.rule]) for law in KAFKA_LAWS.values() if count[law.rule]]
    return [*kept, *[failure.laws[0].result("broken", 0) for failure in failures]], failures


def _by_key(outputs: Mapping[int, Sequence[Any]]) -> dict[Any, Any]:
    found: dict[Any, list[Any]] = defaultdict(list)
    for number, sent in outputs.items():
        for one in sent:
            found[number, one[0]].append(one)
    return found
