"""What tests of live runs on Spark share: an application, a sender, and whose process a JVM is."""

from __future__ import annotations

import contextlib
import os
import socket

import psutil

import wallaroo
from wallaroo.engine import ServeOptions
from wallaroo.frames import frames

PATIENCE = 300.0  # seconds


class Count:
    def __init__(self):
        self.count = 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def text(payload):
    return payload.decode()


@wallaroo.state_computation(name="number")
def number(message, state):
    if message == "bad":
        raise ValueError(message)
    if message == "die":
        os._exit(9)
    state.count += 1
    return f"{message} {state.count}", True


@wallaroo.partition
def whole(message):
    return message


@wallaroo.encoder
def line(message):
    return f"{message}\n"


def build(port, sinks=1):
    builder = wallaroo.ApplicationBuilder("live")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
    builder.to_state_partition(number, Count, "counts", whole)
    sink = wallaroo.TCPSinkConfig("127.0.0.1", port, line)
    return builder.to_sinks([sink] * sinks).build()


def options(tmp_path=None, own=None, **changes):
    own = {"checkpoint": tmp_path and tmp_path / "checkpoint", **(own or {})}
    return ServeOptions(**{"partitions": 2, "stop_timeout": 120, "options": own, **changes})


def send(handle, *messages, to="p"):
    """Send, half-close, and wait until the source has closed its side: all is logged (frame-4)."""
    payloads = [one if isinstance(one, bytes) else one.encode() for one in messages]
    with socket.create_connection(handle.addresses[to], timeout=PATIENCE) as connection:
        connection.sendall(frames(payloads))
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""


def jvm_of(pid):
    """The process of Spark's JVM that a process has started, if there is one."""
    with contextlib.suppress(psutil.NoSuchProcess):  # it, or the child, has just ended
        for child in psutil.Process(pid).children():
            if any("SparkSubmit" in word for word in child.cmdline()):
                return child.pid
    return None
