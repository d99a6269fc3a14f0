"""Looks for a plan on which the engine breaks a promise, and makes it smaller."""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from simulation import application, logs, plans, spark, topic_cases
from simulation.calls import installed
from simulation.cases import CaseRun
from simulation.logs import LogRun
from simulation.plans import smaller
from simulation.recordings import RecordingRun
from simulation.runs import Run
from simulation.serving import ServerRun
from simulation.world import Broken

PATIENCE = 60.0
"""Seconds to find a planted fault, or to make a plan smaller."""


@dataclass(frozen=True)
class Subject:
    """What is simulated.

    Args:
        drawn: returns a seed's plan.
        kind: makes a run of a plan.
    """

    drawn: Callable[[int], Any]
    kind: Callable[[Any], Run | LogRun]


_drawn = partial(plans.drawn, sources=len(application.SOURCES), sinks=len(application.SINKS))
SUBJECTS = {
    "cases": Subject(partial(_drawn, durable=True), CaseRun),
    "server": Subject(partial(_drawn, durable=False), ServerRun),
    "topics": Subject(topic_cases.drawn, topic_cases.TopicCaseRun),
    "spark": Subject(spark.drawn, spark.drawn_run),
    "log": Subject(logs.drawn, LogRun),
    "recording": Subject(logs.drawn, RecordingRun),
}


@dataclass(frozen=True)
class Failure:
    """A plan on which a promise was broken, and how."""

    plan: Any
    what: str


def failure(subject: Subject, plan: Any) -> tuple[Failure | None, int]:
    """Run a plan, and return how it failed, if it did, and the number of crashes."""
    try:
        return None, subject.kind(plan).run()
    except Broken as broken:
        return Failure(plan, str(broken)), 0
    except Exception as error:  # noqa: BLE001 - whatever the engine lets out is a finding
        return Failure(plan, f"{type(error).__name__}: {error}"), 0


def search(
    subject: Subject, seeds: Iterable[int], seconds: float
) -> tuple[Failure | None, int, int]:
    """Run the plans of seeds until one fails or the time is over.

    Returns:
        The failure, the number of runs, and of crashes.
    """
    end = time.perf_counter() + seconds
    runs = crashes = 0
    for seed in seeds:
        found, more = failure(subject, subject.drawn(seed))
        runs, crashes = runs + 1, crashes + more
        if found is not None or time.perf_counter() > end:
            return found, runs, crashes
    return None, runs, crashes


def shrunk(subject: Subject, found: Failure, seconds: float) -> Failure:
    """Leave out of a plan what its failure does not need, as far as the time goes."""
    end = time.perf_counter() + seconds
    progress = True
    while progress:
        progress = False
        for plan in smaller(found.plan):
            if time.perf_counter() > end:
                return found
            less, _ = failure(subject, plan)
            if less is not None:
                found, progress = less, True
                break
    return found


def share(
    names: list[str], first: int, step: int, seconds: float
) -> tuple[dict[str, list[float]], tuple[str, Failure] | None]:
    """Run every so many seeds of each subject in turn, until one fails or the time is over."""
    counts: dict[str, list[float]] = {name: [0, 0, 0.0] for name in names}
    seeds = {name: itertools.count(first, step) for name in names}
    end = time.perf_counter() + seconds
    with quiet():
        while True:
            for name in names:
                before = time.perf_counter()
                if before > end:
                    return counts, None
                turn = min(5.0, end - before)
                found, runs, crashes = search(SUBJECTS[name], seeds[name], turn)
                spent = time.perf_counter() - before
                counts[name] = [
                    sum(pair) for pair in zip(counts[name], (runs, crashes, spent), strict=True)
                ]
                if found is not None:
                    return counts, (name, shrunk(SUBJECTS[name], found, PATIENCE))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Answer calls to the system, and let nothing be logged."""
    logging.disable(logging.CRITICAL)
    try:
        with installed():
            yield
    finally:
        logging.disable(logging.NOTSET)
        gc.collect()
