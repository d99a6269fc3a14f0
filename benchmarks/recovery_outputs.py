"""What a sink has received while an engine was killed, and whether it is right (`recovery.py`)."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from wallaroo.overriding import override


@dataclass
class Connection:
    """What came on one connection of the sink."""

    lines: list[str] = field(default_factory=list)
    ended: bool = False


class Peer(Protocol):
    """The other end of the sink.

    Attributes:
        port: where it listens.
    """

    port: int

    @property
    def connections(self) -> list[Connection]:
        """What has come."""

    @property
    def count(self) -> int:
        """Lines so far."""

    def wait_for_ends(self) -> None:
        """Wait until all that came has been read, for ten seconds at most."""


class Receiver(Peer):
    """Records the lines of each connection."""

    def __init__(self) -> None:
        self._connections: list[Connection] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    @override
    def connections(self) -> list[Connection]:
        return self._connections

    @property
    @override
    def count(self) -> int:
        return sum(len(connection.lines) for connection in self._connections)

    @override
    def wait_for_ends(self) -> None:
        end = time.monotonic() + 10
        while time.monotonic() < end and not all(one.ended for one in self._connections):
            time.sleep(0.01)

    def _accept(self) -> None:
        while True:
            peer, _ = self._server.accept()
            connection = Connection()
            self._connections.append(connection)
            threading.Thread(target=self._read, args=(peer, connection), daemon=True).start()

    def _read(self, peer: socket.socket, connection: Connection) -> None:
        rest = b""
        while True:
            try:
                data = peer.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                connection.ended = True
                return
            *whole, rest = (rest + data).split(b"\n")
            connection.lines.extend([line.decode() for line in whole])


class Remembering(Peer):
    """``wallaroo receive --resume``, which is killed too: what it has stored is one connection.

    Args:
        file: where it stores.
    """

    def __init__(self, file: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._command = [sys.executable, "-m", "wallaroo", "receive", "--resume", str(file)]
        self._command += ["--listen", f"127.0.0.1:{self.port}"]
        self._file = file
        self._stored, self._rest = Connection(), b""
        self._read = 0
        self._start()

    def kill_and_start(self, meanwhile: Callable[[], bool] = lambda: True) -> bool:
        """Kill its process, do something, and start another one; return what that returned."""
        self._process.kill()
        self._process.wait()
        done = meanwhile()
        self._start()
        return done

    @property
    @override
    def connections(self) -> list[Connection]:
        with self._file.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        self._read += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        self._stored.lines.extend([line.decode() for line in whole])
        return [self._stored]

    @property
    @override
    def count(self) -> int:
        return len(self.connections[0].lines)

    @override
    def wait_for_ends(self) -> None:
        self._process.terminate()
        self._process.wait(10)
        self._stored.ended = True

    def _start(self) -> None:
        self._file.touch()
        self._process = subprocess.Popen(
            self._command, stderr=subprocess.DEVNULL, start_new_session=True
        )


class Judge:
    """Compares the outputs with a count of its own, as they come.

    Attributes:
        faults: what was wrong.
        outputs: each output's place; repeated ones once.
        repeated: how many outputs came again.
    """

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.outputs: dict[str, int] = {}
        self.repeated = 0
        self._order: list[str] = []
        self._counts: Counter[int] = Counter()
        self._connection = 0  # the one that is read
        self._line = 0  # the next one of it
        self._place = 0  # where this line should be among all outputs

    def look(self, connections: list[Connection]) -> None:
        """Judge what has come since the last look."""
        while self._connection < len(connections):
            connection = connections[self._connection]
            ended = connection.ended  # before its lines are read: more may come
            for line in connection.lines[self._line :]:
                if self._line == 0:  # what is repeated begins with something known
                    self._place = self.outputs.get(line, len(self._order))
                self._take(line)
                self._line += 1
                self._place += 1
            if not ended:
                return
            self._connection += 1
            self._line = 0

    def _take(self, line: str) -> None:
        if self._place < len(self._order):
            self.repeated += 1
            if line != self._order[self._place]:
                before = self._order[self._place]
                self.faults.append(f"output {self._place + 1} was {before!r}, then {line!r}")
            return
        number, count, total = map(int, line.split())
        self._counts[number % 97] += 1
        self._order.append(line)
        self.outputs.setdefault(line, self._place)
        if (count, total) != (self._counts[number % 97], len(self._order)):
            expected = f"{self._counts[number % 97]} of its key"
            self.faults.append(f"{line!r} is output {len(self._order)}, and {expected}")

    def numbers(self) -> list[int]:
        """Return the numbers of all outputs, without repeated outputs."""
        return [int(line.split()[0]) for line in self._order]
