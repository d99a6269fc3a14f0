"""Figures of user code in a worker: some tasks run measured components.

`wallaroo.metrics.probes` measures them. What a task has seen goes to the driver with its report, so
a task that Spark runs again counts once.
"""

from __future__ import annotations

import functools
import pickle
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from wallaroo.metrics.figures import Harvest
from wallaroo.metrics.probes import Probes
from wallaroo.metrics.registry import Registry
from wallaroo_spark.wire.job import Specs
from wallaroo_spark.worker import program
from wallaroo_spark.worker.program import Program

_PROGRAMS = 8  # applications that a process measures; a live run has one

Seen = Callable[[], list[Harvest]]
"""A function that returns what was seen: one harvest, or none."""


@contextmanager
def looking(cases: Specs, part: str, records: int) -> Iterator[Seen]:
    """Measure what runs in the block, if its case wants figures and its turn has come.

    Args:
        cases: the cases of the task.
        part: the part of the plan that the task belongs to; its tasks represent each other.
        records: number of frames, or messages, that the task has.
    """
    case = next((case for case in cases.values() if case.measured), None)
    if case is None or not records:
        yield list
        return
    probes, measured = _measured(case.application, case.partitions)
    if not probes.should_look(part, records):
        yield list
        return
    probes.registry = Registry(probes.application, "spark")

    def seen() -> list[Harvest]:
        probes.looked(records)
        probes.flush()
        return [probes.registry.harvest()]

    before = probes.mark()
    program.run_instead(measured)
    try:
        yield seen
    except BaseException:
        probes.forget(before)  # Spark runs the task again
        raise
    finally:
        program.run_instead(None)


def worked(cases: Specs, records: int, seconds: float) -> dict[str, tuple[int, float]]:
    """Return what a task has done, by host, if its case wants figures."""
    if not records or not any(case.measured for case in cases.values()):
        return {}
    return {_host(): (records, seconds)}


@functools.cache
def _host() -> str:
    return socket.gethostname()


@functools.lru_cache(maxsize=_PROGRAMS)
def _measured(application: bytes, partitions: int) -> tuple[Probes, Program]:
    """Return the probes of a pickled application, and the program of the measured application."""
    found = pickle.loads(application)  # noqa: S301 - the driver's, over Spark's own channels
    probes = Probes(found, Registry(found, "spark"), settles=False)
    measured = Program(probes.application, partitions)
    measured.probes = probes
    return probes, measured
