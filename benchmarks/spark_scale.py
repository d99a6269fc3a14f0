"""What the Spark engine costs as work grows: `spark_counting.py` over TCP.

``python benchmarks/spark_scale.py [PART …]``, all parts by default:

- ``cores``: messages a second with 1 and 2 local cores, at 1,000 keys.
- ``keys``: messages a second with 10**2, 10**4 and 10**6 keys, each of which has its state already.
- ``entities``: time of a micro-batch of 100 messages when there are 10**3 to 10**6 entities: send
  to last output; median and largest, over long enough that Spark's snapshots and RocksDB's
  compactions fall into it; then the same after a restart, whose first batches find caches cold.
  Also what memory all processes of the run take.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import tempfile
import time
from pathlib import Path

import psutil
from facts import Figures, run_parts
from spark_served import Served, messages

FIGURES = Figures(__file__)
TOUCHED = 100  # messages of a micro-batch
PRELOAD = 200_000  # messages on the way at a time, while entities are made


def cores(options: argparse.Namespace) -> None:
    """Print messages a second by number of cores."""
    base = 0.0
    for count in (1, 2):
        rate = statistics.median(
            [rate_of(options, count, keys=1000, preload=False) for _ in range(options.rounds)]
        )
        base = base or rate
        print(f"  {count} cores {rate:9,.0f} messages/s   {rate / base:.2f} x", flush=True)
        FIGURES.add(f"cores/{count}", rate, "messages/s", ratio=rate / base, baseline="cores/1")


def keys(options: argparse.Namespace) -> None:
    """Print messages a second by number of keys."""
    base = 0.0
    for exponent in (2, 4, 6):
        rate = statistics.median(
            [
                rate_of(options, options.cores, keys=10**exponent, preload=True)
                for _ in range(options.rounds)
            ]
        )
        base = base or rate
        print(f"  10^{exponent} keys {rate:9,.0f} messages/s   {rate / base:.2f} x", flush=True)
        name = f"keys/{10**exponent}"
        FIGURES.add(name, rate, "messages/s", ratio=rate / base, baseline="keys/100")


def rate_of(options: argparse.Namespace, count: int, *, keys: int, preload: bool) -> float:
    """Return messages a second on so many cores, once the JVM is warm."""
    served = Served("wallaroo", master=f"local[{count}]", partitions=count)
    with contextlib.closing(served):
        if preload:
            touch_all(served, keys)
        served.warm_up(options.warm_up, keys)
        payloads = messages(options.messages, keys, random.Random(1))
        began = time.perf_counter()
        served.through(payloads)
        return float(options.messages / (time.perf_counter() - began))


def entities(options: argparse.Namespace) -> None:
    """Print the time of a micro-batch by number of entities."""
    for exponent in range(options.smallest, options.largest + 1):
        count = 10**exponent
        with tempfile.TemporaryDirectory(prefix="spark-scale-") as directory:
            served = start(options, Path(directory))
            with contextlib.closing(served):
                touch_all(served, count)
                times = batch_times(served, count, options.seconds)
                memory = resident(served.process.pid)
                served.stop()
            print(
                f"  10^{exponent} entities: {shown(times)}; {memory:,.0f} MB of memory", flush=True
            )
            keep_times(f"entities/{count}", times)
            FIGURES.add(f"entities/{count}/memory", memory, "MB")
            served = start(options, Path(directory))
            with contextlib.closing(served):
                started = time.perf_counter()
                times = batch_times(served, count, options.seconds / 2)
                served.stop()
            first, *others = times
            print(
                f"       restarted: {shown(others)}; the first {first:,.0f} ms, "
                f"{started - served.began + first / 1000:.1f} s after the command",
                flush=True,
            )
            keep_times(f"entities/{count}/restarted", others)
            first_output = started - served.began + first / 1000
            FIGURES.add(f"entities/{count}/first-output", first_output, "s")


def start(options: argparse.Namespace, checkpoint: Path) -> Served:
    """Start the job on a checkpoint."""
    return Served(
        "wallaroo",
        master=f"local[{options.cores}]",
        partitions=options.cores,
        options=("--checkpoint", str(checkpoint)),
    )


def touch_all(served: Served, count: int) -> None:
    """Make so many entities."""
    for first in range(0, count, PRELOAD):
        last = min(first + PRELOAD, count)
        served.through([b"k%d 0" % number for number in range(first, last)])


def batch_times(served: Served, count: int, seconds: float) -> list[float]:
    """Return the milliseconds that each of many micro-batches took, one after the other."""
    draw = random.Random(2)
    times: list[float] = []
    end = 0.0
    while not times or time.perf_counter() < end:
        payloads = messages(TOUCHED, count, draw)
        began = time.perf_counter()
        served.through(payloads)
        now = time.perf_counter()
        times.append(1000 * (now - began))
        end = end or now + seconds  # the first of a run waits for Spark
    return times


def resident(pid: int) -> float:
    """Return the megabytes that a process and all below it hold and share with nobody else."""
    total = 0
    for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            total += process.memory_full_info().uss
    return total / 1e6


def keep_times(name: str, times: list[float]) -> None:
    """Keep median and largest."""
    FIGURES.add(f"{name}/median", statistics.median(times), "ms")
    FIGURES.add(f"{name}/largest", max(times), "ms")


def shown(times: list[float]) -> str:
    """Return median and largest."""
    return (
        f"median {statistics.median(times):,.0f} ms, largest {max(times):,.0f} ms of {len(times)}"
    )


PARTS = {part.__name__: part for part in (cores, keys, entities)}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="of each rate (3)")
    parser.add_argument("--cores", type=int, default=2, help="for keys and entities (2)")
    parser.add_argument("--warm-up", type=float, default=12.0, help="seconds (12)")
    parser.add_argument("--messages", type=int, default=500_000, help="of a rate (500,000)")
    parser.add_argument("--seconds", type=float, default=90.0, help="of micro-batches (90)")
    parser.add_argument("--smallest", type=int, default=3, help="entities, as a power of 10 (3)")
    parser.add_argument("--largest", type=int, default=6, help="entities, as a power of 10 (6)")
    run_parts(parser, PARTS, FIGURES)


if __name__ == "__main__":
    main()
