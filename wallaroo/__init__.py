"""Wallaroo: stream processing in plain Python functions.

Write a decoder, computations, state computations and an encoder; say how messages map to keys;
an engine does routing, state and scale. This package is the language: it describes applications.
Engines are found by name (`wallaroo.engine`); `wallaroo.testing` runs an application in a test.
"""

from wallaroo.aggregations import Aggregation
from wallaroo.building.builder import ApplicationBuilder
from wallaroo.building.pipeline import Pipeline, build_application, source
from wallaroo.config import (
    GenSourceConfig,
    TCPSinkConfig,
    TCPSourceConfig,
    tcp_parse_input_addrs,
    tcp_parse_output_addrs,
)
from wallaroo.decorators import (
    computation,
    computation_multi,
    decoder,
    encoder,
    kafka_decoder,
    key_extractor,
    partition,
    state_computation,
    state_computation_multi,
)
from wallaroo.engine import Engine
from wallaroo.errors import (
    ApplicationLoadError,
    FrameError,
    UnsupportedTopology,
    WallarooError,
    WallarooParameterError,
)
from wallaroo.kafka import KafkaSinkConfig, KafkaSourceConfig
from wallaroo.kafka_cli import (
    CustomKafkaSinkCLIParser,
    CustomKafkaSourceCLIParser,
    DefaultKafkaSinkCLIParser,
    DefaultKafkaSourceCLIParser,
    kafka_parse_sink_options,
    kafka_parse_source_options,
)
from wallaroo.kafka_records import KafkaOutput, KafkaRecord, kafka_timestamp
from wallaroo.times import days, hours, microseconds, milliseconds, minutes, nanoseconds, seconds
from wallaroo.topology import Application
from wallaroo.windows import count_windows, range_windows, session_windows

__all__ = [
    "Aggregation",
    "Application",
    "ApplicationBuilder",
    "ApplicationLoadError",
    "CustomKafkaSinkCLIParser",
    "CustomKafkaSourceCLIParser",
    "DefaultKafkaSinkCLIParser",
    "DefaultKafkaSourceCLIParser",
    "Engine",
    "FrameError",
    "GenSourceConfig",
    "KafkaOutput",
    "KafkaRecord",
    "KafkaSinkConfig",
    "KafkaSourceConfig",
    "Pipeline",
    "TCPSinkConfig",
    "TCPSourceConfig",
    "UnsupportedTopology",
    "WallarooError",
    "WallarooParameterError",
    "build_application",
    "computation",
    "computation_multi",
    "count_windows",
    "days",
    "decoder",
    "encoder",
    "hours",
    "kafka_decoder",
    "kafka_parse_sink_options",
    "kafka_parse_source_options",
    "kafka_timestamp",
    "key_extractor",
    "microseconds",
    "milliseconds",
    "minutes",
    "nanoseconds",
    "partition",
    "range_windows",
    "seconds",
    "session_windows",
    "source",
    "state_computation",
    "state_computation_multi",
    "tcp_parse_input_addrs",
    "tcp_parse_output_addrs",
]
