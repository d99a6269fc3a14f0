"""Kafka to Kafka on a standalone cluster of 1, 2 and 4 executors, each of one core.

    python benchmarks/kafka_executors.py [--rounds N] [--messages N] [EXECUTORS …]

Broker, master, workers and driver are on this machine. A topic that is filled already is counted by
key into another one, exactly once, with a partition of state for each executor. Time is taken once
a third of the outputs are there: executors have then begun, and micro-batches are as large as they
get. What `cluster_model.py` says of it is printed beside it.

Where executors share fewer cores than they are, messages a second say little about larger clusters.
The time of processors that they take for a message says more: it should not rise with their number.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

import psutil
from cluster_model import ON_EXECUTORS, answer, costs, on_executors, work_on
from facts import Figures, add_json_option, machine, machine_facts
from kafka import Work
from kafka_broker import broker
from spark_cluster import ONLY_JARS, Cluster, class_archive, java_home

FIGURES = Figures(__file__)


def processor(cluster: Cluster) -> float:
    """Return how many seconds of processors the executors and their Python workers have used."""
    total = 0.0
    for executor in cluster.executors():
        for process in (executor, *executor.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += sum(process.cpu_times()[:4])  # also of children that have ended
    return total


def measure(
    work: Work, cluster: Cluster, executors: int, options: argparse.Namespace
) -> tuple[float, float]:
    """Return messages a second, and seconds of processors of executors for a message."""
    first = options.messages // 3
    used: list[float] = []
    run = work.prepare(
        "spark",
        exactly=True,
        more=[
            *("--master", cluster.url, "--partitions", str(executors)),
            *("--conf=spark.executor.cores=1", f"--conf=spark.cores.max={executors}"),
            "--conf=spark.executor.memory=512m",
            f"--batch-bytes={ON_EXECUTORS.batch_bytes:.0f}",
            # It begins once all are there.
            "--conf=spark.scheduler.minRegisteredResourcesRatio=1.0",
            "--conf=spark.scheduler.maxRegisteredResourcesWaitingTime=120s",
        ],
        first=first,
        look=lambda: used.append(processor(cluster)),
    )
    taken = [run()() for _ in range(options.rounds)]
    each = [after - before for before, after in zip(used[::2], used[1::2], strict=True)]
    print(f"  {executors} executors: {' '.join([f'{one:.1f} s' for one in taken])}", flush=True)
    messages = options.messages - first
    rate = options.messages / statistics.median(taken)
    return rate, statistics.median(each) / messages


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("executors", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--messages", type=int, default=1_000_000)
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts(), flush=True)
    cores = int(str(machine()["cores"]))
    with broker() as kafka, tempfile.TemporaryDirectory() as name:
        work = Work(kafka, options.messages, 4)
        given = {**ONLY_JARS, "JAVA_HOME": str(java_home(Path(name) / "java"))}
        cluster = Cluster(Path(name), given, class_archive(), workers=max(options.executors))
        with contextlib.closing(cluster):
            measured = {
                executors: measure(work, cluster, executors, options)
                for executors in options.executors
            }
    full = ON_EXECUTORS.batch_bytes / ON_EXECUTORS.message_bytes
    cost = work_on(ON_EXECUTORS, costs(), full) / full
    says = {each: answer(on_executors(each, cores), costs()).most for each in measured}
    fewest = min(measured)
    for executors, (rate, seconds) in measured.items():
        ratio = rate / measured[fewest][0]
        print(
            f"  {executors} executors {rate:10,.0f} messages/s, {ratio:5.2f} x; the model says "
            f"{says[executors]:10,.0f}, {says[executors] / says[fewest]:5.2f} x; executors' time "
            f"{1e6 * seconds:5.1f} us/message, the model {1e6 * cost:5.1f}"
        )
        FIGURES.add(f"rate/{executors}", rate, "messages/s", ratio=ratio, baseline=f"rate/{fewest}")
        FIGURES.add(f"processor/{executors}", 1e6 * seconds, "us/message")
    FIGURES.write(options.json)


if __name__ == "__main__":
    main()
