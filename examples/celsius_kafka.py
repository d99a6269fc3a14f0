r"""Celsius: reads temperatures from a Kafka topic and writes them to another one in Fahrenheit.

With a broker on this machine, and the client (``pip install 'wallaroo-streams[kafka]'``)::

    wallaroo run examples/celsius_kafka.py \
        --kafka_source_topic celsius --kafka_source_brokers 127.0.0.1:9092 \
        --kafka_sink_topic fahrenheit --kafka_sink_brokers 127.0.0.1:9092

A reading is text, such as ``21.5``. Its key, the thermometer, stays with it. `wallaroo.testing`
runs it without a broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import wallaroo


class Reading(NamedTuple):
    """A temperature.

    Args:
        thermometer: the key of its record.
        degrees: in Celsius, then in Fahrenheit.
    """

    thermometer: bytes | None
    degrees: float


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    """Describe the application: records to readings, multiply, add, to records."""
    topic, brokers, log_level = wallaroo.kafka_parse_source_options(args)
    source = wallaroo.KafkaSourceConfig(topic, brokers, log_level, decode_reading)
    sink = wallaroo.DefaultKafkaSinkCLIParser(encode_reading)
    readings = wallaroo.source("Celsius Conversion", source)
    return wallaroo.build_application(
        "Celsius to Fahrenheit", readings.to(multiply).to(add).to_sink(sink(args))
    )


@wallaroo.kafka_decoder
def decode_reading(record: wallaroo.KafkaRecord) -> Reading | None:
    """Turn a record into a reading; a value that is no number raises, and is a dead letter.

    A record without a value says that its thermometer is gone.
    """
    return None if record.value is None else Reading(record.key, float(record.value))


@wallaroo.computation(name="multiply by 1.8")
def multiply(reading: Reading) -> Reading:
    """Take the first step to Fahrenheit."""
    return reading._replace(degrees=reading.degrees * 1.8)


@wallaroo.computation(name="add 32")
def add(reading: Reading) -> Reading:
    """Take the second step."""
    return reading._replace(degrees=reading.degrees + 32)


@wallaroo.encoder
def encode_reading(reading: Reading) -> tuple[str, bytes | None]:
    """Turn a reading into a value and a key, which decides the partition."""
    return f"{reading.degrees:.1f}", reading.thermometer
