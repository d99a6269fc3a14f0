"""Wallaroo: stream processing in plain Python functions.

Write a decoder, computations, state computations and an encoder; say how messages map to keys;
an engine does routing, state and scale. This package is the language: it describes applications.
Engines are found by name (`wallaroo.engine`); `wallaroo.testing` runs an application in a test.
"""

from wallaroo.builder import ApplicationBuilder
from wallaroo.config import (
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
from wallaroo.topology import Application

__all__ = [
    "Application",
    "ApplicationBuilder",
    "ApplicationLoadError",
    "Engine",
    "FrameError",
    "TCPSinkConfig",
    "TCPSourceConfig",
    "UnsupportedTopology",
    "WallarooError",
    "WallarooParameterError",
    "computation",
    "computation_multi",
    "decoder",
    "encoder",
    "partition",
    "state_computation",
    "state_computation_multi",
    "tcp_parse_input_addrs",
    "tcp_parse_output_addrs",
]
