"""What a cluster would take, by arithmetic from what was measured: latency, recovery, network.

    python benchmarks/cluster_model.py [--rate 1e5] [--keys 1e6] [--state-bytes 100] …
    python benchmarks/cluster_model.py --check     what it says about what was measured
    python benchmarks/cluster_model.py --table     the table of docs/cluster.md

A micro-batch takes a fixed time, a time for each task, and the work on its messages, shared by the
cores. While one is processed, the next one's messages come. So its size and its time depend on each
other, and the model looks for the time at which both hold. It is about Kafka to Kafka: messages
meet the driver only as offsets.

What it leaves out: pauses of Java, neighbours, a network that is full, brokers that are slow.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

_RESULTS = Path(__file__).parent / "results"
_SEGMENT = 6_000  # bytes of a stored segment: entities read and written together (docs/spark.md)
_FRAMING = 60  # bytes that a message has on its way between tasks, beside its own
_LOADING = 100e6  # bytes a second at which an executor loads states after a start; assumed
_TASK = 0.02  # seconds of a core to begin and end a task
_LAUNCH = 0.004  # seconds of the driver to start a task
_OLD_BYTES = 14  # bytes of a message of the benchmarks


@dataclass(frozen=True)
class Costs:
    """What was measured on two shared cores, in seconds."""

    fixed: float  # of a micro-batch beside its levels
    level: float  # of each level
    message: float  # of a core, for a message at a level
    entity: float  # of a core, more for the first message of an entity in a micro-batch
    edges: float  # of a core, to read a message from a topic and to write its output to one
    start: float  # from the start of a driver to its first output


@dataclass(frozen=True)
class Load:
    """What is asked for."""

    rate: float = 1e5  # messages a second
    keys: float = 1e6  # equally busy but one
    hottest: float = 0.0  # the share of messages that the busiest key has
    message_bytes: float = 100
    state_bytes: float = 100  # of an entity
    levels: int = 1  # state partitions in a row
    partitions: int = 16  # of each
    executors: int = 4  # each on a machine of its own
    cores: int = 4  # of each executor
    trigger: float = 0.0  # seconds from one micro-batch to the next, at least
    batch_bytes: float = 256e6  # of a micro-batch, at most


ON_EXECUTORS = Load(keys=1_000, message_bytes=100, batch_bytes=4 << 20, executors=1, partitions=1)
"""What `kafka_executors.py` measures, without the number of cores."""


@dataclass(frozen=True)
class Answer:
    """What the model says."""

    most: float  # messages a second that the cluster can take
    latency: float  # mean seconds from a message to its output; infinite above `most`
    recovery: float  # seconds without outputs after the driver has died and is started at once
    network: float  # bytes a second between executors
    stored: float  # bytes a second that are written to the checkpoint
    limit: str  # what takes most of a full micro-batch


def measured(benchmark: str, name: str) -> float:
    """Return a figure that a benchmark has measured, in its unit."""
    kept = json.loads((_RESULTS / f"{benchmark}.json").read_text())
    return float(next(one["value"] for one in kept["figures"] if one["name"] == name))


def costs() -> Costs:
    """Return the costs."""
    # A message waits for half a micro-batch, then is in one: 1.5 of them to its output.
    one, two = [measured("spark_speed", f"p50/{n}") / 1000 / 1.5 for n in ("wallaroo", "two")]
    few, many = [measured("spark_scale", f"keys/{n}") for n in (100, 1_000_000)]
    message = measured("spark_speed", "processor/wallaroo") * 1e-6
    batch = (4 << 20) / _OLD_BYTES
    bare = Costs(
        fixed=one - (two - one),
        level=two - one,
        message=message,
        entity=message * (few / many - 1) / (touched(batch, 1e6) / batch),
        edges=0.0,
        start=measured("spark_scale", "entities/1000000/first-output"),
    )
    full = ON_EXECUTORS.batch_bytes / ON_EXECUTORS.message_bytes
    whole = measured("kafka_executors", "processor/1") * 1e-6
    return replace(bare, edges=whole - work_on(ON_EXECUTORS, bare, full) / full)


def touched(messages: float, keys: float) -> float:
    """Return how many of so many keys some messages meet, if all are equally busy."""
    return -keys * math.expm1(-messages / keys)


def work_on(load: Load, cost: Costs, messages: float) -> float:
    """Return the seconds of a core for the messages of a micro-batch."""
    entities = touched(messages, load.keys)
    return messages * cost.edges + load.levels * (messages * cost.message + entities * cost.entity)


def batch_time(load: Load, cost: Costs, messages: float) -> tuple[float, str]:
    """Return the seconds of a micro-batch, and what takes most of them."""
    at_work = min(load.cores * load.executors, load.partitions)
    work = work_on(load, cost, messages) / at_work
    hot = load.levels * messages * load.hottest * cost.message
    tasks = (load.levels + 1) * load.partitions
    parts = {
        "fixed time of a micro-batch": cost.fixed + load.levels * cost.level,
        # Those that were measured had one of each.
        "tasks": max(0, tasks - load.levels - 1) * max(_LAUNCH, _TASK / at_work),
        "cores": work if work >= hot else 0.0,
        "the busiest key": hot if hot > work else 0.0,
    }
    return sum(parts.values()), max(parts, key=lambda name: parts[name])


def answer(load: Load, cost: Costs) -> Answer:
    """Return what the model says."""
    full = load.batch_bytes / load.message_bytes
    longest, limit = batch_time(load, cost, full)
    seconds = 0.1
    for _ in range(500):  # it converges where the load is below what the cluster can take
        messages = min(full, load.rate * max(load.trigger, seconds))
        seconds += 0.5 * (batch_time(load, cost, messages)[0] - seconds)
    interval = max(load.trigger, seconds)
    state = load.keys * load.state_bytes
    segments = touched(touched(load.rate * interval, load.keys), max(1.0, state / _SEGMENT))
    return Answer(
        most=full / longest,
        latency=interval / 2 + seconds if load.rate < full / longest else math.inf,
        recovery=cost.start + state / load.executors / _LOADING + seconds,
        network=load.rate
        * (load.message_bytes + _FRAMING)
        * load.levels
        * (1 - 1 / load.executors),
        stored=load.levels * min(segments * _SEGMENT, state) / interval,
        limit=limit,
    )


def on_executors(executors: int, cores: int) -> Load:
    """Return what so many executors of one core are given that share so many cores."""
    return replace(ON_EXECUTORS, cores=min(executors, cores), partitions=executors)


def check(cost: Costs) -> Iterator[tuple[str, float, float]]:
    """Yield what was measured: its name, what the model says, and the figure."""
    here = Load(
        keys=1e3, partitions=2, executors=1, cores=2, message_bytes=_OLD_BYTES, batch_bytes=4 << 20
    )

    bare = replace(cost, edges=0.0)  # those benchmarks have no topics

    def rate(**changed: float) -> float:
        return answer(replace(here, **changed), bare).most  # type: ignore[arg-type]

    keys, cores = [
        measured("spark_scale", a) / measured("spark_scale", b)
        for a, b in (("keys/10000", "keys/100"), ("cores/2", "cores/1"))
    ]
    yield "10⁴ keys, rate of that at 10²", rate(keys=1e4) / rate(keys=1e2), keys
    yield "2 cores, rate of that of 1", rate() / rate(cores=1), cores
    yield "messages/s", rate(), measured("spark_speed", "throughput/wallaroo")
    small = answer(replace(here, rate=500, partitions=1, levels=2), bare)
    yield "p50 of two levels, s", small.latency, measured("spark_speed", "p50/two") / 1e3
    for executors in (1, 2, 4):
        says = answer(on_executors(executors, 2), cost).most
        name = f"{executors} executors, messages/s"
        yield name, says, measured("kafka_executors", f"rate/{executors}")


TABLE = (
    Load(rate=1e4, keys=1e4, partitions=2, executors=1, cores=2),
    Load(rate=1e5, keys=1e6, partitions=8, executors=2),
    Load(rate=1e6, keys=1e7, partitions=128, executors=32),
    Load(rate=1e6, keys=1e7, partitions=128, executors=32, hottest=0.2),
    Load(rate=1e7, keys=1e8, partitions=1024, executors=256, trigger=30, batch_bytes=64e9),
)


def row(load: Load, says: Answer) -> str:
    """Return a row of the table."""
    return (
        f"| {load.rate:.0e} | {load.keys:.0e} | {load.executors} of {load.cores} | "
        f"{load.partitions} | {says.most:.1e} | {says.latency:.1f} s | {says.recovery:.0f} s | "
        f"{says.network / 1e6:,.0f} MB/s | {says.stored / 1e6:,.0f} MB/s | {says.limit} |"
    )


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with what was measured")
    parser.add_argument("--table", action="store_true", help="print the table of docs/cluster.md")
    for field in fields(Load):
        kind = type(field.default)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=field.default)
    given = vars(parser.parse_args())
    cost = costs()
    if given.pop("check"):
        for name, says, figure in check(cost):
            print(f"{name:30} model {says:9,.3g}  measured {figure:9,.3g}  {says / figure:.2f}")
    for load in TABLE if given.pop("table") else ():
        print(row(load, answer(load, cost)))
    print(answer(Load(**given), cost))


if __name__ == "__main__":
    main()
