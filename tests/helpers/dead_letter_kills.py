"""A run that makes dead letters only, killed again and again; what its files hold in the end."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from wallaroo.cli.dead_letters import LetterFiles
from wallaroo.frames import frames
from wallaroo.transport.dead_letter_file import files_of

_COMMAND = str(Path(sys.executable).with_name("wallaroo"))
_EACH = 40  # messages between two kills
_LINE = 400  # bytes of a dead letter, or more
_APPLICATION = """
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    raise ValueError("no message can be decoded")

def application_setup(args):
    ((host, port),) = wallaroo.tcp_parse_input_addrs(args)
    source = wallaroo.TCPSourceConfig(host, port, decode)
    return wallaroo.ApplicationBuilder("none").new_pipeline("p", source).done().build()
"""


def check(folder: Path, engine: str, *, most: int, pauses: list[float], patience: float) -> None:
    """Kill a run after so many seconds each, and check its dead-letter files (recover-2).

    Args:
        folder: an empty one.
        engine: the engine's name.
        most: bytes that the files may have.
        pauses: seconds from the acknowledgement of a run's messages to its SIGKILL.
        patience: seconds within which a run listens and takes messages.
    """
    (folder / "app.py").write_text(_APPLICATION)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = taken.getsockname()
    command = [_COMMAND, "run", "app.py", "--engine", engine, "--checkpoint", "c"]
    command += ["--dead-letters", "dead.jsonl", "--dead-letter-bytes", str(most)]
    command += ["--stop-timeout", str(patience), "--in", f"127.0.0.1:{address[1]}"]
    sent: list[bytes] = []
    for pause in [*pauses, None]:
        new = [b"%d" % n for n in range(len(sent), len(sent) + _EACH)]
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as process:
            try:
                _send(address, frames(new), patience)
                sent += new
                if pause is None:
                    process.send_signal(signal.SIGTERM)
                    assert process.wait(patience) == 0
                else:
                    time.sleep(pause)
            finally:
                process.kill()
    paths = files_of(folder / "dead.jsonl")
    sizes = [path.stat().st_size for path in paths]
    assert sum(sizes) <= most
    assert len(paths) > 3
    with closing(LetterFiles(paths[-1])) as files:
        messages = [message.payload for message in files.messages()]
    if most < len(sent) * _LINE:
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
        assert sum([two <= one for one, two in pairwise(numbers)]) <= len(pauses)


def _send(address: tuple[str, int], data: bytes, patience: float) -> None:
    end = time.monotonic() + patience
    while True:
        try:
            connection = socket.create_connection(address, timeout=patience)
            break
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)
    with connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
