"""Kill an engine again and again under load, and count what was lost or doubled (recover-1, -2).

A sender sends rising numbers; the application counts per key; a sink records everything it gets.
Each number's output says how often its key was counted, so the sink's log shows every effect on
state. The sender ends a connection from time to time, and keeps which numbers the engine has
acknowledged by ending its side in order.

Killed at random moments are: the process of the reference engine; for Spark the driver's Python,
its JVM, a Python worker, or all of them at once. Then the run is started again on the same
checkpoint.

    python benchmarks/recovery.py [--engine reference|spark] [--kills N] [--minutes N] [--seed 1]
                       [--rate 2000] [--patience 400]

Each kill has a line: when outputs came again, and what was wrong until then. A run that ends
without having been killed is started again, as a service would be, and the report has its exit code
and its last words. Ctrl-C, SIGTERM and `--minutes` end the kills and print the report. Exit code 0:
no effect on state was lost or doubled, no output and no acknowledged number was lost, and repeated
outputs are the end of those sent before, unchanged and in order.
"""

from __future__ import annotations

import argparse
import math
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
from recovery_outputs import Judge, Receiver

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
        ended: what runs said that ended without having been killed.
    """

    def __init__(self, command: list[str], log: Path) -> None:
        self.ended: list[str] = []
        self._command = command
        self._log = log
        self.start()

    def start(self) -> None:
        """Start a run."""
        with self._log.open("ab") as log:
            self._begin = log.tell()
            self.process = subprocess.Popen(  # Ctrl-C is for the benchmark alone
                self._command, stderr=log, stdout=log, start_new_session=True
            )

    def wait_for_more(self, receiver: Receiver, patience: float) -> bool:
        """Wait for an output; a run that ends by itself is started again, as a service would be.

        Returns:
            Whether there was one.
        """
        before = receiver.count
        end = time.monotonic() + patience
        while receiver.count == before:
            if time.monotonic() > end:
                print(f"    no output in {patience:.0f} s; the log is {self._log}", flush=True)
                return False
            if self.process.poll() is not None:
                self._note_end()
                self.start()
            time.sleep(0.05)
        return True

    def _note_end(self) -> None:
        """Keep a run's exit code, and its last line."""
        with self._log.open("rb") as log:
            log.seek(self._begin)
            lines = log.read().decode(errors="replace").split("\n")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "nothing")
        self.ended.append(f"exit {self.process.returncode}: {said}")
        print(f"    the run ended by itself, {self.ended[-1]}", flush=True)

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
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="no kills after this time (no limit)"
    )
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
    judge = Judge()
    run = Run(command, directory / "log")
    sender = Sender(port, options.rate)
    killed: Counter[str] = Counter()
    end = time.monotonic() + 60 * options.minutes
    stopping = threading.Event()
    for stop in (signal.SIGINT, signal.SIGTERM):  # a shell's background job has no SIGINT
        signal.signal(stop, lambda *_: stopping.set())
    try:
        went_on = run.wait_for_more(receiver, options.patience)
        while went_on and killed.total() < options.kills and time.monotonic() < end:
            if stopping.wait(draw.uniform(0.0, PAUSE[options.engine])):
                print("no more kills", flush=True)
                break
            targets = TARGETS[options.engine]
            target = targets[killed.total() % len(targets)]
            if not run.kill(target):
                continue  # it is not there yet
            killed[target] += 1
            since = time.monotonic()
            if target != "worker":
                run.process.wait()
                run.start()
            went_on = run.wait_for_more(receiver, options.patience)
            judge.look(receiver.connections)
            print(
                f"{killed.total():3} {target} killed; outputs again after "
                f"{time.monotonic() - since:.1f} s; {len(judge.outputs)} outputs, "
                f"{len(judge.faults)} faults; runs ended by themselves: {len(run.ended)}",
                flush=True,
            )
        sender.running = False
        sender.thread.join()
        run.process.send_signal(signal.SIGTERM)
        code = run.process.wait()
    finally:
        if run.process.poll() is None:
            run.kill("all")
    print(f"runs that ended by themselves, and were started again: {len(run.ended)}")
    for said, times in Counter(run.ended).items():
        print(f"    {times} times {said}")
    if not went_on:
        judge.faults.append(f"no output in {options.patience:.0f} s after the last kill")
    receiver.wait_for_ends()
    judge.look(receiver.connections)
    return report(judge, sender, killed, code, directory, options.json)


def report(
    judge: Judge,
    sender: Sender,
    killed: Counter[str],
    code: int,
    directory: Path,
    kept: Path | None,
) -> int:
    """Print what happened; return 0 if there was no fault."""
    numbers = judge.numbers()
    lost = len(sender.acknowledged.difference(numbers))
    doubled = len(numbers) - len(set(numbers))
    for fault in judge.faults[:5]:
        print(f"FAULT: {fault}")
    print(f"kills: {dict(killed)}; last exit code {code}; log in {directory}")
    print(f"sent {sender.sent}, received and logged {len(numbers)} (the rest was in no log)")
    print(f"acknowledged {len(sender.acknowledged)}; of these lost: {lost}")
    print(f"effects lost or doubled: {len(judge.faults)} places, {doubled} numbers twice")
    print(f"outputs repeated: {judge.repeated}")
    figures = Figures(__file__)
    for name, number in (
        ("kills", killed.total()),
        ("faults", len(judge.faults)),
        ("lost", lost),
        ("doubled", doubled),
    ):
        figures.add(name, number, "count")
    share = judge.repeated / max(1, len(numbers))
    figures.add("repeated", judge.repeated, "outputs", ratio=share, baseline="all")
    figures.write(kept)
    return 1 if judge.faults or lost or doubled or code else 0


if __name__ == "__main__":
    sys.exit(main())
