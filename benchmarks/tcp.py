"""The reference engine end to end over TCP, against a blocking-socket loop written by hand.

``python benchmarks/tcp.py [--rounds N] [--words N] [--seconds S]``: word count at saturation (goal:
at least 0.9 times the loop's throughput), and its latency at 2,000 messages a second (goal: p50 and
p99 at most 1.25 times the loop's). Both run in a process of their own, call the same user
functions, and are fed and read by the same code here.

``--with "--metrics 127.0.0.1:0"`` adds the engine with these options of `wallaroo run`: what they
cost shows. ``{new}`` in them is a new folder for each run: ``--with "--checkpoint {new}/c"``.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

import word_count
from facts import Figures, add_json_option, machine_facts, ratios, side_by_side
from in_process import word_count_by_hand, word_lines

from wallaroo.frames import frame, frames

APPLICATION = Path(__file__).parent.parent / "examples" / "word_count.py"
FIGURES = Figures(__file__)
RATE = 2000  # messages a second, for latency


def serve_by_hand(out_port: int) -> None:
    """Word count over blocking sockets, as one would write it without an engine."""
    decode = word_count.decode_text.decode
    split = word_count.split_into_words.compute_multi
    partition = word_count.first_letter.partition
    count = word_count.count_word.compute
    encode = word_count.encode_count.encode
    states = {key: word_count.WordTotals() for key in word_count.PARTITIONS}
    header = struct.Struct(">I")
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"source by hand listening on 127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr)
    sink = socket.create_connection(("127.0.0.1", out_port))
    sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    source, _ = listener.accept()
    rest = b""
    while data := source.recv(64 * 1024):
        data = rest + data
        position, end = 0, len(data)
        outputs = []
        while position + 4 <= end:
            start = position + 4
            stop = start + header.unpack_from(data, position)[0]
            if stop > end:
                break
            for word in split(decode(data[start:stop])):
                output, _changed = count(word, states[partition(word)])
                if output is not None:
                    outputs.append(encode(output).encode())
            position = stop
        rest = data[position:]
        sink.sendall(b"".join(outputs))


Contenders = dict[str, list[str]]
"""What is measured, each with further options of `wallaroo run`; the loop by hand has none."""


class Served:
    """A contender's process, a connection into it and one out of it.

    Args:
        contender: its name.
        more: further options of `wallaroo run`.
    """

    def __init__(self, contender: str, more: Sequence[str]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        listener = socket.create_server(("127.0.0.1", 0))
        out_port = listener.getsockname()[1]
        if contender == "by hand":
            command = [sys.executable, __file__, "--serve-by-hand", str(out_port)]
        else:
            command = [sys.executable, "-m", "wallaroo", "run", str(APPLICATION), "--in"]
            command += ["127.0.0.1:0", "--out", f"127.0.0.1:{out_port}"]
            command += [one.replace("{new}", self._folder.name) for one in more]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        line = next(line for line in self._process.stderr if "listening on" in line)
        self.sender = socket.create_connection(("127.0.0.1", int(line.rpartition(":")[2])))
        self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.receiver, _ = listener.accept()
        listener.close()

    def close(self) -> None:
        """End it."""
        self.sender.close()
        self._process.terminate()
        self._process.communicate()
        self.receiver.close()
        self._folder.cleanup()


@contextmanager
def closing_all(contenders: Contenders) -> Iterator[Callable[[str], Served]]:
    """Give a function that starts a contender after the last one has ended."""
    with contextlib.ExitStack() as stack:

        def start(contender: str) -> Served:
            stack.close()
            served = Served(contender, contenders[contender])
            stack.callback(served.close)
            return served

        yield start


def saturation(contenders: Contenders, rounds: int, words: int) -> None:
    """Print how fast each contender is when input never ends."""
    lines = word_lines(words, 20_000, seed=1)
    stream = frames(lines)
    expected = sum(map(len, word_count_by_hand(lines)))

    with closing_all(contenders) as start:

        def contender(name: str) -> Callable[[], Callable[[], object]]:
            def prepare() -> Callable[[], object]:
                served = start(name)

                def run() -> None:
                    threading.Thread(target=served.sender.sendall, args=(stream,)).start()
                    missing = expected
                    while missing:
                        missing -= len(served.receiver.recv(1 << 20))

                return run

            return prepare

        seconds = side_by_side({name: contender(name) for name in contenders}, rounds)
    for name, ratio in ratios(seconds, "by hand").items():
        rate = words / statistics.median(seconds[name])
        print(f"  {name:10} {rate:12,.0f} words/s   throughput {1 / ratio:5.2f} x the loop's")
        label = name.replace(" ", "-")
        FIGURES.add(f"throughput/{label}", rate, "words/s", ratio=1 / ratio, baseline="by-hand")


def latencies(served: Served, seconds: float) -> list[float]:
    """Return the seconds from when each message was due until its output came."""
    messages = int(RATE * seconds)
    due: list[float] = []
    began = time.perf_counter() + 0.1
    arrived: list[float] = []

    def receive() -> None:
        while len(arrived) < messages:
            data = served.receiver.recv(1 << 16)
            now = time.perf_counter()
            arrived.extend([now] * data.count(b"\n"))

    receiving = threading.Thread(target=receive)
    receiving.start()
    message = frame(b"word")
    for number in range(messages):
        when = began + number / RATE
        # An open loop: a late message is sent at once, and its latency counts from when it was due.
        if (wait := when - time.perf_counter()) > 0:
            time.sleep(wait)
        served.sender.sendall(message)
        due.append(when)
    receiving.join()
    warm = messages // 10
    return [end - start for start, end in zip(due, arrived, strict=True)][warm:]


def latency(contenders: Contenders, rounds: int, seconds: float) -> None:
    """Print how long a message takes at a moderate rate."""
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    with closing_all(contenders) as start:
        for _ in range(rounds):
            for name in contenders:
                percentiles = statistics.quantiles(latencies(start(name), seconds), n=100)
                figures[name].append((percentiles[49], percentiles[98]))
    base = figures["by hand"]
    for name, rounds_ in figures.items():
        p50, p99 = (statistics.median(column) * 1e6 for column in zip(*rounds_, strict=True))
        paired = zip(rounds_, base, strict=True)
        by_round = [(mine[0] / theirs[0], mine[1] / theirs[1]) for mine, theirs in paired]
        r50, r99 = (statistics.median(column) for column in zip(*by_round, strict=True))
        print(f"  {name:10} p50 {p50:7,.0f} µs ({r50:.2f} x)   p99 {p99:7,.0f} µs ({r99:.2f} x)")
        label = name.replace(" ", "-")
        FIGURES.add(f"p50/{label}", p50, "µs", ratio=r50, baseline="by-hand")
        FIGURES.add(f"p99/{label}", p99, "µs", ratio=r99, baseline="by-hand")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--words", type=int, default=3_000_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each latency run")
    parser.add_argument("--serve-by-hand", type=int, metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("--with", dest="more", metavar="OPTIONS", help="of `wallaroo run`")
    add_json_option(parser)
    options = parser.parse_args()
    if options.serve_by_hand:
        serve_by_hand(options.serve_by_hand)
        return
    contenders: Contenders = {"by hand": [], "reference": []}
    if options.more:
        contenders["with"] = shlex.split(options.more)
    print(machine_facts())
    print(f"word count at saturation, {options.words:,} words, median of {options.rounds} rounds:")
    saturation(contenders, options.rounds, options.words)
    print(f"latency at {RATE:,} messages/s, {options.seconds:g} s, {options.rounds} rounds:")
    latency(contenders, options.rounds, options.seconds)
    FIGURES.write(options.json)


if __name__ == "__main__":
    main()
