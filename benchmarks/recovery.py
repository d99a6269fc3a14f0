"""Kill an engine again and again under load, and count what was lost or doubled (recover-1, -2).

A sender sends rising numbers; the application counts per key; a sink records everything it gets.
Each number's output says how often its key was counted, so the sink's log shows every effect on
state. The sender ends a connection from time to time, and keeps which numbers the engine has
acknowledged by ending its side in order.

Killed at random moments are: the process of the reference engine; for Spark the driver's Python,
its JVM, a Python worker, or all of them at once. Then the run is started again on the same
checkpoint.

    python benchmarks/recovery.py [--engine reference|spark] [--kills N] [--minutes N] [--seed 1]
                       [--rate 2000] [--patience 400] [--resume]
                       [--kafka [--broker-kills N] [--cluster [--supervise | --elastic]]]

Each kill has a line: when outputs came again, and what was wrong until then. A run that ends
without having been killed is started again, as a service would be, and the report has its exit code
and its last words. Ctrl-C, SIGTERM and `--minutes` end the kills and print the report. Exit code 0:
no effect on state was lost or doubled, no output and no acknowledged number was lost, and repeated
outputs are the end of those sent before, unchanged and in order. With --resume the sink's peer
remembers what it has (sink-9); it is killed too, alone and together with the run, and no output may
come again. With --kafka it is another application and another proof (`recovery_kafka.py`). With
--cluster Spark is a standalone cluster, whose executors, workers and master are killed too
(`recovery_cluster.py`); --seed says with which it begins. With --supervise a worker runs the
driver, which is killed in three ways; with --elastic an executor comes and goes, --kills times, and
nothing is killed.
"""

from __future__ import annotations

import argparse
import itertools
import math
import socket
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import recovery_kafka
from facts import Figures, add_json_option, machine_facts
from recovery_outputs import Judge, Receiver, Remembering
from recovery_runs import TARGETS, Run, kill_again

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
        .to_sink(wallaroo.TCPSinkConfig(*sink, encode, resume="--resume" in args))
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
    parser.add_argument(
        "--resume", action="store_true", help="the sink's peer remembers, and is killed too"
    )
    parser.add_argument("--kafka", action="store_true", help="from Kafka to Kafka, exactly once")
    parser.add_argument(
        "--broker-kills", type=int, default=0, help="with --kafka: kills of the broker, after all"
    )
    parser.add_argument(
        "--cluster", action="store_true", help="with --kafka: Spark is a cluster of two workers"
    )
    parser.add_argument(
        "--supervise", action="store_true", help="with --cluster: a worker runs the driver"
    )
    parser.add_argument(
        "--elastic", action="store_true", help="with --cluster: executors come and go"
    )
    add_json_option(parser)
    options = parser.parse_args()
    if options.cluster and not (options.kafka and options.engine == "spark"):
        parser.error("--cluster goes with --kafka --engine spark")
    if (options.supervise or options.elastic) and not options.cluster:
        parser.error("--supervise and --elastic go with --cluster")
    print(machine_facts(), flush=True)
    directory = Path(tempfile.mkdtemp(prefix="wallaroo-recovery-"))
    engine = ["--engine", options.engine, "--partitions", "2", "--progress", "none"]
    engine += ["--checkpoint", str(directory / "checkpoint"), "--stop-timeout", "60"]
    if options.engine == "spark":
        engine += [] if options.cluster else ["--master", options.master]
    else:
        engine += ["--checkpoint-interval", "0.2"]
    if options.kafka:
        return recovery_kafka.kill(options, engine, directory)
    return kill_over_tcp(options, engine, directory)


def kill_over_tcp(options: argparse.Namespace, engine: list[str], directory: Path) -> int:
    """Kill a run that is sent numbers over TCP; return an exit code."""
    app = directory / "recovery.py"
    app.write_text(APPLICATION)
    remembering = Remembering(directory / "stored") if options.resume else None
    receiver = remembering or Receiver()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "wallaroo", "run", str(app), *engine]
    command += ["--in", f"127.0.0.1:{port}", "--out", f"127.0.0.1:{receiver.port}"]
    command += ["--", "--resume"] * options.resume
    judge = Judge()

    def so_far() -> str:
        judge.look(receiver.connections)
        return f"{len(judge.outputs)} outputs, {len(judge.faults)} faults"

    run = Run(command, directory / "log")
    sender = Sender(port, options.rate)
    victims: list[tuple[str, Callable[[str], bool]]]
    victims = [(target, run.kill_and_start) for target in TARGETS[options.engine]]
    if remembering is not None:
        victims.append(("peer", lambda _: remembering.kill_and_start()))
        all_of_it = partial(run.kill_and_start, TARGETS[options.engine][-1])
        victims.append(("both", lambda _: remembering.kill_and_start(all_of_it)))
    victims = [*itertools.islice(itertools.cycle(victims), options.kills)]
    try:
        killed, went_on = kill_again(run, victims, receiver, options, so_far)
        sender.running = False
        sender.thread.join()
        code = run.stop()
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
