"""What the configurations of Kafka sources and sinks are given, checked, and in one form.

What is wrong is a `WallarooParameterError`, which begins with `what`: the configuration or option.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from wallaroo.config import format_address, parse_address
from wallaroo.errors import WallarooParameterError
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
SIZES: Final = ("max_produce_buffer_ms", "max_message_size")
"""Arguments of published sinks that are numbers."""
LOG_LEVELS: Final = {
    **dict.fromkeys(("fine", "debug"), 7),
    "info": 6,
    **dict.fromkeys(("warn", "warning", "error", "critical"), 2),  # we log these ourselves
}
"""The levels of published applications, and of the client, as syslog counts."""

_TOPIC = re.compile(r"(?!\.\.?$)[A-Za-z0-9._-]{1,249}")


def without_name(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a source by position without the source's name before them."""
    most = len(("topic", "brokers", "log_level", "decoder"))
    if len(given) > most or (len(given) == most and not is_log_level(given)):
        return given[1:]
    return given


def is_log_level(given: Sequence[Any]) -> bool:
    """Whether the third of the arguments by position is a level, as in the published forms."""
    at = len(("topic", "brokers"))
    return len(given) > at and isinstance(given[at], str) and given[at].lower() in LOG_LEVELS


def named_arguments(
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


def topic_name(what: str, topic: object) -> str:
    """Return a topic's name."""
    if not isinstance(topic, str) or not _TOPIC.fullmatch(topic):
        raise WallarooParameterError(
            f"{what}: a topic is 1 to 249 letters, digits, dots, underscores and hyphens, not "
            f"{topic!r:.60}"
        )
    return topic


def broker_list(what: str, brokers: Any) -> tuple[Broker, ...]:
    """Return brokers as pairs of a host and a port."""
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


def log_level_of(what: str, level: object) -> str:
    """Return a level as it was given."""
    if not isinstance(level, str) or level.lower() not in LOG_LEVELS:
        raise WallarooParameterError(
            f"{what}: log_level is Fine, Info, Warn or Error, not {level!r:.60}"
        )
    return level


def number_of(what: str, name: str, value: object, least: int, end: int = 1 << 31) -> int:
    """Return a number from `least` on and below `end`; a text of digits is one too."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 11:
        value = int(value)  # published applications pass on the option's text
    if type(value) is not int or not least <= value < end:
        raise WallarooParameterError(
            f"{what}: {name} is a number, {int(least)} or more, not {value!r:.60}"
        )
    return value


def partition_list(what: str, partitions: Any) -> tuple[int, ...] | None:
    """Return different partitions, sorted; `None`: all."""
    if partitions is None:
        return None
    listed = isinstance(partitions, Sequence) and not isinstance(partitions, (str, bytes))
    numbers = tuple(partitions) if listed else ()
    if not numbers or len(set(numbers)) < len(numbers):
        raise WallarooParameterError(
            f"{what}: partitions is a list of different partitions, not {partitions!r:.60}. "
            "Write: partitions=[0, 1], or nothing for all of them"
        )
    return tuple(sorted([number_of(what, "a partition", one, 0, PARTITION_END) for one in numbers]))


def start_of(what: str, start: Any) -> Start:
    """Return where a new run begins (kafka-4)."""
    if start in ("earliest", "latest"):
        word: Start = start
        return word
    if isinstance(start, Mapping) and start:
        return tuple(
            sorted(
                [
                    (
                        number_of(what, "start: a partition", partition, 0, PARTITION_END),
                        number_of(what, "start: an offset", offset, 0, 1 << 63),
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


def described(topic: str, brokers: Sequence[Broker]) -> str:
    """Return topic and brokers, for people."""
    return f"topic {topic} at {','.join([format_address(*broker) for broker in brokers])}"
