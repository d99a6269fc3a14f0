"""A client that sends outputs to a topic, and with transactions commits a position with them.

Outputs and position are committed together or not at all. Whoever takes the transactional id over
shuts out every client that had it before, and then reads a position that stands (kafka-15).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from wallaroo.errors import WallarooError
from wallaroo.kafka_records import Produced, partition_of
from wallaroo.text import escaped
from wallaroo.transport.identity import RESTORE, CheckpointError
from wallaroo.transport.kafka.cluster import (
    BrokerError,
    BrokersAwayError,
    client,
    described,
    longest_transaction,
)
from wallaroo.transport.kafka.destination import Destination

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

_WAIT = 0.05  # seconds between looks whether to go on
_ANSWER = 30.0  # seconds that a broker has to answer before it is asked again

MOVED = "moved"
"""The note of a checkpoint whose outputs go on with another one (`wallaroo.transport.kafka.moved`).
"""

_log = logging.getLogger("wallaroo.kafka")


class ShutOutError(WallarooError):
    """A later run of the same checkpoint has begun, and this one must end (kafka-16)."""


class Place(NamedTuple):
    """Where positions are committed.

    Args:
        group: a group, which has no members.
        partition: a partition of the topic that outputs go to.
    """

    group: str
    partition: int


class Committed(NamedTuple):
    """What is committed with outputs.

    Args:
        number: a number, 0 or more.
        note: a short text.
    """

    number: int
    note: str = ""


class OutputProducer:
    """Sends outputs; its methods block, and belong to one thread.

    Args:
        there: where they go; with an id, in transactions.
        suffix: what follows that id in the transactional id.
        interval: seconds that a transaction stays open, usually.
        going_on: whether to wait further; it is asked often.

    Attributes:
        client: the producer of confluent-kafka.

    Raises:
        BrokerError: an option is not one of the client's.
    """

    def __init__(
        self,
        there: Destination,
        suffix: str = "",
        *,
        interval: float = 0.0,
        going_on: Callable[[], bool] = lambda: True,
    ) -> None:
        self._name = there.name
        self._kafka = client()
        self._cluster = there.cluster()
        self._topic = there.topic
        self._partitions = there.partitions
        self._going_on = going_on
        self._once = there.id is not None
        transactional_id = None if there.id is None else there.id + suffix
        self._make = partial(self._cluster.producer, transactional_id, interval=interval)
        self._longest = longest_transaction(interval)
        self._refused: list[KafkaError] = []
        self._began = 0.0  # when the transaction that is open did
        self._committed: Committed | None = None
        self.client: Producer = self._make()

    def take_over(self, place: Place) -> Committed | None:
        """Shut out every earlier client of the transactional id, and return what it has committed.

        Call it once, before the first transaction; if brokers were away, make another client.

        Raises:
            BrokerError: the brokers do not answer.
            ShutOutError: another checkpoint was made of this one, for another engine (scale-2).
        """
        kafka, self._place = self._kafka, place
        try:
            self.client.init_transactions(_ANSWER)
            consumer = self._cluster.consumer(place.group, committed_only=True)
            asked = kafka.TopicPartition(self._topic, place.partition)
            (committed,) = consumer.committed([asked], _ANSWER)
            self._group = consumer.consumer_group_metadata()
            consumer.close()
        except kafka.KafkaException as error:
            raise self._cluster.error(error.args[0], f"topic {escaped(self._topic)}") from error
        if committed.error is not None:  # else it would look as if nothing were committed
            raise self._cluster.error(committed.error, f"group {escaped(place.group)}")
        if committed.offset >= 0:
            self._committed = Committed(committed.offset, committed.metadata or "")
            if self._committed.note == MOVED:
                raise ShutOutError(
                    f"{self._name}: a checkpoint for another engine was made of this one, and the "
                    "outputs go on there. Run that one, or write it anew for this engine: wallaroo "
                    "checkpoint THAT --to ENGINE --app APP -o NEW (scale-2)"
                )
        return self._committed

    def begin(self) -> None:
        """Begin a transaction."""
        self._began = time.monotonic()
        self.client.begin_transaction()

    def send(self, outputs: Sequence[Produced]) -> None:
        """Give outputs to the client, which sends them by itself."""
        produce, topic, partitions = self.client.produce, self._topic, self._partitions
        delivered = None if self._once else self._judge
        for value, key, chosen, headers, timestamp, number in outputs:
            partition = partition_of(key, number, partitions) if chosen is None else chosen
            while True:
                try:
                    if headers:
                        pairs: list[Any] = list(headers)
                        produce(topic, value, key, partition, delivered, None, timestamp, pairs)
                    else:
                        produce(topic, value, key, partition, delivered, None, timestamp)
                except self._kafka.KafkaException as error:
                    failed = {self._kafka.KafkaError._STATE, self._kafka.KafkaError._FATAL}
                    if self._once and error.args[0].code() in failed:
                        return  # the transaction has failed, and `commit` is told why
                    raise
                except BufferError:  # the client's own queue is full
                    self.client.poll(_WAIT)
                    if not self._going_on():
                        return
                else:
                    break

    def deliver(self, outputs: Sequence[Produced]) -> None:
        """Send outputs without a transaction, and return once all are acknowledged.

        Raises:
            WallarooError: the brokers refuse one.
        """
        self.send(outputs)
        self.flush()

    def deliver_once(self, outputs: Sequence[Produced], position: Committed) -> None:
        """Send outputs in a transaction, and commit it with a position.

        Raises:
            ShutOutError: another client has taken the transactional id over.
            BrokerError: the brokers refuse.
        """
        try:
            self.begin()
            self.send(outputs)
        except self._kafka.KafkaException as error:
            raise self.wrong(error.args[0]) from error
        self.commit(outputs, position)

    def commit(self, outputs: Sequence[Produced], position: Committed) -> bool:
        """Commit the open transaction, which has these outputs, with a position.

        What the brokers abort is sent again; a step that they did not answer is taken again.

        Returns:
            Whether it did: not if it is not to go on.

        Raises:
            ShutOutError: another client has taken the transactional id over.
            BrokerError: the brokers refuse.
        """
        kafka = self._kafka
        number, note = position
        place = kafka.TopicPartition(self._topic, self._place.partition, number, metadata=note)
        commit: list[Callable[[], object]] = [
            self.flush,
            lambda: self.client.send_offsets_to_transaction([place], self._group, _ANSWER),
            lambda: self.client.commit_transaction(_ANSWER),
        ]
        again = [self.begin, lambda: self.send(outputs), *commit]
        steps = commit
        while steps and self._going_on() and self._committed != position:
            try:
                steps[0]()
            except BrokersAwayError as error:
                _log.warning("%s; trying again", error)
            except kafka.KafkaException as error:
                trouble: KafkaError = error.args[0]
                with contextlib.suppress(BrokersAwayError):
                    self._cluster.topic(self._topic)  # one that was deleted is never there again
                if self._is_still_ours(trouble):
                    steps = [lambda: self._take_back(position), *again]
                elif (
                    trouble.fatal()
                    or not (trouble.retriable() or trouble.txn_requires_abort())
                    or self._is_for_good(trouble)
                ):
                    raise self.wrong(trouble) from error
                elif trouble.txn_requires_abort() or steps[0] is commit[1]:
                    # A position that was not answered in time hangs if it is sent again.
                    steps = [lambda: self.client.abort_transaction(_ANSWER), *again]
                _log.warning("%s: %s; trying again", self._name, described(trouble))
            else:
                steps = steps[1:]
        if not steps:
            self._committed = position
        return self._committed == position

    def flush(self) -> bool:
        """Wait until the brokers have the outputs, so that they are there to take the position.

        Returns:
            Whether they have: not if it is not to go on.

        Raises:
            WallarooError: they refuse one that stands in no transaction.
        """
        while (waiting := self.client.flush(_WAIT)) and not self._refused and self._going_on():
            pass
        if self._refused:
            raise self.wrong(self._refused[0])
        return not waiting

    def _judge(self, error: KafkaError | None, _message: Message) -> None:
        """Take note if an output cannot be delivered; that one was is not said to anybody."""
        if error is not None:
            self._refused.append(error)

    def wrong(self, error: KafkaError) -> WallarooError:
        """Return the client's error in plain words."""
        if self._is_fenced(error):
            return shut_out(self._name)
        return self._cluster.error(error, f"topic {escaped(self._topic)}")

    def _is_fenced(self, error: KafkaError) -> bool:
        fenced = self._kafka.KafkaError
        return error.code() in {
            fenced._FENCED,
            fenced.INVALID_PRODUCER_EPOCH,
            fenced.PRODUCER_FENCED,
        }

    def _is_for_good(self, error: KafkaError) -> bool:
        """Whether it comes again, although the client may abort the transaction and go on."""
        code = self._kafka.KafkaError
        return error.code() in {
            code.TOPIC_AUTHORIZATION_FAILED,
            code.GROUP_AUTHORIZATION_FAILED,
            code.CLUSTER_AUTHORIZATION_FAILED,
            code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            code.MSG_SIZE_TOO_LARGE,
        }

    def _is_still_ours(self, error: KafkaError) -> bool:
        """Whether another client of ours may go on, although this one can do no more.

        Brokers that were away for long have aborted the transaction, and say the same then as if
        somebody had taken the transactional id over. If they had not heard of the transaction,
        there is nothing to abort, and they say that its state is another one: they say so only
        to the client that has the id.
        """
        too_long = self._is_fenced(error) and time.monotonic() - self._began >= self._longest
        return too_long or error.code() == self._kafka.KafkaError.INVALID_TXN_STATE

    def _take_back(self, position: Committed) -> None:
        """Go on with a new client, if nobody else has committed anything meanwhile.

        Args:
            position: what was to be committed, and may be.
        """
        self.client, before = self._make(), self._committed
        if self.take_over(self._place) not in (before, position):
            raise shut_out(self._name)


def shut_out(name: str) -> ShutOutError:
    """Return what is said of a sink whose outputs another run sends now."""
    return ShutOutError(
        f"{name}: another run of this checkpoint has begun and has shut this one out; its outputs "
        "go on there (kafka-16)"
    )


def forgotten(there: Destination, said: str) -> BrokerError:
    """Return why a start is refused if brokers have no position of outputs that may be there."""
    return BrokerError(
        f"{there.name}: the brokers at {there.brokers} have no position for {there.id}, and "
        f"{said}: they forget groups that were idle for long (offsets.retention.minutes), or these "
        "are other brokers. The outputs that were made after the checkpoint's last state may be "
        "there or not. To send them, perhaps again, run with --accept-repeats (kafka-16)"
    )


def older(there: Destination, number: int, end: int) -> CheckpointError:
    """Return why a start is refused if brokers have outputs that the log has no records for.

    Args:
        there: where outputs go.
        number: of the record that caused the last of them.
        end: number of the log's next record.
    """
    return CheckpointError(
        f"{there.name}: the brokers at {there.brokers} have outputs of record {number}, and the "
        f"input log ends before record {end}: the checkpoint is older than its outputs. {RESTORE}"
    )
