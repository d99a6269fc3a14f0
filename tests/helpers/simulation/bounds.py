"""The engine's bounds, small in some lives: what is seldom full, divided or cut is so often then.

Those that are small in every life are set where a run is made (`around`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from random import Random
from typing import Any
from unittest import mock

from wallaroo_reference.serving import feeder, outbox
from wallaroo_spark.live import log_feed, to_tasks, watch
from wallaroo_spark.wire import job
from wallaroo_spark.worker import leaving, routing

from wallaroo.transport import connection, generators, input_log, log_directory, log_file, logged
from wallaroo.transport.kafka import reader, sink, source

_SMALL = 1 / 4  # of the lives, for each bound
BOUNDS: tuple[tuple[Any, str, tuple[float, ...]], ...] = (
    (connection, "_READ", (7, 100)),
    (feeder, "_AT_ONCE", (1, 100)),
    (feeder, "_LONGEST_SLICE", (1, 3)),
    (feeder, "_MOST_FRAMES", (1, 3)),
    (feeder, "_SLICE", (1, 100)),
    (feeder, "_TURN", (1e-4, 1e-3)),
    (generators, "_MOST", (1, 3)),
    (generators, "_TURN", (1e-4,)),
    (input_log, "_MAX_BLOCK", (1, 20, 100)),
    (job, "_SMALL", (1, 100)),
    (leaving, "_CLIENTS", (1,)),
    (log_directory, "_AT_ONCE", (100,)),
    (log_feed, "_FIRST_OFFSETS", (1, 3)),
    (log_feed, "_MOST_OFFSETS", (10, 30)),
    (log_file, "_INDEX_EVERY", (1, 100)),
    (logged, "_AT_ONCE", (1, 100)),
    (logged, "_RECORDS", (1, 3)),
    (outbox, "LIMIT", (1, 300)),
    (reader, "_AHEAD", (300, 1000)),
    (reader, "_BATCH", (2, 4)),
    (routing, "_LONGEST", (0, 4)),
    (routing, "_REMEMBERED", (1, 3)),
    (sink, "_LIMIT", (1, 1000)),
    (source, "_MOST", (1,)),
    (to_tasks, "_ASSUMED", (1,)),
    (to_tasks, "_SMALL", (0, 60)),
    (watch, "_MOST", (1, 3)),
)
"""Modules, the names of their bounds, and small values for these."""


@contextlib.contextmanager
def drawn(chance: Random) -> Iterator[None]:
    """Let each bound be small, or as it is."""
    with contextlib.ExitStack() as stack:
        for module, name, small in BOUNDS:
            if chance.random() < _SMALL:
                stack.enter_context(mock.patch.object(module, name, chance.choice(small)))
        yield
