"""Machines that take turns, each from where the one before it stood, and what is stored."""

import contextlib

from wallaroo_reference.checkpoints.blobs import decode, divided
from wallaroo_reference.checkpoints.head import CellsHead, Head
from wallaroo_reference.checkpoints.stored import ReferenceCheckpoint
from wallaroo_reference.lives import Kept

from wallaroo.trace import sorted_entities, sorted_windows


class Compared(Kept):
    """What is kept of a machine, and how it stood; the machine that gets it must stand so too."""

    def take(self, machine):
        super().take(machine)
        self._before = state_of(machine)

    def put(self, machine):
        super().put(machine)
        assert state_of(machine) == self._before


def state_of(machine):
    """Return how a machine stands."""
    return (
        machine.sequence,
        sorted_entities(machine.entities()),
        [window.to_json() for window in sorted_windows(machine.windows())],
        machine.due(),
    )


def as_stored(kept, machine):
    """Return what the reference engine would write of it."""
    heads = [
        CellsHead(cells.kind, cells.name, len(some), cells.shape)
        for cells, some in zip(machine.cells(), kept.cells, strict=True)
    ]
    blobs = [
        (place, blob) for place, some in enumerate(kept.cells) for blob in divided([*some.items()])
    ]
    return Head(1, kept.moment, heads, {}, {}, 0, len(blobs)), blobs


class InMemory(ReferenceCheckpoint):
    """The reference engine's part of a checkpoint, without its file, whose syncs take long."""

    def __init__(self, head, blobs):
        self._head, self._blobs = head, blobs

    @contextlib.contextmanager
    def _open(self):
        yield self

    def head(self):
        return self._head

    def cells(self, head):
        for place, blob in self._blobs:
            yield place, decode(blob)
