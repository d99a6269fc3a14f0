"""The Spark engine against the same job written by hand with `transformWithState`, side by side.

``python benchmarks/spark_speed.py [PART …]``, all parts by default:

- ``start``: seconds from the command to the first output. Goal: 12 on two cores.
- ``latency``: at 500 messages a second, one stateful step, send to sink. Goal: p50 and p99 at most
  0.75 times those by hand; 150 ms is the aim.
- ``chain``: latency of two state partitions in a row. Goal: 1.8 times that of one.
- ``throughput``: at 1,000 keys. Goal: twice that by hand, three times is the aim; also the ratio to
  the floor, where counts are in the memory of a worker and lost with it.
- ``cases``: bounded cases in jobs of 500, by number of state partitions in a row. Goal: 2 ms a case
  as a batch job, 15 ms as a stream of five batches.

All jobs get their input over TCP and send what comes out over TCP (`spark_served.py`); by hand is
`spark_by_hand.py`. Every job is started anew for each round, and loaded until the JVM is warm.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from facts import Figures, ratios, run_parts
from spark_served import Served, messages

FIGURES = Figures(__file__)
RATE = 500  # messages a second, for latency
KEYS = 1000
CASES = 500  # in a job
WARM_UP_PASSES = 3  # of what is then measured: so long the JVM still compiles


def start(options: argparse.Namespace) -> None:
    """Print how long it takes until the first output is there."""
    for job in ("wallaroo", "row"):
        taken = []
        for _ in range(options.rounds):
            with serving(job, options, partitions=options.latency_partitions) as served:
                served.through([b"k 0"])
                taken.append(time.perf_counter() - served.began)
        goal = "   (goal: 12 s)" if job == "wallaroo" else ""
        print(f"  {job:8} {statistics.median(taken):5.1f} s, {shown(taken)}{goal}", flush=True)
        FIGURES.add(f"start/{job}", statistics.median(taken), "s")


def latency(options: argparse.Namespace) -> None:
    """Print latencies, and their ratios to those by hand."""
    compare_latency(
        options,
        {"row": ("row", ()), "wallaroo": ("wallaroo", ())},
        "(goal: 0.75 x both, below 150 ms)",
    )


def chain(options: argparse.Namespace) -> None:
    """Print what a second state partition adds."""
    compare_latency(
        options,
        {"one": ("wallaroo", ("--steps", "1")), "two": ("wallaroo", ("--steps", "2"))},
        "(goal: 1.8 x)",
    )


def compare_latency(
    options: argparse.Namespace, contenders: dict[str, tuple[str, Sequence[str]]], goal: str
) -> None:
    """Print latencies of contenders, taken in turns, and their ratios to the first one's."""
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for _ in range(options.rounds):
        for name, (job, arguments) in contenders.items():
            with serving(
                job, options, partitions=options.latency_partitions, arguments=arguments
            ) as served:
                served.latencies(RATE, KEYS, options.warm_up)
                percentiles = statistics.quantiles(
                    served.latencies(RATE, KEYS, options.seconds), n=100
                )
            figures[name].append((1000 * percentiles[49], 1000 * percentiles[98]))
    base = next(iter(figures))
    for name, rounds in figures.items():
        p50, p99 = (statistics.median(column) for column in zip(*rounds, strict=True))
        by_round = [
            (mine[0] / theirs[0], mine[1] / theirs[1])
            for mine, theirs in zip(rounds, figures[base], strict=True)
        ]
        r50, r99 = (statistics.median(column) for column in zip(*by_round, strict=True))
        print(
            f"  {name:8} p50 {p50:6.0f} ms ({r50:.2f} x)   p99 {p99:6.0f} ms ({r99:.2f} x)"
            f"   {goal if name != base else ''}",
            flush=True,
        )
        FIGURES.add(f"p50/{name}", p50, "ms", ratio=r50, baseline=base)
        FIGURES.add(f"p99/{name}", p99, "ms", ratio=r99, baseline=base)


def throughput(options: argparse.Namespace) -> None:
    """Print how many messages a second each contender processes at full load."""
    payloads = messages(options.messages, KEYS, random.Random(3))
    seconds: dict[str, list[float]] = {"row": [], "wallaroo": [], "memory": []}
    processor: dict[str, list[float]] = {job: [] for job in seconds}
    for _ in range(options.rounds):
        for job, taken in seconds.items():
            with serving(job, options, partitions=options.partitions, optimised=True) as served:
                served.warm_up(options.warm_up, KEYS)
                for _ in range(WARM_UP_PASSES):
                    served.through(payloads)  # batches of full size have to be warm as well
                began, used = time.perf_counter(), served.cpu_seconds()
                served.through(payloads)
                taken.append(time.perf_counter() - began)
                processor[job].append(served.cpu_seconds() - used)
    to_row, to_memory = ratios(seconds, "row"), ratios(seconds, "memory")
    for job, taken in seconds.items():
        rate = options.messages / statistics.median(taken)
        cost = 1e6 * statistics.median(processor[job]) / options.messages
        goal = "   (goal: 2 x by hand, aim 3 x)" if job == "wallaroo" else ""
        print(
            f"  {job:8} {rate:9,.0f} messages/s   {1 / to_row[job]:5.2f} x by hand   "
            f"{1 / to_memory[job]:5.2f} of the floor   "
            f"{cost:5.1f} µs of processor time each{goal}"
        )
        FIGURES.add(f"throughput/{job}", rate, "messages/s", ratio=1 / to_row[job], baseline="row")
        of_floor = 1 / to_memory[job]
        FIGURES.add(f"of-floor/{job}", rate, "messages/s", ratio=of_floor, baseline="memory")
        FIGURES.add(f"processor/{job}", cost, "µs/message")


def cases(options: argparse.Namespace) -> None:
    """Print what a bounded case costs among many."""
    from wallaroo_conformance.cases.building import engine_case
    from wallaroo_conformance.cases.generating import generate
    from wallaroo_spark.engine import SparkEngine
    from wallaroo_spark.jvm.session import close_session, session
    from wallaroo_spark.jvm.settings import SessionSettings
    from wallaroo_spark.worker.plan import plan

    from wallaroo.engine import Case, load_engine

    by_depth: dict[int, list[Case]] = {1: [], 2: [], 3: []}
    drawn = (case for seed in itertools.count() for case in generate(100, seed))
    while min(map(len, by_depth.values())) < options.cases:
        case = engine_case(replace(next(drawn), batches=None))
        some = by_depth.get(plan(case.application).levels)
        if some is not None and len(some) < options.cases:
            some.append(case)
    engine, reference = SparkEngine(), load_engine("reference")
    session(SessionSettings(options.master))
    for kind, batches, goal in (("batch", None, 2), ("stream", (1, 2, 1, 2), 15)):
        for depth, some in by_depth.items():
            divided = [replace(case, batches=batches) for case in some]
            expected = [reference.run(case).comparable() for case in divided]
            taken = []
            for _ in range(WARM_UP_PASSES + options.rounds):
                began = time.perf_counter()
                found = engine.run_many(divided)
                taken.append(1000 * (time.perf_counter() - began) / len(divided))
            right = sum(
                mine.comparable() == theirs for mine, theirs in zip(found, expected, strict=True)
            )
            typical = statistics.median(taken[WARM_UP_PASSES:])
            print(
                f"  {kind:6} depth {depth}: {typical:5.2f} ms a case, "
                f"{right} of {len(divided)} right   (goal: {goal} ms)",
                flush=True,
            )
            FIGURES.add(f"cases/{kind}/{depth}", typical, "ms/case")
    close_session()


@contextlib.contextmanager
def serving(
    job: str,
    options: argparse.Namespace,
    *,
    partitions: int,
    optimised: bool = False,
    arguments: Sequence[str] = (),
) -> Iterator[Served]:
    """Start a job, and end it."""
    served = Served(
        job,
        master=options.master,
        partitions=partitions,
        optimised=optimised,
        options=arguments,
    )
    with contextlib.closing(served):
        yield served


def shown(values: Sequence[float]) -> str:
    """Return the smallest and the largest."""
    return f"{min(values):.1f} to {max(values):.1f}"


PARTS = {part.__name__: part for part in (start, latency, chain, throughput, cases)}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--partitions", type=int, default=2, help="for throughput (2)")
    parser.add_argument("--latency-partitions", type=int, default=1, help="for latency (1)")
    parser.add_argument("--warm-up", type=float, default=12.0, help="seconds (12)")
    parser.add_argument("--seconds", type=float, default=15.0, help="of a latency round (15)")
    parser.add_argument("--messages", type=int, default=1_000_000, help="of a throughput round")
    parser.add_argument("--cases", type=int, default=CASES, help="in a job (500)")
    run_parts(parser, PARTS, FIGURES)


if __name__ == "__main__":
    main()
