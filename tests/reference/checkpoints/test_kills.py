"""recover-1 and recover-2 on the reference engine: kills, and restarts from the checkpoint."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from counted import Count, counting, send, sink
from receiving import eventually
from served import BOTH
from wallaroo_reference.checkpoints.store import Store

import wallaroo
from wallaroo.cli.dead_letters import LetterFiles
from wallaroo.frames import frames
from wallaroo.transport.dead_letter_file import files_of


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
def test_stop_1_a_stop_in_order_leaves_nothing_to_repeat(serve, receiver, isolation, tmp_path):
    application = counting(receiver.port)
    handle = serve(application, isolation, own={"checkpoint_interval": 1000})
    send(handle, *"abcab")
    stopped(handle)
    assert position(tmp_path) == 5
    handle = serve(application, isolation)
    stopped(handle)
    assert b"".join(receiver.so_far) == b"a 1\nb 1\nc 1\na 2\nb 2\n"


class Numbers:
    """Gives 1 to 2000; every tenth cannot be pickled."""

    def initial_value(self):
        return 1

    def apply(self, value):
        number = value() if callable(value) else value
        if number == 2000:
            return None
        return number + 1 if (number + 1) % 10 else lambda: number + 1


@wallaroo.state_computation(name="total", state=Count)
def total(message, state):
    state.count += message
    return f"{message} {state.count}"


@BOTH
def test_graph_4_a_generator_goes_on_behind_its_last_record(serve, receiver, isolation, tmp_path):
    numbers = wallaroo.source("numbers", wallaroo.GenSourceConfig("numbers", Numbers()))
    pipeline = numbers.to(total).to_sink(sink(receiver.port))
    application = wallaroo.build_application("sums", pipeline)
    handle = serve(application, isolation, dead_letters=tmp_path / "letters")
    for kills in range(1, 4):
        eventually(lambda kills=kills: len(receiver.so_far) == kills and receiver.so_far[-1])
        handle.kill()
        handle = serve.again(handle)
    assert handle.wait(20).exit_code == 0
    numbers = [n for n in range(1, 2001) if n % 10]
    whole = [f"{n} {s}".encode() for n, s in zip(numbers, accumulate(numbers), strict=True)]
    got: list[bytes] = []
    for stretch in receiver.got(len(receiver.so_far)):
        lines = stretch.split(b"\n")[:-1]
        if lines:
            start = whole.index(lines[0])
            assert start <= len(got)
            got[start:] = lines
    assert got == whole
    letters = [json.loads(line) for line in (tmp_path / "letters").read_text().splitlines()]
    assert {letter["reason"] for letter in letters} == {"unportable"}
    assert {letter["lineage"][0] for letter in letters} == set(range(9, 2000, 10))


COMMAND = str(Path(sys.executable).with_name("wallaroo"))
EACH = 40  # messages between two kills
LINE = 400  # bytes of a dead letter, or more
DEAD_LETTERS_ONLY = """
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    raise ValueError("no message can be decoded")

def application_setup(args):
    ((host, port),) = wallaroo.tcp_parse_input_addrs(args)
    source = wallaroo.TCPSourceConfig(host, port, decode)
    return wallaroo.ApplicationBuilder("none").new_pipeline("p", source).done().build()
"""
PAUSES = [0.0, 0.01, 0.05, 0.2, 0.0]  # seconds from the acknowledgement of messages to SIGKILL
PATIENCE = 30.0  # seconds within which a run listens and takes messages


@pytest.mark.parametrize("most", [400_000, 40_000])
def test_recover_2_dead_letter_files_are_rotated_while_runs_are_killed(tmp_path, most):
    (tmp_path / "app.py").write_text(DEAD_LETTERS_ONLY)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = taken.getsockname()
    command = [COMMAND, "run", "app.py", "--checkpoint", "c"]
    command += ["--dead-letters", "dead.jsonl", "--dead-letter-bytes", str(most)]
    command += ["--stop-timeout", str(PATIENCE), "--in", f"127.0.0.1:{address[1]}"]
    sent: list[bytes] = []
    for pause in [*PAUSES, None]:
        new = [b"%d" % n for n in range(len(sent), len(sent) + EACH)]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
            try:
                send_frames(address, frames(new))
                sent += new
                if pause is None:
                    process.send_signal(signal.SIGTERM)
                    assert process.wait(PATIENCE) == 0
                else:
                    time.sleep(pause)
            finally:
                process.kill()
    paths = files_of(tmp_path / "dead.jsonl")
    sizes = [path.stat().st_size for path in paths]
    assert sum(sizes) <= most
    assert len(paths) > 3
    with closing(LetterFiles(paths[-1])) as files:
        messages = [message.payload for message in files.messages()]
    if most < len(sent) * LINE:
        # What is left of a stretch that was repeated may begin anywhere.
        assert set(messages) <= set(sent)
        assert messages[-1] == sent[-1]
        assert len(messages) < len(sent)
    else:
        assert messages == sent
        lines = [line for path in paths for line in path.read_bytes().splitlines()]
        numbers = [int(line.partition(b"[")[2].partition(b"]")[0]) for line in lines]
        # What stands there again is what a killed run had written last, unchanged.
        assert len(set(lines)) == len(set(numbers))
        assert sum([two <= one for one, two in pairwise(numbers)]) <= len(PAUSES)


def send_frames(address, data):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection = socket.create_connection(address, timeout=PATIENCE)
            break
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)
    with connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
