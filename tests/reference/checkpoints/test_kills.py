"""recover-1 and recover-2 on the reference engine: kills, and restarts from the checkpoint."""

from __future__ import annotations

import socket

import pytest
from receiving import eventually
from wallaroo_reference.checkpoints.store import Store

import wallaroo
from wallaroo.frames import frames

BOTH = pytest.mark.parametrize("isolation", ["trusting", "isolated"])


@wallaroo.decoder(header_length=4, length_fmt=">I")
def text(payload):
    return payload.decode()


@wallaroo.encoder
def line(message):
    return f"{message}\n"


class Count:
    def __init__(self):
        self.count = 0


@wallaroo.state_computation(name="number")
def number(message, state):
    state.count += 1
    return f"{message} {state.count}", True


@wallaroo.partition
def whole(message):
    return message


def counting(receiver, **source):
    builder = wallaroo.ApplicationBuilder("counting")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, text, **source))
    builder.to_state_partition(number, Count, "counts", whole)
    return builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", receiver.port, line)).build()


def send(handle, *messages, source="p"):
    """Send messages, and wait until the source has said that they are on disk."""
    with socket.create_connection(handle.addresses[source], timeout=20) as sock:
        sock.sendall(frames([message.encode() for message in messages]))
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""


def position(tmp_path):
    """Return how many records the stored state knows."""
    store = Store(tmp_path / "c" / "reference", read_only=True)
    head = store.head()
    store.close()
    return 0 if head is None else head.moment.sequence


def stopped(handle):
    handle.stop()
    summary = handle.wait(20)
    assert summary is not None
    assert summary.problem is None
    return summary


@BOTH
def test_recover_1_state_is_there_after_a_kill(serve, receiver, isolation):
    handle = serve(counting(receiver), isolation, own={"checkpoint_interval": 1000})
    send(handle, "a", "b", "a")
    eventually(lambda: receiver.so_far == [b"a 1\nb 1\na 2\n"])
    handle.kill()
    handle = serve.again(handle)
    send(handle, "a", "c")
    stopped(handle)
    # Nothing was stored yet, so all is done again, and sent again.
    assert receiver.got(2)[1] == b"a 1\nb 1\na 2\na 3\nc 1\n"


@BOTH
def test_recover_2_what_a_checkpoint_knows_is_not_repeated(serve, receiver, isolation, tmp_path):
    handle = serve(counting(receiver), isolation)
    send(handle, "a", "b", "a")
    eventually(lambda: position(tmp_path) == 3)
    handle.kill()
    handle = serve.again(handle)
    send(handle, "a", "c")
    stopped(handle)
    assert receiver.got(2) == [b"a 1\nb 1\na 2\n", b"a 3\nc 1\n"]


@BOTH
def test_stop_1_a_stop_in_order_leaves_nothing_to_repeat(serve, receiver, isolation, tmp_path):
    application = counting(receiver)
    handle = serve(application, isolation, own={"checkpoint_interval": 1000})
    send(handle, *"abcab")
    stopped(handle)
    assert position(tmp_path) == 5
    handle = serve(application, isolation)
    stopped(handle)
    assert b"".join(receiver.so_far) == b"a 1\nb 1\nc 1\na 2\nb 2\n"
