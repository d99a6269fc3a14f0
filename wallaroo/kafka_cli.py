"""Kafka sources and sinks from the command line, by the options of published applications."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic

from wallaroo import kinds
from wallaroo.errors import KafkaArgumentError, WallarooParameterError
from wallaroo.kafka import KafkaSinkConfig, KafkaSourceConfig
from wallaroo.kafka_arguments import (
    MAX_MESSAGE_SIZE,
    SIZES,
    Broker,
    broker_list,
    number_of,
    topic_name,
)

KAFKA_OPTIONS: Final = (
    *[f"--kafka_source_{name}" for name in ("topic", "brokers", "log_level")],
    *[f"--kafka_sink_{name}" for name in ("topic", "brokers", "log_level")],
    *("--kafka_sink_max_produce_buffer_ms", "--kafka_sink_max_message_size"),
)
"""The options that are read here; a name may stand behind the hyphens, as in ``--NAME_kafka_…``."""


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
        self._decoder = decoder
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
        return KafkaSourceConfig(*options, self._decoder, **self._further)


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
        self._encoder = encoder
        self._further = further

    def __call__(self, args: Sequence[str] | None = None) -> KafkaSinkConfig[kinds.Taken]:
        """Return the sink; as `CustomKafkaSourceCLIParser`."""
        options = kafka_parse_sink_options(_args(args), self._prefix)
        return KafkaSinkConfig(*options, self._encoder, **self._further)


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
        topic_name(f"{begin}topic", found["topic"])
        found["brokers"] = list(broker_list(f"{begin}brokers", found["brokers"]))
        for name in SIZES:
            if name in found:
                found[name] = number_of(begin + name, name, found[name], name == SIZES[1])
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
