"""An application whose checkpoint on Spark is opened, and what a run does next with it."""

from __future__ import annotations

from typing import Any

from wallaroo_spark.live.checkpoint import Checkpoint

import wallaroo
from wallaroo.topology import Application
from wallaroo.transport.input_log import InputLog
from wallaroo.transport.log_directory import LogEnds
from wallaroo.transport.stamps import Stamp


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> bytes:
    return payload


@wallaroo.state_computation(name="count")
def count(message: Any, state: Any) -> Any:
    return message, False


@wallaroo.state_computation(name="total")
def total(message: Any, state: Any) -> Any:
    return message, False


def application(name: str = "app", *steps: Any) -> Application:
    builder = wallaroo.ApplicationBuilder(name)
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    for step in steps or (count,):
        builder.to_stateful(step, dict, "state")
    return builder.done().build()


def begun(found: Checkpoint) -> Checkpoint:
    """Do what a run does next with a checkpoint."""

    def admit(log: LogEnds) -> Stamp:
        found.check_input(log)
        return found.begin_run()

    InputLog.open(found.input_log, 1 << 20, admit=admit).close()
    found.begin()
    return found
