"""Live on Spark: real sockets, a real JVM. What ends its JVM runs alone, as in test_time.py."""

import errno
import shutil
import socket
import threading

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


@shared
def test_frame_4_a_full_disk_holds_senders_back_and_loses_nothing(
    in_session, receiver, disk, caplog
):
    """What the log does on a small disk: tests/wallaroo/transport/test_input_log.py."""
    handle = in_session.serve(counting(receiver.port), options())
    disk.problem = errno.ENOSPC
    large = b"x" * 20_000
    with socket.create_connection(handle.addresses["p"], timeout=60) as sock:
        sender = threading.Thread(target=sock.sendall, args=(frames([large] * 1_000),))
        sender.start()
        eventually(lambda: "; nothing more is read until the disk takes them" in caplog.text)
        assert "No space left on device" in caplog.text
        sender.join(0.5)
        assert sender.is_alive()  # the system's own buffers are full
        disk.problem = None
        sender.join(60)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""  # all is on the disk
    assert "the disk takes the input log again" in caplog.text
    handle.stop()
    assert handle.wait(PATIENCE).exit_code == 0
    assert receiver.data == b"".join([b"%s %d\n" % (large, n) for n in range(1, 1_001)])


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
