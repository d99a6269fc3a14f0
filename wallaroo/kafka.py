"""Kafka sources and sinks, and the command line options that the published applications read.

Only the standard library is needed here; a run needs the client (`pip install
'wallaroo-streams[kafka]'`).
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeAlias, get_args

from wallaroo import kinds
from wallaroo.checks import checked_at
from wallaroo.components import Encoder, EventTime, KafkaDecoder, encoder_of, kafka_decoder_of
from wallaroo.config import format_address, parse_address, set_time
from wallaroo.errors import KafkaArgumentError, WallarooParameterError
from wallaroo.kafka_records import PARTITION_END
from wallaroo.times import BadTimeError, event_time_from

Broker: TypeAlias = tuple[str, int]
Brokers: TypeAlias = str | Sequence[str | tuple[str, int | str]]
Start: TypeAlias = Literal["earliest", "latest"] | int | tuple[tuple[int, int], ...]
"""Where a new run begins: at a word, at a time in nanoseconds, or at offsets by partition."""
IsolationLevel: TypeAlias = Literal["read_committed", "read_uncommitted"]
Delivery: TypeAlias = Literal["exactly-once", "at-least-once"]

DEFAULT_PORT: Final = 9092
MAX_MESSAGE_SIZE: Final = 1_000_000
"""Bytes of an output: value, key and headers. What brokers take, unless they are told otherwise."""

KAFKA_OPTIONS: Final = (
    *[f"--kafka_source_{name}" for name in ("topic", "brokers", "log_level")],
    *[f"--kafka_sink_{name}" for name in ("topic", "brokers", "log_level")],
    *("--kafka_sink_max_produce_buffer_ms", "--kafka_sink_max_message_size"),
)
"""The options that are read here; a name may stand behind the hyphens, as in ``--NAME_kafka_…``."""

_TOPIC = re.compile(r"(?!\.\.?$)[A-Za-z0-9._-]{1,249}")
_LOG_LEVELS = {
    **dict.fromkeys(("fine", "debug"), 7),
    "info": 6,
    **dict.fromkeys(("warn", "warning", "error", "critical"), 2),  # we log these ourselves
}
"""The levels of published applications, and of the client, as syslog counts."""
_ENVELOPE = 20_000  # bytes of a record besides the output: what the client adds, a trace's headers
_HIDDEN = "…"
_REFUSED = {
    **dict.fromkeys(
        ("bootstrap.servers", "metadata.broker.list"),
        "the brokers are an argument. Write: brokers=",
    ),
    "auto.offset.reset": "where a new run begins is an argument (kafka-4). Write: start=",
    **dict.fromkeys(
        ("enable.auto.commit", "enable.auto.offset.store"),
        "the position comes from log and checkpoint alone; with group= it is committed for tools "
        "that show lag (kafka-3)",
    ),
    "group.id": "the position comes from log and checkpoint alone (kafka-3); for tools that show "
    "lag write: group=",
    "isolation.level": "what is read is an argument (kafka-11). Write: isolation_level=",
    **dict.fromkeys(
        ("partitioner", "partitioner_cb"),
        "keys go to partitions as Java's producer has it, so that every run agrees (kafka-13). "
        "Let the encoder give the partition",
    ),
    "transactional.id": "application, checkpoint and sink give it, so that a start shuts out every "
    "earlier run (kafka-15)",
    **dict.fromkeys(
        ("enable.idempotence", "acks", "request.required.acks"),
        "without it outputs would be lost or repeated (kafka-15)",
    ),
    "message.max.bytes": "the limit is an argument (kafka-13). Write: max_message_size=",
}
"""Options of the client that a user may not set, and why (kafka-17)."""


class ClientOptions:
    """Further options of the Kafka client (kafka-17). What they say is never shown.

    A pickle holds their names alone: it may lie on a disk. Who needs the rest gets it otherwise.

    Args:
        where: the configuration they belong to, for errors.
        given: options by name, or the path of a file of lines ``name=value``, which is read when a
            run begins.
        usual: what other arguments say, in the client's names.

    Raises:
        WallarooParameterError: an option breaks a rule, or is no text, number or bool.
    """

    def __init__(
        self, where: str, given: object = None, usual: Mapping[str, int] | None = None
    ) -> None:
        self._where = where
        self._usual = dict(usual or {})
        self._file: Path | None = None
        self._options: dict[str, str | int | float | bool] = {}
        if isinstance(given, (str, Path)):
            self._file = Path(given)
        elif isinstance(given, Mapping):
            self._options = self._checked(where, given)
        elif given is not None:
            raise WallarooParameterError(
                f"{where}: kafka is a dict of the client's options, or the path of a file of them, "
                f"not a {type(given).__name__}"
            )

    def read(self) -> dict[str, str | int | float | bool]:
        """Return the options by name.

        Raises:
            WallarooParameterError: the file cannot be read, or an option in it breaks a rule.
        """
        if self._file is None:
            return {**self._usual, **self._options}
        where = f"{self._where}: kafka={str(self._file)!r}"
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            what = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise WallarooParameterError(f"{where}: the file cannot be read: {what}") from None
        options: dict[str, str] = {}
        for number, line in enumerate(map(str.strip, lines), 1):
            if line and not line.startswith(("#", "!")):
                name, equals, value = line.partition("=")
                if not equals:
                    raise WallarooParameterError(f"{where}, line {number}: write NAME=VALUE")
                options[name.strip()] = value.strip()
        return {**self._usual, **self._checked(where, options)}

    def __repr__(self) -> str:
        if self._file is not None:
            return repr(str(self._file))
        return f"{{{', '.join([f'{name!r}: {_HIDDEN}' for name in self._options])}}}"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_options": dict.fromkeys(self._options, _HIDDEN)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClientOptions) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self._file, *sorted(self._options)))

    @staticmethod
    def _checked(where: str, given: Mapping[Any, Any]) -> dict[str, str | int | float | bool]:
        for name, value in given.items():
            if not isinstance(name, str) or not name:
                raise WallarooParameterError(f"{where}: an option's name is a text, not {name!r}")
            if name in _REFUSED:
                raise WallarooParameterError(
                    f"{where}: the option {name} is not yours to set (kafka-17): {_REFUSED[name]}"
                )
            if not isinstance(value, (str, int, float)):  # its value may be a secret
                raise WallarooParameterError(
                    f"{where}: the option {name} is a text, a number or a bool, not a "
                    f"{type(value).__name__}"
                )
        return dict(given)


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
        arguments = _without_name(given)
        names = ("topic", "brokers", *("log_level",) * _is_log_level(arguments), "decoder")
        said = _arguments(what, arguments, names, topic=topic, brokers=brokers, decoder=decoder)
        if until not in (None, "end"):
            raise WallarooParameterError(f'{what}: until is "end" or None, not {until!r:.60}')
        if isolation_level not in get_args(IsolationLevel):
            raise WallarooParameterError(
                f"{what}: isolation_level is {' or '.join(get_args(IsolationLevel))}, not "
                f"{isolation_level!r:.60}"
            )
        if group is not None and (not isinstance(group, str) or not group):
            raise WallarooParameterError(f"{what}: group is a name, not {group!r:.60}")
        level = _log_level(what, said.get("log_level", log_level))
        _set(
            self,
            topic=_topic(what, said["topic"]),
            brokers=_brokers(what, said["brokers"]),
            decoder=checked_at(what, kafka_decoder_of, said["decoder"]),
            log_level=level,
            partitions=_partitions(what, partitions),
            start=_start(what, start),
            until=until,
            group=group,
            isolation_level=isolation_level,
            kafka=ClientOptions(what, kafka, {"log_level": _LOG_LEVELS[level.lower()]}),
        )
        set_time(self, what, event_time, idle_after, max_ahead, of_kafka=True)

    @property
    def address(self) -> str:
        """Topic and brokers, for people."""
        return _address(self.topic, self.brokers)

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
        published = ("log_level", *_SIZES) * _is_log_level(given)
        names = ("topic", "brokers", *published, "encoder")
        said = _arguments(what, given, names, topic=topic, brokers=brokers, encoder=encoder)
        if delivery is not None and delivery not in get_args(Delivery):
            raise WallarooParameterError(
                f"{what}: delivery is {' or '.join(get_args(Delivery))}, not {delivery!r:.60}"
            )
        if partitions is not None:
            _number(what, "partitions", partitions, 1, PARTITION_END)
        level = _log_level(what, said.get("log_level", log_level))
        wait, most = [
            _number(what, name, said.get(name, value), name == _SIZES[1])
            for name, value in zip(_SIZES, (max_produce_buffer_ms, max_message_size), strict=True)
        ]
        usual = {
            "message.max.bytes": min(most + _ENVELOPE, 10**9),
            "log_level": _LOG_LEVELS[level.lower()],
        }
        if wait:
            usual["linger.ms"] = wait
        _set(
            self,
            topic=_topic(what, said["topic"]),
            brokers=_brokers(what, said["brokers"]),
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
        return _address(self.topic, self.brokers)


# -- the command line ------------------------------------------------------------------------------


def kafka_parse_source_options(
    args: Sequence[str], prefix: str = ""
) -> tuple[str, list[Broker], str]:
    """Return (topic, brokers, log level) from ``--kafka_source_topic`` and so on.

    Args:
        args: the application's arguments; others are left alone.
        prefix: stands before ``kafka_source_…`` in the names of the options.

    Raises:
        KafkaArgumentError: an option is missing, or its value is wrong.
    """
    found = _parsed(args, f"--{prefix}kafka_source_", {"log_level": "Warn"})
    return found["topic"], found["brokers"], found["log_level"]


def kafka_parse_sink_options(
    args: Sequence[str], prefix: str = ""
) -> tuple[str, list[Broker], str, int, int]:
    """Return (topic, brokers, log level, max produce buffer ms, max message size) of a sink.

    The options are ``--kafka_sink_topic`` and so on; see `kafka_parse_source_options`.
    """
    defaults = {
        "log_level": "Warn",
        "max_produce_buffer_ms": "0",
        "max_message_size": str(MAX_MESSAGE_SIZE),
    }
    found = _parsed(args, f"--{prefix}kafka_sink_", defaults)
    return (
        *(found["topic"], found["brokers"], found["log_level"]),
        *(found["max_produce_buffer_ms"], found["max_message_size"]),
    )


class CustomKafkaSourceCLIParser(Generic[kinds.Message]):
    """Makes a Kafka source of the command line.

    Written as ``CustomKafkaSourceCLIParser(NAME, DECODER)(args)``. Its options are
    ``--NAME_kafka_source_topic``, ``--NAME_kafka_source_brokers`` and
    ``--NAME_kafka_source_log_level``, so an application may have several.

    Args:
        name: what the options begin with.
        decoder: as for `KafkaSourceConfig`.
        further: other arguments of `KafkaSourceConfig`, by name.
    """

    def __init__(
        self, name: str, decoder: kinds.AnyKafkaDecoder[kinds.Message], **further: Any
    ) -> None:
        self._prefix = _prefix(name)
        self._component = decoder
        self._further = further

    def __call__(self, args: Sequence[str] | None = None) -> KafkaSourceConfig[kinds.Message]:
        """Return the source.

        Args:
            args: the application's arguments; `None`: those of the process.

        Raises:
            KafkaArgumentError: an option is missing, or its value is wrong.
            WallarooParameterError: as `KafkaSourceConfig`.
        """
        options = kafka_parse_source_options(_args(args), self._prefix)
        return KafkaSourceConfig(*options, self._component, **self._further)


class DefaultKafkaSourceCLIParser(CustomKafkaSourceCLIParser[kinds.Message]):
    """Makes a Kafka source of ``--kafka_source_topic`` and so on: ``…Parser(DECODER)(args)``."""

    def __init__(self, decoder: kinds.AnyKafkaDecoder[kinds.Message], **further: Any) -> None:
        super().__init__("", decoder, **further)


class CustomKafkaSinkCLIParser(Generic[kinds.Taken]):
    """Makes a Kafka sink of the command line: ``CustomKafkaSinkCLIParser(NAME, ENCODER)(args)``.

    Its options are ``--NAME_kafka_sink_topic`` and so on; see `CustomKafkaSourceCLIParser`.
    """

    def __init__(
        self, name: str, encoder: kinds.AnyKafkaEncoder[kinds.Taken], **further: Any
    ) -> None:
        self._prefix = _prefix(name)
        self._component = encoder
        self._further = further

    def __call__(self, args: Sequence[str] | None = None) -> KafkaSinkConfig[kinds.Taken]:
        """Return the sink; as `CustomKafkaSourceCLIParser`."""
        options = kafka_parse_sink_options(_args(args), self._prefix)
        return KafkaSinkConfig(*options, self._component, **self._further)


class DefaultKafkaSinkCLIParser(CustomKafkaSinkCLIParser[kinds.Taken]):
    """Makes a Kafka sink of ``--kafka_sink_topic`` and so on: ``…Parser(ENCODER)(args)``."""

    def __init__(self, encoder: kinds.AnyKafkaEncoder[kinds.Taken], **further: Any) -> None:
        super().__init__("", encoder, **further)


def _parsed(args: Sequence[str], begin: str, defaults: Mapping[str, str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for name in ("topic", "brokers", *defaults):
        parser.add_argument(begin + name, dest=name, default=defaults.get(name))
    try:
        found: dict[str, Any] = vars(parser.parse_known_args(list(args))[0])
    except argparse.ArgumentError as error:
        option = str(error.argument_name)
        raise KafkaArgumentError(option, f"{option} has no value after it") from None
    for name, example in (("topic", "TOPIC"), ("brokers", "HOST:PORT,HOST:PORT")):
        option = begin + name
        if found[name] is None:
            raise KafkaArgumentError(
                option, f"the application wants {option}; write {option} {example}"
            )
    try:
        _topic(f"{begin}topic", found["topic"])
        found["brokers"] = list(_brokers(f"{begin}brokers", found["brokers"]))
        for name in _SIZES:
            if name in found:
                found[name] = _number(begin + name, name, found[name], name == _SIZES[1])
    except WallarooParameterError as error:
        raise KafkaArgumentError("", str(error)) from None
    return found


def _args(args: Sequence[str] | None) -> Sequence[str]:
    return sys.argv[1:] if args is None else args


def _prefix(name: object) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"(\w(-?\w)*)?", name):
        raise WallarooParameterError(
            f"the name of options is letters, digits and underscores, not {name!r:.60}"
        )
    return f"{name}_" if name else ""


# -- arguments -------------------------------------------------------------------------------------

_SIZES = ("max_produce_buffer_ms", "max_message_size")


def _set(config: Any, **fields: Any) -> None:
    for name, value in fields.items():
        object.__setattr__(config, name, value)


def _without_name(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a source by position without the source's name before them."""
    most = len(("topic", "brokers", "log_level", "decoder"))
    if len(given) > most or (len(given) == most and not _is_log_level(given)):
        return given[1:]
    return given


def _is_log_level(given: Sequence[Any]) -> bool:
    """Whether the third of the arguments by position is a level, as in the published forms."""
    at = len(("topic", "brokers"))
    return len(given) > at and isinstance(given[at], str) and given[at].lower() in _LOG_LEVELS


def _arguments(
    what: str, given: Sequence[Any], names: Sequence[str], **named: Any
) -> dict[str, Any]:
    """Return the arguments that were given, by name; those in `named` must be there."""
    values = dict(zip(names, given, strict=False))
    twice = [name for name in values if named.get(name) is not None]
    values.update({name: value for name, value in named.items() if value is not None})
    missing = [name for name in named if name not in values]
    if len(given) > len(names) or twice or missing:
        last = "decoder" if "decoder" in named else "encoder"
        wrong = ", ".join([f"{name} is missing" for name in missing])
        wrong = wrong or ", ".join([f"{name} is there twice" for name in twice]) or "too many"
        raise WallarooParameterError(
            f"{what} takes topic, brokers and {last}; {wrong}. Write: "
            f'wallaroo.{what}(TOPIC, "HOST:PORT", {last.upper()})'
        )
    return values


def _topic(what: str, topic: object) -> str:
    if not isinstance(topic, str) or not _TOPIC.fullmatch(topic):
        raise WallarooParameterError(
            f"{what}: a topic is 1 to 249 letters, digits, dots, underscores and hyphens, not "
            f"{topic!r:.60}"
        )
    return topic


def _brokers(what: str, brokers: Any) -> tuple[Broker, ...]:
    listed = brokers.split(",") if isinstance(brokers, str) else brokers
    wanted = 'write "HOST:PORT,HOST:PORT", or a list of pairs (host, port)'
    if not isinstance(listed, Sequence) or not listed:
        raise WallarooParameterError(f"{what}: brokers: {wanted}, not {brokers!r:.60}")
    found = []
    for broker in listed:
        if isinstance(broker, (tuple, list)) and len(broker) == 2:
            host, port = broker
            text = format_address(host, port) if isinstance(host, str) else ""
        else:
            text = broker.strip() if isinstance(broker, str) else ""
            if text and ":" not in text:
                text = format_address(text, DEFAULT_PORT)
        try:
            found.append(parse_address(text))
        except WallarooParameterError as error:
            raise WallarooParameterError(f"{what}: brokers: {error}; {wanted}") from None
    return tuple(found)


def _log_level(what: str, level: object) -> str:
    if not isinstance(level, str) or level.lower() not in _LOG_LEVELS:
        raise WallarooParameterError(
            f"{what}: log_level is Fine, Info, Warn or Error, not {level!r:.60}"
        )
    return level


def _number(what: str, name: str, value: object, least: int, end: int = 1 << 31) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 11:
        value = int(value)  # published applications pass on the option's text
    if type(value) is not int or not least <= value < end:
        raise WallarooParameterError(
            f"{what}: {name} is a number, {int(least)} or more, not {value!r:.60}"
        )
    return value


def _partitions(what: str, partitions: Any) -> tuple[int, ...] | None:
    if partitions is None:
        return None
    listed = isinstance(partitions, Sequence) and not isinstance(partitions, (str, bytes))
    numbers = tuple(partitions) if listed else ()
    if not numbers or len(set(numbers)) < len(numbers):
        raise WallarooParameterError(
            f"{what}: partitions is a list of different partitions, not {partitions!r:.60}. "
            "Write: partitions=[0, 1], or nothing for all of them"
        )
    return tuple(sorted([_number(what, "a partition", one, 0, PARTITION_END) for one in numbers]))


def _start(what: str, start: Any) -> Start:
    if start in ("earliest", "latest"):
        word: Start = start
        return word
    if isinstance(start, Mapping) and start:
        return tuple(
            sorted(
                [
                    (
                        _number(what, "start: a partition", partition, 0, PARTITION_END),
                        _number(what, "start: an offset", offset, 0, 1 << 63),
                    )
                    for partition, offset in start.items()
                ]
            )
        )
    try:
        return event_time_from(start)
    except BadTimeError:
        raise WallarooParameterError(
            f'{what}: start is "earliest", "latest", a time (an aware datetime, or nanoseconds '
            f"since 1970), or offsets by partition, not {start!r:.60}. Write: start={{0: 1200}}"
        ) from None


def _address(topic: str, brokers: Sequence[Broker]) -> str:
    return f"topic {topic} at {','.join([format_address(*broker) for broker in brokers])}"
