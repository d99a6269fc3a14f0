"""Workers that die where a case asks for it (`wallaroo.engine.TaskFault`), to test recovery.

They die at the worst moment: user code was called and states were given to the state store, but
the result was not returned. Spark starts the task again, elsewhere or in a new process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from wallaroo.engine import TaskFault

MOST_ATTEMPTS = 3
"""Attempts that may die: Spark gives a task one more (``spark.task.maxFailures``)."""


def die_if_asked(faults: Iterable[TaskFault], stage: int) -> None:
    """End this process if one of these faults is for this attempt at a task of the stage."""
    attempts = max([fault.attempts for fault in faults if fault.stage == stage], default=0)
    if attempts:
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is not None and context.attemptNumber() < attempts:
            os._exit(1)
