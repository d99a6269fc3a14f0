"""What checkpoints of very many entities cost the reference engine.

``python benchmarks/checkpoints.py [--entities N]``: a million entities of which one in a hundred
changes between two checkpoints. For how long one stops the thread that processes messages (goal:
10 ms at p99), and how long a restart takes (goal: 10 s). What ``--checkpoint`` costs a served run:
``python benchmarks/tcp.py --with "--checkpoint {new}/c"``.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from facts import Figures, add_json_option, machine_facts
from wallaroo_reference.cells import Moment
from wallaroo_reference.checkpoints.collecting import Collector, Packed, blobs_of
from wallaroo_reference.checkpoints.head import CellsHead, Head
from wallaroo_reference.checkpoints.recovery import Recovery
from wallaroo_reference.compiled.machine import Compiled

import wallaroo
from wallaroo.topology import Application

FIGURES = Figures(__file__)
CHANGED = 100  # one entity in so many changes between two checkpoints
CHECKPOINTS = 10
SLICE = 0.002  # seconds, as in `wallaroo_reference.serving.checkpointing`
AT_ONCE = 50  # messages between two slices


@wallaroo.decoder(header_length=4, length_fmt=">I")
def number_of(payload: bytes) -> int:
    """Decode."""
    return int(payload)


class Tally:
    """A small state."""

    def __init__(self) -> None:
        self.count = 0
        self.last = ""


@wallaroo.state_computation(name="tally")
def tally(number: int, state: Tally) -> tuple[None, bool]:
    """Change the state."""
    state.count += 1
    state.last = f"message {number}"
    return None, True


@wallaroo.partition
def itself(number: int) -> str:
    """Route by the number."""
    return f"key {number}"


def tallying() -> Application:
    """Return an application with an entity for each number."""
    builder = wallaroo.ApplicationBuilder("tallying")
    builder.new_pipeline("numbers", wallaroo.TCPSourceConfig("127.0.0.1", 0, number_of))
    return builder.to_state_partition(tally, Tally, "tallies", itself).done().build()


class Stored:
    """A machine with very many entities, and its checkpoint."""

    def __init__(self, count: int, directory: Path) -> None:
        self.stops: list[float] = []  # seconds for which the thread did not process
        self._application = tallying()
        self._directory = directory
        self._draw = random.Random(1)
        self._count = count
        self._machine = Compiled(self._application, keeps=True)
        self._recovery = self._opened()
        self._collector = Collector(self._machine.cells())
        self._blob = 0

    def fill(self) -> None:
        """Make all entities, and the first checkpoint, which has all of them."""
        for start in range(0, self._count, 10_000):
            self._feed(range(start, min(start + 10_000, self._count)))
        gc.collect()
        gc.freeze()  # as `wallaroo run` does after a start
        self.checkpoint()
        self.stops.clear()

    def change(self) -> None:
        """Change some of the entities."""
        self._feed(range(self._count // CHANGED))

    def checkpoint(self) -> None:
        """Make a checkpoint as a served run does, with messages between the slices."""
        self._collector.begin()
        while not self._stopped(lambda: self._collector.go_on(SLICE)):
            self._few()
        packed = self._stopped(lambda: self._collector.finish(self._blob))
        writing = threading.Thread(target=self._write, args=(packed, self._machine.moment()))
        writing.start()
        while writing.is_alive():  # it takes the interpreter's lock now and then
            self._stopped(self._few)

    def restart(self) -> float:
        """Return how many seconds a restart takes to have the state again."""
        self._recovery.close()
        self._machine = Compiled(self._application, keeps=True)
        gc.unfreeze()
        gc.collect()
        began = time.perf_counter()
        self._recovery = self._opened()
        self._recovery.restore(self._machine)
        took = time.perf_counter() - began
        assert sum([cells.count() for cells in self._machine.cells()]) == self._count
        return took

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._recovery.store.size()

    def close(self) -> None:
        """Close the checkpoint."""
        self._recovery.close()

    def _opened(self) -> Recovery:
        return Recovery(self._directory, self._application, partitions=None, log_bytes=1 << 30)

    def _feed(self, numbers: Iterable[int]) -> None:
        payloads = [b"%d" % number for number in numbers]
        self._recovery.log.append("numbers", payloads)
        self._machine.feed("numbers", payloads)

    def _few(self) -> None:
        self._feed([self._draw.randrange(self._count // CHANGED) for _ in range(AT_ONCE)])

    def _stopped(self, work: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        result = work()
        self.stops.append(time.perf_counter() - began)
        return result

    def _write(self, packed: list[Packed], moment: Moment) -> None:
        (cells,) = self._machine.cells()
        blobs = blobs_of([cells], packed)
        self._blob += len(blobs)
        head = Head(
            at=time.time_ns(),
            moment=moment,
            cells=[CellsHead(cells.kind, cells.name, self._count)],
            sinks={},
            logged={},
            first_blob=self._collector.first_blob,
            next_blob=self._blob,
        )
        self._recovery.log.sync()
        self._recovery.store.write(head, blobs)
        self._recovery.log.drop_before(head.moment.sequence)


def entities(count: int, directory: Path) -> None:
    """Print how long checkpoints stop the machine, and how long a restart takes."""
    stored = Stored(count, directory / "entities")
    stored.fill()
    for _ in range(CHECKPOINTS):
        stored.change()
        stored.checkpoint()
    stops = sorted(stored.stops)
    p99, longest = stops[len(stops) * 99 // 100] * 1e3, stops[-1] * 1e3
    print(f"  a stop: p50 {statistics.median(stops) * 1e3:.1f} ms, p99 {p99:.1f} ms", end="")
    print(f", longest {longest:.1f} ms ({len(stops)} in {CHECKPOINTS} checkpoints)")
    print(f"  the file: {stored.size / 2**20:,.0f} MiB")
    took = stored.restart()
    print(f"  a restart: {took:.1f} s")
    stored.close()
    for name, figure in (("stop/p99", p99), ("stop/longest", longest)):
        FIGURES.add(name, figure, "ms")
    FIGURES.add("restart", took, "s")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entities", type=int, default=1_000_000)
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts())
    print(f"{options.entities:,} entities, one in {CHANGED} changed:")
    with tempfile.TemporaryDirectory(prefix="wallaroo-checkpoints-") as name:
        entities(options.entities, Path(name))
    FIGURES.write(options.json)


if __name__ == "__main__":
    main()
