"""Live on Spark: real sockets, a real JVM, kills. What kills its JVM has one of its own."""

from __future__ import annotations

import io
import os
import socket
from pathlib import Path

import psutil
import pytest
from spark_runs import child_of, until
from wallaroo_spark.jvm.session import session
from wallaroo_spark.live.checkpoint import Checkpoint
from wallaroo_spark.live.identity import CheckpointError

import wallaroo
import wallaroo.loading
from wallaroo.engine import ServeOptions
from wallaroo.errors import WallarooParameterError
from wallaroo.frames import frames

shared = pytest.mark.xdist_group("spark")  # in the session that all such tests share

EXAMPLES = Path(__file__).parents[3] / "examples"


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


@pytest.fixture
def in_session(spark_engine):
    """The engine, which finds a session that is up, and leaves it up."""
    session()
    return spark_engine


def send(handle, *payloads):
    with socket.create_connection(handle.addresses["p"]) as connection:
        connection.sendall(frames([payload.encode() for payload in payloads]))
        connection.shutdown(socket.SHUT_WR)
        # The source closes its side once everything is sequenced: durable, that is (frame-4).
        assert connection.recv(1) == b""


@pytest.mark.alone
def test_stop_1_what_was_received_is_delivered_and_the_jvm_is_gone(spark_engine, receiver):
    handle = spark_engine.serve(build(receiver.port), options())
    send(handle, "a", "b", "a")
    until(lambda: receiver.data)
    pid = child_of(os.getpid())
    send(handle, "b", *"ccc")
    handle.stop()
    summary = handle.wait(300)
    assert (summary.exit_code, summary.problem) == (0, None)
    assert summary.received == {"p": 7}
    assert receiver.data == b"a 1\nb 1\na 2\nb 2\nc 1\nc 2\nc 3\n"
    assert not psutil.pid_exists(pid)


@pytest.mark.alone
def test_recover_1_and_2_after_a_kill_it_goes_on(spark_engine, receiver, tmp_path):
    handle = spark_engine.serve(build(receiver.port), options(tmp_path))
    send(handle, "a", "b")
    until(lambda: receiver.data == b"a 1\nb 1\n")
    until(lambda: handle.progress().details["backlog"] == 0)
    with socket.create_connection(handle.addresses["p"], timeout=60) as open_still:
        open_still.sendall(b"\0")  # half a header, so nothing that the restart would process
        handle.kill()
        with pytest.raises(ConnectionResetError):
            open_still.recv(1)
    assert handle.wait().problem == "it was killed"
    receiver.data = b""
    again = handle.restart()
    assert again.addresses == handle.addresses
    send(again, "a", "c")
    # The batch in flight may come again, whole; it may have been committed just before the kill.
    until(lambda: receiver.data.endswith(b"a 2\nc 1\n"))
    again.stop()
    assert again.wait(300).exit_code == 0
    assert receiver.data in (b"a 2\nc 1\n", b"a 1\nb 1\na 2\nc 1\n")


@pytest.mark.alone
def test_dead_4_a_restart_meets_the_message_again(spark_engine, receiver, tmp_path):
    for _ in range(2):
        receiver.data = b""
        handle = spark_engine.serve(
            build(receiver.port),
            options(tmp_path, on_error="stop", dead_letters=tmp_path / "dead.jsonl"),
        )
        send(handle, "a", "bad", "a")
        summary = handle.wait(300)
        assert summary.exit_code == 1
        assert "step 'number' of pipeline 'p', message 1" in summary.problem
        assert receiver.data == b"a 1\n"
    assert len((tmp_path / "dead.jsonl").read_text().splitlines()) == 2


@shared
def test_dead_3_the_death_of_a_worker_process_ends_the_run_there(in_session, receiver):
    handle = in_session.serve(build(receiver.port), options())
    send(handle, "a", "b", "die", "a")
    summary = handle.wait(300)
    assert summary.exit_code == 1
    assert "the death of the worker process in user code at step 'number'" in summary.problem
    assert summary.problem.endswith("message 2")
    assert receiver.data == b"a 1\nb 1\n"


@shared
def test_sink_3_an_absent_sink_stops_the_reading(in_session):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    handle = in_session.serve(build(port), options(own={"log_bytes": 1 << 20}, stop_timeout=0.5))
    payloads = [b"x" * 1000] * 100
    with socket.create_connection(handle.addresses["p"]) as connection:
        connection.settimeout(3)
        with pytest.raises(TimeoutError):
            # Far more than the log's bound of 1 MB, and than what the system's buffers hold.
            connection.sendall(frames(payloads) * 500)
    assert handle.wait(0) is None
    handle.stop()
    summary = handle.wait(300)
    assert summary.exit_code == 1
    assert "the stop was given up after 0.5 s, with" in summary.problem


@pytest.mark.alone
def test_stop_1_the_timeout_holds_while_spark_comes_up(spark_engine, receiver, tmp_path):
    handle = spark_engine.serve(build(receiver.port), options(tmp_path, stop_timeout=0.1))
    send(handle, "a")
    handle.stop()
    summary = handle.wait(300)
    assert summary.exit_code == 1
    assert summary.problem == (
        "the stop was given up after 0.1 s, with 1 frames received and not processed"
    )
    again = spark_engine.serve(build(receiver.port), options(tmp_path))
    again.stop()
    assert again.wait(300).exit_code == 0
    assert receiver.data == b"a 1\n"  # it was in the log


@shared
def test_stdin_and_stdout_give_what_the_reference_gives(in_session, reference):
    words = b"the cat\nthe dog\na cat\n"
    outputs = []
    for engine in (in_session, reference):
        out = io.BytesIO()
        app = wallaroo.loading.load_application(EXAMPLES / "word_count.py", placeholders=True)
        handle = engine.serve(app, ServeOptions(stdin=io.BytesIO(words), stdout=out))
        assert handle.wait(300).exit_code == 0
        outputs.append(out.getvalue())
    assert outputs[0] == outputs[1]


def test_a_sink_at_port_0_is_refused_before_spark_starts(spark_engine):
    with pytest.raises(WallarooParameterError, match="port 0"):
        spark_engine.serve(build(0), options())


def test_recover_1_a_checkpoint_without_its_input_is_refused_before_a_port_is_bound(
    spark_engine, tmp_path
):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        builder = wallaroo.ApplicationBuilder("live")
        address = ("127.0.0.1", taken.getsockname()[1])
        builder.new_pipeline("p", wallaroo.TCPSourceConfig(*address, text))
        app = builder.done().build()
        made = Checkpoint(tmp_path / "checkpoint", app, partitions=2, default_partitions=2)
        made.close()
        settings = '{"conf": {"spark.sql.shuffle.partitions": "2"}}'
        for folder in ("offsets", "commits"):
            (made.spark / folder).mkdir()
            (made.spark / folder / "0").write_text(f'v1\n{settings}\n{{"next": 2600}}')
        # It would say that the address is taken, if it had come so far.
        with pytest.raises(CheckpointError, match=r"input ends before frame 0, .* before 2600"):
            spark_engine.serve(app, options(tmp_path))
