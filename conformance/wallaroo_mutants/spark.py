"""Mutants inside the Spark engine's own machinery, on the driver and in the workers.

Each fault comes twice. With the home ``spark``, the workers' code runs in this process, so that a
kill costs seconds. With the home ``spark-jvm``, the same fault runs on Spark: for a fault on the
driver, a function is replaced while the mutant runs; a fault in the workers is sent with the
shipment that every task unpacks first, and the worker's process then puts that fault in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import wallaroo_spark.bounded.micro_batches
import wallaroo_spark.bounded.runs
import wallaroo_spark.plans.reports
from wallaroo_conformance.killing import Mutant
from wallaroo_spark.bounded.micro_batches import StreamJob
from wallaroo_spark.bounded.traces import SMALL
from wallaroo_spark.engine import SparkEngine
from wallaroo_spark.jvm.shipping import shipment_of_this_process
from wallaroo_spark.wire.job import HeadBlock
from wallaroo_spark.worker.modules import Shipment

from wallaroo.engine import Capabilities, Case
from wallaroo.trace import Trace
from wallaroo_mutants.engine import Patch, patched, refuse_another_call
from wallaroo_mutants.machinery import run_here
from wallaroo_mutants.spark_time import Fault
from wallaroo_mutants.spark_workers import WORKER_FAULTS


class SparkMutant(SparkEngine):
    """The Spark engine with a fault, on Spark.

    Args:
        name: the mutant's; also that of its faults in `WORKER_FAULTS`.
        driver: what to replace on the driver while it runs.
    """

    def __init__(self, name: str, driver: Sequence[Fault] = ()) -> None:
        self.name = name
        self.driver = driver

    def capabilities(self) -> Capabilities:
        """Return what it claims: no more than the faults need."""
        return Capabilities(isolation=frozenset({"isolated"}), live=False, small=SMALL)

    def run_many(self, cases: Sequence[Case]) -> list[Trace]:
        """Run cases, with the fault."""
        original = shipment_of_this_process

        def shipment() -> Shipment:
            whole = original()
            return FaultyShipment(whole.files, whole.paths, self.name)

        patches: list[Patch] = [(wallaroo_spark.bounded.runs, "shipment_of_this_process", shipment)]
        with patched((*patches, *_patches(self.driver))):
            return super().run_many(cases)


class MachineryMutant(SparkMutant):
    """The same, with the workers' code run here, by `wallaroo_mutants.machinery`."""

    def run_many(self, cases: Sequence[Case]) -> list[Trace]:
        """Run cases, with the fault."""
        faults = (*self.driver, *WORKER_FAULTS.get(self.name, ()))
        # Each in a job of its own: a fault may leave something behind that would show in other
        # cases.
        with patched(_patches(faults)):
            return [trace for case in cases for trace in run_here([case])]


class Machinery(SparkEngine):
    """The Spark engine without Spark and without a fault; the mutants must differ from it."""

    name = "spark machinery"

    def capabilities(self) -> Capabilities:
        """Return what it claims: everything that can be run here."""
        return Capabilities(live=False, small=SMALL)

    def run_many(self, cases: Sequence[Case]) -> list[Trace]:
        """Run cases."""
        return run_here(cases)


def _patches(faults: Sequence[Fault]) -> tuple[Patch, ...]:
    return tuple([(owner, name, make(getattr(owner, name))) for owner, name, make in faults])


@dataclass(frozen=True)
class FaultyShipment(Shipment):
    """A shipment that brings a fault along."""

    fault: str = ""

    def covers(self, other: Shipment) -> bool:
        """Return whether this contains all modules of `other`, and has the same fault."""
        return getattr(other, "fault", None) == self.fault and super().covers(other)

    def unpack(self) -> None:
        """Make the modules importable, and the fault there."""
        super().unpack()
        _bring(self.fault)


_brought = ""
_before: list[tuple[Any, str, Any]] = []


def _bring(fault: str) -> None:
    """Put that fault, and no other, in place in this process."""
    global _brought  # noqa: PLW0603 - it is the process that has a fault
    if fault == _brought:
        return
    for owner, name, original in reversed(_before):
        setattr(owner, name, original)
    _before.clear()
    for owner, name, make in WORKER_FAULTS.get(fault, ()):
        original = getattr(owner, name)
        _before.append((owner, name, original))
        replacement = make(original)
        refuse_another_call(original, replacement)
        setattr(owner, name, replacement)
    _brought = fault


# -- faults on the driver ------------------------------------------------------------------------


# These two note on the job they patch what they have done. The job's class has no such attribute,
# which explains their `type: ignore`.


def _second_batch_skipped(original: Any) -> Any:
    def next_batch(self: StreamJob) -> list[HeadBlock] | None:
        began = any(self._made.values())
        blocks: list[HeadBlock] | None = original(self)
        if blocks is None or not began or hasattr(self, "skipped"):
            return blocks
        self.skipped = True  # type: ignore[attr-defined]
        return [block._replace(frames=[]) for block in blocks]

    return next_batch


def _first_batch_replayed(original: Any) -> Any:
    def next_batch(self: StreamJob) -> list[HeadBlock] | None:
        again: list[HeadBlock] | None = getattr(self, "replayed", None)
        if again is not None:
            self.replayed = []  # type: ignore[attr-defined]
        blocks: list[HeadBlock] | None = again or original(self)
        if again is None and blocks is not None:
            self.replayed = [block._replace(list_entities=False) for block in blocks]  # type: ignore[attr-defined]
        return blocks

    return next_batch


def _by_item(original: Any) -> Any:
    return lambda runs: sorted(original(runs), key=lambda output: output[0][1:])


def _no_end(_: Any) -> Any:
    return lambda finished: None


def _mutant(rule: str, name: str, says: str, *driver: Fault) -> Mutant:
    return Mutant(name, rule, says, lambda: MachineryMutant(name, driver), "spark")


def _on_spark(mutant: Mutant) -> Mutant:
    def make() -> SparkMutant:
        here = mutant.make()
        assert isinstance(here, MachineryMutant)
        return SparkMutant(here.name, here.driver)

    return replace(mutant, make=make, home="spark-jvm", slow=True)


SPARK_MUTANTS: tuple[Mutant, ...] = (
    _mutant("order-1", "groups not sorted", "Spark keeps no order among a group's rows"),
    _mutant(
        "order-1",
        "outputs sorted by item",
        "a sort that forgets its first column",
        (wallaroo_spark.plans.reports, "outputs_in_order", _by_item),
    ),
    _mutant(
        "state-1",
        "segments not written back",
        "a segment is changed and not marked as changed",
    ),
    _mutant(
        "state-1",
        "split loses entities",
        "a segment gives its share away before the other has it",
    ),
    _mutant("state-1", "new entities not written", "only what a call changed is dirty"),
    _mutant(
        "order-2",
        "number of segments read stale",
        "a cached count",
    ),
    _mutant("order-2", "state in memory of a batch", "a checkpoint that forgets"),
    _mutant("state-4", "copies handed out twice", "a copy made in advance, used again"),
    _mutant("state-6", "live items passed on", "no copy, since it has just been pickled"),
    _mutant("state-9", "partitions of an operator mixed", "several partitions in one operator"),
    _mutant(
        "order-2",
        "micro-batch skipped",
        "an offset committed too early",
        (StreamJob, "next_batch", _second_batch_skipped),
    ),
    _mutant(
        "order-2",
        "micro-batch replayed",
        "an offset committed too late",
        (StreamJob, "next_batch", _first_batch_replayed),
    ),
    _mutant("sink-1", "outputs asked for their bytes", "a subclass gives others than it holds"),
    _mutant("order-2", "last frame of a run lost", "off by one in a slice"),
    _mutant("order-2", "first frame tried again", "a task's retry counts twice"),
    _mutant(
        "dead-4",
        "calls after a stop stand",
        "other tasks went on before they heard of it",
        (wallaroo_spark.bounded.runs, "first_end", _no_end),
        (wallaroo_spark.bounded.micro_batches, "first_end", _no_end),
    ),
    _mutant("time-3", "watermark of the shard", "a watermark of what comes to a task"),
    _mutant("window-6", "watermark of the batch", "Spark's own watermark is one for each batch"),
    _mutant("order-2", "watermarks forgotten between batches", "watermarks lost at recovery"),
    _mutant("time-1", "ticks lost on the way", "a batch without messages is skipped"),
    _mutant("time-5", "ends lost on the way", "a batch without messages is skipped"),
    _mutant("time-4", "tracks not in order", "Spark keeps no order among a group's rows"),
    _mutant("time-4", "windows numbered by shard", "each task counts what it gives"),
    _mutant("order-2", "calendar not stored", "timers lost at recovery"),
    _mutant("window-2", "key waits for one window only", "one timer for each key"),
    _mutant("order-2", "closed windows stored", "state that grows with closed windows"),
    _mutant("key-4", "visits not noted", "state without a time to live"),
)  # fmt: skip


SPARK_EQUIVALENT = Mutant(
    "machinery without Spark", "", "the same code in one process", Machinery, "spark", {}, 256
)


def mutants() -> list[Mutant]:
    """Return all of them: the entry point of the group ``wallaroo.mutants``."""
    return [*SPARK_MUTANTS, SPARK_EQUIVALENT, *map(_on_spark, SPARK_MUTANTS)]
