"""Is memory flat while many messages pass and the sink is slow?

``python benchmarks/memory.py [--messages N]``: messages go through ``wallaroo run`` as fast as
back-pressure allows, and the sink's reader pauses, so that the engine is always full. The memory of
its process is measured during the first tenth, after its buffers are full, and until the end (goal:
it grows less than 50 MB with 10,000,000 messages).
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
from facts import Figures, add_json_option, machine_facts

from wallaroo.frames import frame

APPLICATION = Path(__file__).parent.parent / "examples" / "word_count.py"
GOAL = 50  # MB
KEYS = 5000  # different words: state that does not grow
READ = 256 * 1024  # bytes the sink's peer takes between two pauses
PAUSE = 0.05  # seconds


def resident(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    return float(psutil.Process(pid).memory_info().rss / (1 << 20))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=10_000_000)
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts())
    sink = socket.create_server(("127.0.0.1", 0))
    command = [sys.executable, "-m", "wallaroo", "run", str(APPLICATION), "--in", "127.0.0.1:0"]
    command += ["--out", f"127.0.0.1:{sink.getsockname()[1]}", "--stop-timeout", "600"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    port = next(int(line.rpartition(":")[2]) for line in process.stderr if "listening on" in line)
    source = socket.create_connection(("127.0.0.1", port))
    peer, _ = sink.accept()
    sending = threading.Thread(target=send, args=(source, options.messages))
    sending.start()

    outputs = taken = 0
    samples: list[tuple[int, float]] = []
    began = time.perf_counter()
    while outputs < options.messages:
        data = peer.recv(1 << 16)
        outputs += data.count(b"\n")
        taken += len(data)
        if taken >= READ:
            taken = 0
            samples.append((outputs, resident(process.pid)))
            time.sleep(PAUSE)
    seconds = time.perf_counter() - began
    sending.join()
    source.close()
    process.terminate()
    _, errors = process.communicate()
    first = [held for passed, held in samples if passed <= options.messages / 10]
    later = [held for passed, held in samples if passed > options.messages / 10]
    growth = max(later) - max(first)
    print(f"{outputs:,} messages in {seconds:.0f} s, {len(samples)} samples")
    print(f"resident: at most {max(first):.1f} MB in the first tenth, {max(later):.1f} MB after it")
    print(f"growth {growth:+.1f} MB (goal: under {GOAL}): {'met' if growth < GOAL else 'NOT MET'}")
    print(errors.strip().splitlines()[-1].strip(), f"(exit {process.returncode})")
    figures = Figures(__file__)
    figures.add("first-tenth", max(first), "MB")
    figures.add("later", max(later), "MB", ratio=max(later) / max(first), baseline="first-tenth")
    figures.write(options.json)


def send(source: socket.socket, messages: int) -> None:
    """Send so many messages, one word each."""
    block = b"".join([frame(b"word%d" % number) for number in range(KEYS)])
    for _ in range(messages // KEYS):
        source.sendall(block)
    for number in range(messages % KEYS):
        source.sendall(frame(b"word%d" % number))


if __name__ == "__main__":
    main()
