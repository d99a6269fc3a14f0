"""Kafka to Kafka on a standalone cluster of 1, 2 and 4 executors, each of one core.

    python benchmarks/kafka_executors.py [--rounds N] [--messages N] [EXECUTORS …]

Broker, master, workers and driver are on this machine. A topic that is filled already is counted by
key into another one, exactly once, with a partition of state for each executor. Time is taken once
a third of the outputs are there: executors have then begun, and micro-batches are as large as they
get. What `cluster_model.py` says of it is printed beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from cluster_model import Load, answer, costs
from facts import Figures, add_json_option, machine, machine_facts
from kafka import Work
from kafka_broker import broker
from spark_cluster import ONLY_JARS, Cluster, class_archive, java_home

FIGURES = Figures(__file__)
_KEYS, _BYTES = 1_000, 100  # of the messages of `kafka.Work`


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("executors", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--messages", type=int, default=1_000_000)
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts())
    cores = int(str(machine()["cores"]))
    first = options.messages // 3
    measured: dict[int, float] = {}
    with broker() as kafka, tempfile.TemporaryDirectory() as name:
        work = Work(kafka, options.messages, 4)
        given = {**ONLY_JARS, "JAVA_HOME": str(java_home(Path(name) / "java"))}
        cluster = Cluster(Path(name), given, class_archive(), workers=max(options.executors))
        with contextlib.closing(cluster):
            for executors in options.executors:
                # The run begins once all executors are there.
                on_cluster = [
                    *("--master", cluster.url, "--partitions", str(executors)),
                    *("--conf=spark.executor.cores=1", f"--conf=spark.cores.max={executors}"),
                    "--conf=spark.executor.memory=512m",
                    "--conf=spark.scheduler.minRegisteredResourcesRatio=1.0",
                    "--conf=spark.scheduler.maxRegisteredResourcesWaitingTime=120s",
                ]
                taken = [
                    work.prepare("spark", exactly=True, more=on_cluster, first=first)()()
                    for _ in range(options.rounds)
                ]
                measured[executors] = (options.messages - first) / statistics.median(taken)
                print(f"  {executors} executors: {' '.join([f'{one:.1f} s' for one in taken])}")
    here = Load(keys=_KEYS, message_bytes=_BYTES, batch_bytes=4 << 20, executors=1)
    says = {
        executors: answer(
            replace(here, cores=min(executors, cores), partitions=executors), costs()
        ).most
        for executors in measured
    }
    fewest = min(measured)
    for executors, rate in measured.items():
        print(
            f"  {executors} executors {rate:12,.0f} messages/s, {rate / measured[fewest]:5.2f} x; "
            f"the model says {says[executors]:12,.0f}, {says[executors] / says[fewest]:5.2f} x"
        )
        FIGURES.add(f"executors/{executors}", rate, "messages/s")
    FIGURES.write(options.json)


if __name__ == "__main__":
    main()
