"""Live on Spark: real sockets, a real JVM. What ends its JVM runs alone, as in test_time.py."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from counted import counting, send, text
from live_on_spark import PATIENCE, options
from receiving import eventually
from spark_checkpoints import begun
from wallaroo_spark.jvm.session import session
from wallaroo_spark.live.checkpoint import Checkpoint

import wallaroo
import wallaroo.loading
from wallaroo.errors import WallarooParameterError
from wallaroo.frames import frames
from wallaroo.transport.identity import CheckpointError

shared = pytest.mark.xdist_group("spark")  # in the session that all such tests share

COMMAND = str(Path(sys.executable).with_name("wallaroo"))


@pytest.fixture
def in_session(spark_engine):
    """The engine, which finds a session that is up, and leaves it up."""
    session()
    return spark_engine


@shared
def test_stop_1_what_was_received_is_delivered(in_session, receiver):
    handle = in_session.serve(counting(receiver.port), options())
    send(handle, "a", "b", "a")
    eventually(lambda: any(receiver.so_far), PATIENCE)
    send(handle, "b", *"ccc")
    handle.stop()
    summary = handle.wait(PATIENCE)
    assert (summary.exit_code, summary.problem) == (0, None)
    assert summary.received == {"p": 7}
    assert receiver.data == b"a 1\nb 1\na 2\nb 2\nc 1\nc 2\nc 3\n"


@shared
def test_dead_3_the_death_of_a_worker_process_ends_the_run_there(in_session, receiver):
    handle = in_session.serve(counting(receiver.port), options())
    send(handle, "a", "b", "die", "a")
    summary = handle.wait(PATIENCE)
    assert summary.exit_code == 1
    assert "the death of the worker process in user code at step 'number'" in summary.problem
    assert summary.problem.endswith("message 2")
    assert receiver.data == b"a 1\nb 1\n"


def test_a_sink_at_port_0_is_refused_before_spark_starts(spark_engine):
    with pytest.raises(WallarooParameterError, match="port 0"):
        spark_engine.serve(counting(0), options())


ECHO = """
import wallaroo


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload


@wallaroo.encoder
def encode(message):
    return message


def application_setup(args):
    (source,), (sink,) = wallaroo.tcp_parse_input_addrs(args), wallaroo.tcp_parse_output_addrs(args)
    builder = wallaroo.ApplicationBuilder("echo")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig(*source, decode))
    return builder.to_sink(wallaroo.TCPSinkConfig(*sink, encode)).build()
"""


def test_frame_4_a_full_disk_holds_senders_back_and_loses_nothing(small_disk, tmp_path):
    path, words = small_disk
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / "input").symlink_to(path)
    app = tmp_path / "echo.py"
    app.write_text(ECHO)
    sink = socket.socket()
    sink.bind(("127.0.0.1", 0))  # and does not listen yet: nothing can be committed
    command = [*words, COMMAND, "run", str(app), "--engine", "spark", "--stop-timeout", "120"]
    command += ["--checkpoint", str(checkpoint), "--progress", "none", "--in", "127.0.0.1:0"]
    command += ["--out", f"127.0.0.1:{sink.getsockname()[1]}"]
    payloads = [b"%08d" % number * 128 for number in range(8000)]  # 8 MB
    received = b""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            port = int(line_with(process, "source p listening on").rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port)) as connection:
                sending = threading.Thread(target=connection.sendall, args=[frames(payloads)])
                sending.start()
                said = line_with(process, "No space left on device")
                assert "nothing more is read until there is room" in said
                sink.listen()
                taken, _ = sink.accept()
                with taken:
                    while len(received) < 8000 * 1024 and (data := taken.recv(1 << 16)):
                        received += data
                    sending.join()
                    connection.shutdown(socket.SHUT_WR)
                    assert connection.recv(1) == b""
                    process.send_signal(signal.SIGTERM)
                    assert process.wait(120) == 0
        finally:
            process.kill()
            sink.close()
    assert received == b"".join(payloads)


def line_with(process, text):
    return next(line for line in process.stderr if text in line).strip()


def test_recover_1_a_checkpoint_without_its_input_is_refused_before_a_port_is_bound(
    spark_engine, tmp_path
):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        builder = wallaroo.ApplicationBuilder("live")
        address = ("127.0.0.1", taken.getsockname()[1])
        builder.new_pipeline("p", wallaroo.TCPSourceConfig(*address, text))
        app = builder.done().build()
        made = Checkpoint(tmp_path / "checkpoint", app, partitions=2, default_partitions=2)
        begun(made).close()
        shutil.rmtree(made.input_log)
        settings = '{"conf": {"spark.sql.shuffle.partitions": "2"}}'
        for folder in ("offsets", "commits"):
            (made.spark / folder).mkdir(parents=True)
            (made.spark / folder / "0").write_text(f'v1\n{settings}\n{{"next": 2600}}')
        # It would say that the address is taken, if it had come so far.
        with pytest.raises(CheckpointError, match=r"half deleted: it has no input\. Restore"):
            spark_engine.serve(app, options(tmp_path))
