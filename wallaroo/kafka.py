"""Kafka sources and sinks: how an application says what is read and where outputs go.

Only the standard library is needed here; a run needs the client (`pip install
'wallaroo-streams[kafka]'`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, Literal, get_args

from wallaroo import kinds
from wallaroo.checks import checked_at
from wallaroo.components import Encoder, EventTime, KafkaDecoder, encoder_of, kafka_decoder_of
from wallaroo.config import set_time
from wallaroo.errors import WallarooParameterError
from wallaroo.kafka_arguments import (
    LOG_LEVELS,
    MAX_MESSAGE_SIZE,
    SIZES,
    Broker,
    Brokers,
    Delivery,
    IsolationLevel,
    Start,
    broker_list,
    described,
    is_log_level,
    log_level_of,
    named_arguments,
    number_of,
    partition_list,
    start_of,
    topic_name,
    without_name,
)
from wallaroo.kafka_options import ClientOptions
from wallaroo.kafka_records import PARTITION_END

_ENVELOPE = 20_000  # bytes of a record besides the output: what the client adds, a trace's headers


@dataclass(frozen=True, init=False)
class KafkaSourceConfig(Generic[kinds.Message]):
    """The records of a Kafka topic (kafka-1).

    Written as ``KafkaSourceConfig(topic, brokers, decoder)``, or as published applications have it,
    ``KafkaSourceConfig(topic, brokers, log_level, decoder)``; a name may come first, which has no
    use here.

    Args:
        topic: the topic.
        brokers: ``"HOST:PORT,HOST:PORT"``, or a list of such texts or of pairs (host, port).
        log_level: what the client itself logs, to standard error: ``Fine``, ``Info``, ``Warn`` or
            ``Error``.
        decoder: gets a record's value, or, made by ``@wallaroo.kafka_decoder``, the record
            (kafka-7).
        partitions: which partitions are read; `None`: all (kafka-1).
        start: where a new run begins: ``"earliest"``, ``"latest"``, a time (an aware `datetime`,
            or nanoseconds since 1970), or offsets by partition (kafka-4).
        until: ``"end"``: read to the ends that the partitions have at the start (kafka-10).
        event_time: as for `TCPSourceConfig`, or `wallaroo.kafka_timestamp` (kafka-8).
        idle_after: as for `TCPSourceConfig`; it counts for each partition (kafka-9).
        max_ahead: as for `TCPSourceConfig`.
        group: positions are committed there, for tools that show lag; never read (kafka-3).
        isolation_level: ``"read_committed"`` or ``"read_uncommitted"`` (kafka-11).
        kafka: further options of the client, or the path of a file of them (kafka-17).

    Raises:
        WallarooParameterError: an argument has a wrong type or value.
    """

    topic: str
    brokers: tuple[Broker, ...]
    decoder: KafkaDecoder
    log_level: str
    partitions: tuple[int, ...] | None
    start: Start
    until: Literal["end"] | None
    event_time: EventTime | None
    idle_after: int | None
    max_ahead: int | None
    group: str | None
    isolation_level: IsolationLevel
    kafka: ClientOptions

    def __init__(
        self,
        *given: str | Brokers | kinds.AnyKafkaDecoder[kinds.Message],
        log_level: str = "Warn",
        partitions: Sequence[int] | None = None,
        start: str | int | datetime | Mapping[int, int] = "earliest",
        until: Literal["end"] | None = None,
        event_time: Callable[[Any], int | datetime] | None = None,
        idle_after: int | None = None,
        max_ahead: int | None = None,
        group: str | None = None,
        isolation_level: IsolationLevel = "read_committed",
        kafka: Mapping[str, str | int | float | bool] | str | Path | None = None,
        topic: str | None = None,
        brokers: Brokers | None = None,
        decoder: kinds.AnyKafkaDecoder[kinds.Message] | None = None,
    ) -> None:
        what = "KafkaSourceConfig"
        arguments = without_name(given)
        names = ("topic", "brokers", *("log_level",) * is_log_level(arguments), "decoder")
        said = named_arguments(
            what, arguments, names, topic=topic, brokers=brokers, decoder=decoder
        )
        if until not in (None, "end"):
            raise WallarooParameterError(f'{what}: until is "end" or None, not {until!r:.60}')
        if isolation_level not in get_args(IsolationLevel):
            raise WallarooParameterError(
                f"{what}: isolation_level is {' or '.join(get_args(IsolationLevel))}, not "
                f"{isolation_level!r:.60}"
            )
        if group is not None and (not isinstance(group, str) or not group):
            raise WallarooParameterError(f"{what}: group is a name, not {group!r:.60}")
        level = log_level_of(what, said.get("log_level", log_level))
        _set(
            self,
            topic=topic_name(what, said["topic"]),
            brokers=broker_list(what, said["brokers"]),
            decoder=checked_at(what, kafka_decoder_of, said["decoder"]),
            log_level=level,
            partitions=partition_list(what, partitions),
            start=start_of(what, start),
            until=until,
            group=group,
            isolation_level=isolation_level,
            kafka=ClientOptions(what, kafka, {"log_level": LOG_LEVELS[level.lower()]}),
        )
        set_time(self, what, event_time, idle_after, max_ahead, of_kafka=True)

    @property
    def address(self) -> str:
        """Topic and brokers, for people."""
        return described(self.topic, self.brokers)

    @property
    def committed_only(self) -> bool:
        """Whether only records of transactions that were committed are read (kafka-11)."""
        return self.isolation_level == "read_committed"

    @property
    def whole(self) -> bool:
        """Whether engines need whole records, and not their values alone."""
        return self.decoder.whole or (self.event_time is not None and self.event_time.of_record)


@dataclass(frozen=True, init=False)
class KafkaSinkConfig(Generic[kinds.Taken]):
    """Outputs that go to a Kafka topic (kafka-13).

    Written as ``KafkaSinkConfig(topic, brokers, encoder)``, or as published applications have it,
    ``KafkaSinkConfig(topic, brokers, log_level, max_produce_buffer_ms, max_message_size,
    encoder)``.

    Args:
        topic: the topic.
        brokers: as for `KafkaSourceConfig`.
        log_level: as for `KafkaSourceConfig`.
        max_produce_buffer_ms: milliseconds for which the client collects outputs before it sends
            them; 0: a few.
        max_message_size: bytes of value, key and headers of the largest output; a larger one is a
            dead letter. Brokers take a little more than a million, unless told otherwise.
        encoder: returns a value, ``(value, key)``, ``(value, key, partition)`` or a `KafkaOutput`.
        delivery: ``"exactly-once"`` or ``"at-least-once"``; `None`: exactly once if the run has a
            checkpoint (kafka-15).
        partitions: how many partitions the topic has; `None`: that is asked at the first start.
        kafka: as for `KafkaSourceConfig`.

    Raises:
        WallarooParameterError: an argument has a wrong type or value.
    """

    topic: str
    brokers: tuple[Broker, ...]
    encoder: Encoder
    log_level: str
    max_produce_buffer_ms: int
    max_message_size: int
    delivery: Delivery | None
    partitions: int | None
    kafka: ClientOptions

    def __init__(
        self,
        *given: str | int | Brokers | kinds.AnyKafkaEncoder[kinds.Taken],
        log_level: str = "Warn",
        max_produce_buffer_ms: int = 0,
        max_message_size: int = MAX_MESSAGE_SIZE,
        delivery: Delivery | None = None,
        partitions: int | None = None,
        kafka: Mapping[str, str | int | float | bool] | str | Path | None = None,
        topic: str | None = None,
        brokers: Brokers | None = None,
        encoder: kinds.AnyKafkaEncoder[kinds.Taken] | None = None,
    ) -> None:
        what = "KafkaSinkConfig"
        published = ("log_level", *SIZES) * is_log_level(given)
        names = ("topic", "brokers", *published, "encoder")
        said = named_arguments(what, given, names, topic=topic, brokers=brokers, encoder=encoder)
        if delivery is not None and delivery not in get_args(Delivery):
            raise WallarooParameterError(
                f"{what}: delivery is {' or '.join(get_args(Delivery))}, not {delivery!r:.60}"
            )
        if partitions is not None:
            number_of(what, "partitions", partitions, 1, PARTITION_END)
        level = log_level_of(what, said.get("log_level", log_level))
        wait, most = [
            number_of(what, name, said.get(name, value), name == SIZES[1])
            for name, value in zip(SIZES, (max_produce_buffer_ms, max_message_size), strict=True)
        ]
        usual = {
            "message.max.bytes": min(most + _ENVELOPE, 10**9),
            "log_level": LOG_LEVELS[level.lower()],
        }
        if wait:
            usual["linger.ms"] = wait
        _set(
            self,
            topic=topic_name(what, said["topic"]),
            brokers=broker_list(what, said["brokers"]),
            encoder=checked_at(what, encoder_of, said["encoder"]),
            log_level=level,
            max_produce_buffer_ms=wait,
            max_message_size=most,
            delivery=delivery,
            partitions=partitions,
            kafka=ClientOptions(what, kafka, usual),
        )

    @property
    def address(self) -> str:
        """Topic and brokers, for people."""
        return described(self.topic, self.brokers)


def _set(config: Any, **fields: Any) -> None:
    for name, value in fields.items():
        object.__setattr__(config, name, value)
