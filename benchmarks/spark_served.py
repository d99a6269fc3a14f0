"""A served Spark job in a process of its own, and what sends to it and reads from it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from wallaroo.frames import frames

HERE = Path(__file__).parent
APPLICATIONS = {
    "wallaroo": "spark_counting.py",
    "windows": "spark_windowing.py",
    "nexmark": "../examples/nexmark/queries.py",
}
"""The jobs that this engine runs."""
BY_HAND = {
    **dict.fromkeys(("row", "memory"), "spark_by_hand.py"),
    **dict.fromkeys(("timers", "sql"), "spark_windows_by_hand.py"),
}
"""The jobs written by hand; each is a kind of its program."""
_TIMEOUT = 300.0  # seconds without an output after which something is wrong


class Served:
    """A running job, with a connection into it and one out of it.

    Args:
        job: one of `APPLICATIONS` or of `BY_HAND`.
        master: Spark's.
        partitions: number of partitions.
        optimised: a job by hand runs Java's optimising compiler. It is quicker so, once it is warm.
        options: more arguments for ``wallaroo run``.
    """

    def __init__(
        self,
        job: str,
        *,
        master: str = "local[2]",
        partitions: int,
        optimised: bool = False,
        options: Sequence[str] = (),
    ) -> None:
        self.began = time.perf_counter()
        listener = socket.create_server(("127.0.0.1", 0))
        out_port = listener.getsockname()[1]
        if job in APPLICATIONS:
            command = [
                *(sys.executable, "-m", "wallaroo", "run", str(HERE / APPLICATIONS[job])),
                *("--engine", "spark", "--master", master, "--partitions", str(partitions)),
                *("--progress", "none", "--stop-timeout", "60"),
                *("--in", "127.0.0.1:0", "--out", f"127.0.0.1:{out_port}", *options),
            ]
        else:
            command = [sys.executable, str(HERE / BY_HAND[job]), job, str(out_port)]
            command += [str(partitions), master, *["--optimised"] * optimised]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self.process = subprocess.Popen(
            command, stderr=self._log, env={**os.environ, "PYTHONPATH": str(HERE)}
        )
        try:
            port = self._listening_port()
            self._sender = socket.create_connection(("127.0.0.1", port))
            self._sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            listener.settimeout(_TIMEOUT)
            self._receiver, _ = listener.accept()
            self._receiver.settimeout(_TIMEOUT)
        except BaseException:
            self.process.kill()
            raise
        finally:
            listener.close()

    def send(self, payloads: Sequence[bytes]) -> None:
        """Send messages now."""
        self._sender.sendall(frames(payloads))

    def receive(self, count: int) -> None:
        """Wait for `count` outputs."""
        while count > 0:
            count -= self._data().count(b"\n")

    def through(self, payloads: Sequence[bytes]) -> None:
        """Send messages and wait for as many outputs."""
        self.exchange(payloads, len(payloads))

    def exchange(self, payloads: Sequence[bytes], outputs: int) -> None:
        """Send messages and wait for so many outputs."""
        sending = threading.Thread(target=self.send, args=(payloads,))
        sending.start()
        self.receive(outputs)
        sending.join()

    def warm_up(self, seconds: float, keys: int) -> None:
        """Load it until the JVM has compiled the code that matters: some ten seconds."""
        draw = random.Random(1)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            self.through(messages(10_000, keys, draw))

    def latencies(self, rate: int, keys: int, seconds: float) -> list[float]:
        """Return the seconds from when each message was due until its output came.

        An open loop: a late message is sent at once, and its latency counts from when it was due.
        """
        draw = random.Random(2)
        payloads = messages(int(rate * seconds), keys, draw)
        arrived = [0.0] * len(payloads)

        def receive() -> None:
            missing, rest = len(payloads), b""
            while missing:
                data = self._data()
                now = time.perf_counter()
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    arrived[int(line.split()[1])] = now
                missing -= len(lines)

        receiving = threading.Thread(target=receive)
        receiving.start()
        began = time.perf_counter()
        due = [began + number / rate for number in range(len(payloads))]
        for payload, when in zip(payloads, due, strict=True):
            if (wait := when - time.perf_counter()) > 0:
                time.sleep(wait)
            self.send([payload])
        receiving.join()
        return [end - start for start, end in zip(due, arrived, strict=True)]

    def cpu_seconds(self) -> float:
        """Return the processor time taken so far by all processes of the job that are alive."""
        process = psutil.Process(self.process.pid)
        total = 0.0
        for each in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                times = each.cpu_times()
                total += times.user + times.system
        return total

    def stop(self) -> None:
        """End it in order, so that it can be started again from its checkpoint."""
        self._sender.close()
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait():
            raise SystemExit(f"it ended with {self.process.returncode}: {self.said()}")
        self.close()

    def close(self) -> None:
        """End it at once, and wait until its JVM has ended too."""
        self.process.kill()
        self.process.wait()
        self._sender.close()
        self._receiver.close()
        self._log.close()

    def _data(self) -> bytes:
        data = self._receiver.recv(1 << 20)
        if not data:
            raise SystemExit(f"the job has ended: {self.said()}")
        return data

    def _listening_port(self) -> int:
        while True:
            for line in self.said().splitlines(keepends=True):
                if "listening on" in line and line.endswith("\n"):
                    return int(line.rpartition(":")[2])
            if self.process.poll() is not None:
                raise SystemExit(f"the job has ended: {self.said()}")
            time.sleep(0.02)

    def said(self) -> str:
        """Return what it has written to standard error."""
        return os.pread(self._log.fileno(), 1 << 20, 0).decode(errors="replace")


def messages(count: int, keys: int, draw: random.Random) -> list[bytes]:
    """Return `count` messages, numbered from 0, with keys drawn from `keys` keys."""
    return [b"k%d %d" % (draw.randrange(keys), number) for number in range(count)]
