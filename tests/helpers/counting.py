"""An application that counts, and checkpoints of it as a run of the reference engine makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from counted import Count, text, whole
from wallaroo_reference.checkpoints.collecting import Collector, blobs_of
from wallaroo_reference.checkpoints.head import CellsHead, Head
from wallaroo_reference.checkpoints.recovery import Recovery
from wallaroo_reference.machine import Machine

import wallaroo
from wallaroo.topology import Application


@wallaroo.state_computation(name="number")
def number(message: str, state: Any) -> tuple[None, bool]:
    state.count += 1
    return None, True


def application(name: str = "app", builder: Any = Count, steps: int = 1) -> Application:
    """Return an application that counts each message."""
    made = wallaroo.ApplicationBuilder(name)
    made.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
    for step in range(steps):
        made.to_state_partition(number, builder, f"counts {step}", whole)
    return made.done().build()


def opened(
    directory: Path, app: Application | None = None, partitions: int | None = None, **options: Any
) -> Recovery:
    """Open a checkpoint as a run does."""
    app = app or application()
    return Recovery(directory, app, partitions=partitions, log_bytes=1 << 20, **options)


def checkpoint(
    recovery: Recovery, machine: Machine, collector: Collector, next_blob: int = 0
) -> int:
    """Store a checkpoint, as a served run does."""
    collector.begin()
    while not collector.go_on(1.0):
        pass
    blobs = blobs_of(machine.cells(), collector.finish(next_blob))
    cells = [CellsHead(one.kind, one.name, one.count()) for one in machine.cells()]
    head = Head(
        at=1,
        moment=machine.moment(),
        cells=cells,
        sinks={("p", 0): 5},
        logged={},
        first_blob=collector.first_blob,
        next_blob=next_blob + len(blobs),
    )
    recovery.store.write(head, blobs)
    return head.next_blob
