"""A cluster of brokers: its clients, what a topic looks like now, and its errors in plain words.

The clients are those of confluent-kafka, the extra ``[kafka]``, which is imported only here and
only when a run begins.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from wallaroo.errors import ExtraMissingError, WallarooError
from wallaroo.text import escaped
from wallaroo.transport.rate_limit import RateLimited

if TYPE_CHECKING:
    from types import ModuleType

    from confluent_kafka import Consumer, KafkaError, Producer

_ANSWER = 10.0  # seconds that a broker has to answer a question about a topic
_TRANSACTION = 60.0  # seconds that a transaction may be open, at least
_LOG_LEVEL = 2  # of the client's own log, as syslog counts: what matters reaches us as an error

_log = logging.getLogger("wallaroo.kafka")


def longest_transaction(interval: float) -> float:
    """Return after how many seconds brokers abort a transaction that usually takes `interval`."""
    return max(_TRANSACTION, 20 * interval)


class BrokerError(WallarooError):
    """A cluster cannot be used as asked: it cannot be reached, it refuses, a topic is not there."""


class BrokersAwayError(BrokerError):
    """The brokers cannot be reached now."""


@dataclass(frozen=True)
class Topic:
    """A topic as it is now.

    Args:
        name: its name.
        id: what tells it from another one made later under the same name (kafka-5).
        partitions: numbers of its partitions, in order.
    """

    name: str
    id: str
    partitions: tuple[int, ...]


def client() -> ModuleType:
    """Return the module `confluent_kafka`.

    Raises:
        ExtraMissingError: it is not installed.
    """
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ModuleNotFoundError:
        raise ExtraMissingError(
            "Kafka needs the package confluent-kafka, which is not installed; try: "
            "pip install 'wallaroo-streams[kafka]'"
        ) from None
    return confluent_kafka


class Cluster:
    """The brokers of a source or sink. Its methods may be called in any thread; they block.

    Args:
        brokers: ``HOST:PORT``, several separated by commas.
        options: further options of the client, such as those of its security (kafka-17). They are
            never shown.
        name: of the source or sink, for messages.

    Raises:
        ExtraMissingError: confluent-kafka is not installed.
    """

    def __init__(self, brokers: str, options: Mapping[str, object], name: str) -> None:
        self._kafka = client()
        self.brokers = brokers
        self.name = name
        self._options = dict(options)
        self._unanswered: list[tuple[Sequence[Future[Any]], Any]] = []  # with their client
        self._troubles = RateLimited(_log, burst=1, interval=30.0)

    def consumer(self, group: str, *, committed_only: bool, ahead: int = 16_384) -> Consumer:
        """Return a consumer that reads what it is assigned, and commits nothing by itself.

        Args:
            group: names the group in which positions are committed; there is no membership in it.
            committed_only: leave out records of transactions that are open or aborted (kafka-11).
            ahead: KiB that it reads ahead of what is taken.

        Raises:
            BrokerError: an option is not one of the client's.
        """
        made: Consumer = self._made(
            "Consumer",
            {
                "group.id": group,
                "group.protocol": "classic",  # the other one refuses the time for commits below
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",  # an offset that is gone is refused (kafka-5)
                "isolation.level": "read_committed" if committed_only else "read_uncommitted",
            },
            {
                "fetch.wait.max.ms": 100,
                "queued.max.messages.kbytes": ahead,
                # By default a client that has read so far ahead asks for more a second later,
                # though all of it may be taken long before.
                "fetch.queue.backoff.ms": 10,
                # So long a commit waits for a broker that is away, and a close for the commit.
                "session.timeout.ms": 3_000,
            },
        )
        return made

    def producer(self, transactional_id: str | None, *, interval: float) -> Producer:
        """Return a producer whose records come once each, in order, however often it sends them.

        Args:
            transactional_id: of its transactions; `None`: it has none.
            interval: seconds that a transaction stays open, usually.

        Raises:
            BrokerError: an option is not one of the client's.
        """
        options: dict[str, Any] = {"enable.idempotence": True, "acks": "all"}
        if transactional_id is None:
            options["message.timeout.ms"] = 0  # a broker that is away is waited for (kafka-12)
            options["delivery.report.only.error"] = True  # a call for each output costs as much
        else:
            options["transactional.id"] = transactional_id
            # Brokers that were all away are not forgotten: a position that is on its way to one of
            # them would never be answered (librdkafka's issue 5511).
            options["metadata.recovery.strategy"] = "none"
            options["transaction.timeout.ms"] = int(1000 * longest_transaction(interval))
        made: Producer = self._made("Producer", options, {"linger.ms": 5})
        return made

    def topic(self, name: str) -> Topic:
        """Return what a topic looks like now.

        Raises:
            BrokerError: the brokers do not answer, or have no such topic.
        """
        kafka = self._kafka
        try:
            asked = kafka.TopicCollection([name])
            topic = self._admin.describe_topics(asked, request_timeout=_ANSWER)[name].result()
        except kafka.KafkaException as error:
            raise self.error(error.args[0], f"topic {escaped(name)}") from error
        return Topic(name, str(topic.topic_id), tuple(sorted(part.id for part in topic.partitions)))

    def offsets(
        self, topic: str, partitions: Collection[int], at: str | int, *, committed_only: bool = True
    ) -> dict[int, int]:
        """Return an offset of each partition.

        Args:
            topic: its name.
            partitions: which ones.
            at: ``"earliest"`` or ``"latest"``, or a time in nanoseconds since 1970: the first
                record with that timestamp or a later one, and the end if there is none.
            committed_only: the end is that of committed records.

        Raises:
            BrokerError: the brokers do not answer.
        """
        asked = self.asked_offsets(topic, partitions, at, committed_only=committed_only)
        try:
            found = {partition: answer.result().offset for partition, answer in asked.items()}
        except self._kafka.KafkaException as error:
            raise self.error(error.args[0], f"topic {escaped(topic)}") from error
        behind = [partition for partition, offset in found.items() if offset < 0]
        if behind:
            found |= self.offsets(topic, behind, "latest", committed_only=committed_only)
        return found

    def asked_offsets(
        self, topic: str, partitions: Collection[int], at: str | int, *, committed_only: bool
    ) -> dict[int, Future[Any]]:
        """Ask for an offset of each partition, as `offsets` does, and return the answers to come.

        Each has an `offset`, below 0 if there is none, or the client's error.
        """
        kafka, spec = self._kafka, self._kafka.admin.OffsetSpec
        wanted = {"earliest": spec.earliest, "latest": spec.latest}
        made = wanted[at]() if isinstance(at, str) else spec.for_timestamp(-(-at // 1_000_000))
        level = kafka.IsolationLevel
        asked = self._admin.list_offsets(
            {kafka.TopicPartition(topic, partition): made for partition in partitions},
            isolation_level=level.READ_COMMITTED if committed_only else level.READ_UNCOMMITTED,
            request_timeout=_ANSWER,
        )
        # A client that is dropped answers no more: `error` drops it, perhaps for another question.
        self._unanswered = [
            (answers, admin)
            for answers, admin in self._unanswered
            if not all(answer.done() for answer in answers)
        ]
        self._unanswered.append((list(asked.values()), self._admin))
        return {place.partition: answer for place, answer in asked.items()}

    def error(self, error: KafkaError, where: str) -> BrokerError:
        """Return the client's error in plain words.

        Args:
            error: what the client said.
            where: about what, such as ``topic 'a'``.
        """
        code, kafka = error.code(), self._kafka.KafkaError
        away = {kafka._TRANSPORT, kafka._TIMED_OUT, kafka._ALL_BROKERS_DOWN}
        # A broker that has just begun knows its topics, groups and transactions a little later.
        away |= {kafka.NOT_COORDINATOR, kafka.COORDINATOR_NOT_AVAILABLE}
        away |= {kafka.COORDINATOR_LOAD_IN_PROGRESS, kafka.LEADER_NOT_AVAILABLE}
        away |= {kafka.REQUEST_TIMED_OUT, kafka.NETWORK_EXCEPTION}
        # A partition has another leader, or none yet, or one that does not know its end yet.
        away |= {kafka.FENCED_LEADER_EPOCH, kafka.UNKNOWN_LEADER_EPOCH, kafka._NOENT}
        away |= {kafka.NOT_LEADER_FOR_PARTITION, kafka.REPLICA_NOT_AVAILABLE}
        away |= {kafka.OFFSET_NOT_AVAILABLE, kafka.KAFKA_STORAGE_ERROR}
        if code in away:  # a client of topics would ask the leader that it remembers, for ever
            self.__dict__.pop("_admin", None)
        made = BrokersAwayError if code in away or error.retriable() else BrokerError
        return made(f"{self.name}: {where} at {self.brokers}: {described(error)}")

    @cached_property
    def _admin(self) -> Any:
        return self._made("AdminClient")

    def _made(
        self,
        kind: str,
        ours: Mapping[str, object] = MappingProxyType({}),
        usual: Mapping[str, object] = MappingProxyType({}),
    ) -> Any:
        """Return a client; `ours` must be so, `usual` may be said otherwise."""
        kafka = self._kafka
        make = kafka.admin.AdminClient if kind == "AdminClient" else getattr(kafka, kind)
        options = {
            "bootstrap.servers": self.brokers,
            "log_level": _LOG_LEVEL,
            "error_cb": self.trouble,
            **usual,
            **self._options,
            **ours,
        }
        try:
            return make(options)
        except (kafka.KafkaException, TypeError, ValueError) as error:
            said = error.args[0]
            text = said.str() if isinstance(said, kafka.KafkaError) else str(said)
            raise BrokerError(f"{self.name}: the client's options: {text}") from error

    def trouble(self, error: KafkaError) -> None:
        """Say that brokers cannot be reached; the client tries again by itself (kafka-12)."""
        self._troubles.log(
            logging.WARNING,
            error.code(),
            "%s: %s: %s; trying again",
            self.name,
            self.brokers,
            described(error),
        )


def described(error: KafkaError) -> str:
    """Return what a client's error says, made safe to be shown."""
    return escaped(error.str())
