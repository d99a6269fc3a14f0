"""Kill an engine again and again under load, and count what was lost or doubled (recover-1, -2).

A sender sends rising numbers; the application counts per key; a sink records everything it gets.
Each number's output says how often its key was counted, so the sink's log shows every effect on
state. The sender ends a connection from time to time, and keeps which numbers the engine has
acknowledged by ending its side in order.

Killed at random moments are: the process of the reference engine; for Spark the driver's Python,
its JVM, a Python worker, or all of them at once. Then the run is started again on the same
checkpoint.

    python benchmarks/recovery.py [--engine reference|spark] [--kills N] [--seed 1] [--rate 2000]
                       [--patience 400]

Ctrl-C ends the kills and prints the report. Exit code 0: no effect on state was lost or doubled, no
output and no acknowledged number was lost, and repeated outputs are the end of those sent before,
unchanged and in order.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import psutil
from facts import Figures, add_json_option, machine_facts

TARGETS = {"reference": ("driver",), "spark": ("driver", "jvm", "worker", "all")}
PAUSE = {"reference": 0.4, "spark": 2.0}  # seconds from an output to a kill, at most
_BATCHES = 20  # of numbers, on one connection
APPLICATION = """
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode()

class Count:
    def __init__(self):
        self.count = 0

@wallaroo.state_computation(name="count")
def count(message, state):
    state.count += 1
    return f"{message} {state.count}", True

@wallaroo.state_computation(name="total")
def total(message, state):
    state.count += 1
    return f"{message} {state.count}", True

@wallaroo.partition
def key(message):
    return str(int(message) % 97)

@wallaroo.encoder
def encode(message):
    return message + "\\n"

def application_setup(args):
    (source,), (sink,) = (
        wallaroo.tcp_parse_input_addrs(args), wallaroo.tcp_parse_output_addrs(args)
    )
    return (
        wallaroo.ApplicationBuilder("recovery")
        .new_pipeline("numbers", wallaroo.TCPSourceConfig(*source, decode))
        .to_state_partition(count, Count, "counts", key)
        .to_stateful(total, Count, "total")
        .to_sink(wallaroo.TCPSinkConfig(*sink, encode))
        .build()
    )
"""


class Receiver:
    """Records the lines of each connection."""

    def __init__(self) -> None:
        self.connections: list[list[str]] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def count(self) -> int:
        """Lines so far."""
        return sum(map(len, self.connections))

    def _accept(self) -> None:
        while True:
            connection, _ = self._server.accept()
            lines: list[str] = []
            self.connections.append(lines)
            threading.Thread(target=self._read, args=(connection, lines), daemon=True).start()

    def _read(self, connection: socket.socket, lines: list[str]) -> None:
        rest = b""
        while True:
            try:
                data = connection.recv(1 << 16)
            except OSError:
                return
            if not data:
                return
            *whole, rest = (rest + data).split(b"\n")
            lines.extend([line.decode() for line in whole])


class Sender:
    """Sends each number once to the current listener.

    Attributes:
        sent: all numbers before this one were sent.
        acknowledged: the numbers of connections that the engine has closed in order.
    """

    def __init__(self, port: int, rate: int) -> None:
        self.sent = 0
        self.acknowledged: set[int] = set()
        self.running = True
        self._port = port
        self._rate = rate
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while self.running:
            try:
                with socket.create_connection(("127.0.0.1", self._port)) as connection:
                    self._send(connection)
            except OSError:
                time.sleep(0.01)

    def _send(self, connection: socket.socket) -> None:
        """Send for a while, end in order, and see whether that is answered."""
        first = self.sent
        for _ in range(_BATCHES):
            batch = range(self.sent, self.sent + max(1, self._rate // 100))
            payloads = [str(number).encode() for number in batch]
            self.sent = batch.stop  # what a dead engine may have got is not sent again
            connection.sendall(b"".join([struct.pack(">I", len(p)) + p for p in payloads]))
            time.sleep(0.01)
        connection.shutdown(socket.SHUT_WR)
        if not connection.recv(1):
            self.acknowledged.update(range(first, self.sent))


def children(pid: int) -> list[int]:
    """Return the process's children."""
    try:
        return [child.pid for child in psutil.Process(pid).children()]
    except psutil.NoSuchProcess:
        return []


class Run:
    """The current run and its processes; `start` starts the next one.

    Attributes:
        process: the process.
        failed: how many runs have ended by themselves.
    """

    def __init__(self, command: list[str], log: Path) -> None:
        self.failed = 0
        self._command = command
        self._log = log
        self.start()

    def start(self) -> None:
        """Start a run."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._command, stderr=log, stdout=log)

    def wait_for_more(self, receiver: Receiver, patience: float) -> None:
        """Wait for an output; a run that ends by itself is started again, as a service would be."""
        before = receiver.count
        end = time.monotonic() + patience
        while receiver.count == before:
            if time.monotonic() > end:
                raise SystemExit(f"waited {patience:.0f} s for an output; the log is {self._log}")
            if self.process.poll() is not None:
                last = self._log.read_text(errors="replace").splitlines()[-1:]
                print(f"    the run ended by itself: {''.join(last).strip()}", flush=True)
                self.failed += 1
                self.start()
            time.sleep(0.05)

    def jvm(self) -> int | None:
        """Return the JVM's process id."""
        return next(iter(children(self.process.pid)), None)

    def workers(self) -> list[int]:
        """Return the Python workers, which are the daemon's children."""
        jvm = self.jvm()
        return [] if jvm is None else [w for d in children(jvm) for w in children(d)]

    def kill(self, target: str) -> bool:
        """Kill one of its processes; return whether it was running."""
        jvm, workers = self.jvm(), self.workers()
        victims: dict[str, list[int | None]] = {
            "driver": [self.process.pid],
            "jvm": [jvm],
            "worker": [*workers[-1:]],
            "all": [self.process.pid, jvm, *workers],
        }
        pids = [pid for pid in victims[target] if pid is not None]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        return bool(pids)


def main() -> int:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=TARGETS, default="reference")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument(
        "--patience", type=float, default=400, help="seconds to wait for an output (400)"
    )
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts())
    draw = random.Random(options.seed)
    directory = Path(tempfile.mkdtemp(prefix="wallaroo-recovery-"))
    app = directory / "recovery.py"
    app.write_text(APPLICATION)
    receiver = Receiver()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        *(sys.executable, "-m", "wallaroo", "run", str(app), "--engine", options.engine),
        *("--checkpoint", str(directory / "checkpoint")),
        *("--partitions", "2", "--progress", "none", "--stop-timeout", "60"),
        *(("--master", options.master) if options.engine == "spark" else ()),
        *(("--checkpoint-interval", "0.2") if options.engine == "reference" else ()),
        *("--in", f"127.0.0.1:{port}", "--out", f"127.0.0.1:{receiver.port}"),
    ]
    run = Run(command, directory / "log")
    sender = Sender(port, options.rate)
    killed: Counter[str] = Counter()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job has none
    try:
        try:
            while killed.total() < options.kills:
                run.wait_for_more(receiver, options.patience)
                time.sleep(draw.uniform(0.0, PAUSE[options.engine]))
                targets = TARGETS[options.engine]
                target = targets[killed.total() % len(targets)]
                if not run.kill(target):
                    continue
                killed[target] += 1
                outputs = f"{receiver.count} outputs so far"
                print(f"{killed.total():3} killed {target}; {outputs}", flush=True)
                if target != "worker":
                    run.process.wait()
                    run.start()
        except KeyboardInterrupt:
            print("no more kills", flush=True)
        run.wait_for_more(receiver, options.patience)
        sender.running = False
        sender.thread.join()
        run.process.send_signal(signal.SIGTERM)
        code = run.process.wait()
    finally:
        if run.process.poll() is None:
            run.kill("all")
    print(f"runs that ended by themselves, and were started again: {run.failed}")
    return report(receiver, sender, killed, code, directory, options.json)


def report(
    receiver: Receiver,
    sender: Sender,
    killed: Counter[str],
    code: int,
    directory: Path,
    kept: Path | None,
) -> int:
    """Print what happened; return 0 if there was no fault."""
    received: list[str] = []
    repeated = 0
    faults = 0
    for lines in receiver.connections:
        # The repeats on a new connection must be the unchanged end of the outputs before it.
        overlap = received.index(lines[0]) if lines and lines[0] in set(received) else len(received)
        again = received[overlap:][: len(lines)]  # a connection may end before all is repeated
        if lines[: len(again)] != again:
            print(f"FAULT: repeated otherwise than it was: {again[:3]} … {lines[:3]}")
            faults += 1
        repeated += len(again)
        received += lines[len(again) :]
    counts: Counter[int] = Counter()
    for place, line in enumerate(received, 1):
        number, count, total = map(int, line.split())
        counts[number % 97] += 1
        if (count, total) != (counts[number % 97], place):
            print(f"FAULT: {line!r} is output {place}, and {counts[number % 97]} of its key")
            faults += 1
            break
    lost = len(sender.acknowledged.difference([int(line.split()[0]) for line in received]))
    numbers = [int(line.split()[0]) for line in received]
    doubled = len(numbers) - len(set(numbers))
    print(f"kills: {dict(killed)}; last exit code {code}; log in {directory}")
    print(f"sent {sender.sent}, received and logged {len(received)} (the rest was in no log)")
    print(f"acknowledged {len(sender.acknowledged)}; of these lost: {lost}")
    print(f"effects lost or doubled: {faults} places, {doubled} numbers twice")
    print(f"outputs repeated: {repeated}")
    figures = Figures(__file__)
    for name, number in (
        ("kills", killed.total()),
        ("faults", faults),
        ("lost", lost),
        ("doubled", doubled),
    ):
        figures.add(name, number, "count")
    figures.add("repeated", repeated, "outputs", ratio=repeated / len(received), baseline="all")
    figures.write(kept)
    return 1 if faults or lost or doubled or code else 0


if __name__ == "__main__":
    sys.exit(main())
