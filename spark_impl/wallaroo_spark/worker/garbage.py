"""Python's garbage collector in a worker.

It looks for objects that refer to each other in a circle; all others go without it. A task makes
some hundred thousand objects that live to its end, and with Python's defaults the collector looks
at all of them again each time that their number has grown by a quarter: of Kafka to Kafka, that
took a third of a worker's time. Spark's workers collect after each task besides.
"""

from __future__ import annotations

import functools
import gc
import itertools

from wallaroo_spark.worker.program import program_of

_FIRST_TASKS = 4
_YOUNG = 200_000  # objects more than at the last look, before it looks at the new ones

_tasks = itertools.count(1)


def begin_task() -> None:
    """Let the collector look at new objects seldom, and at those that live long not at all.

    These are modules and the programs known so far: to look at them after each task would take
    longer than most tasks. It is done in a worker's first tasks, which import modules, and after
    each 100 new programs.
    """
    _set_aside(min(next(_tasks), _FIRST_TASKS), program_of.cache_info().misses // 100)


@functools.cache
def _set_aside(_task: int, _hundreds: int) -> None:
    gc.set_threshold(_YOUNG)
    gc.collect()
    gc.freeze()
