"""The cells of a checkpoint, collected in slices while the machine goes on.

Packing everything that has changed at once could take long. So it is packed in slices, between
which the machine processes its input; what changes meanwhile is packed again. When little is left,
the rest is packed in one go, and that is the moment of the checkpoint.

What a checkpoint wrote stays in the file until all of it has been written again. So each checkpoint
also packs about as many cells that have *not* changed. Over many checkpoints these go through all
cells, in rounds; when a round is complete, everything written before it began is deleted. So the
file holds each cell about four times at most, and no old part of it has to be read and cleaned up.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from wallaroo.transport.old_states import Place
from wallaroo_reference.cells import Cells, key_of_name
from wallaroo_reference.checkpoints.blobs import LONGEST, divided

LAST = 500
"""Up to this many cells are packed in one go."""

_AT_ONCE = 16  # cells packed between two looks at the clock
_LEAST_AGAIN = 256  # unchanged cells that a checkpoint packs again, if there are so many


Packed: TypeAlias = "dict[Any, bytes | None]"
"""Cells by their identities, as `Cells.packed` gives them."""


class PackError(Exception):
    """A cell cannot be packed.

    Args:
        cells: the store or window step that it belongs to.
        name: its name.
        error: what packing it raised.
    """

    def __init__(self, cells: Cells, name: bytes, error: Exception) -> None:
        place, key = Place(cells.name, cells.shape), key_of_name(name, cells.kind)
        super().__init__(
            f"the checkpoint cannot be made: {place}, key {key!r:.80}, cannot be pickled: "
            f"{type(error).__name__}: {error}. Write a __getstate__ that returns what "
            "is to be kept, or run without --checkpoint"
        )


class Collector:
    """Collects what checkpoints store, one after the other.

    Args:
        cells: the machine's.
        first_blob: number of the first blob in the file that counts.
        next_blob: number of the next one.

    Attributes:
        first_blob: number of the first blob that counts once the current checkpoint is stored.
    """

    def __init__(
        self,
        cells: Sequence[Cells],
        first_blob: int = 0,
        next_blob: int = 0,
    ) -> None:
        self.first_blob = first_blob
        self._cells = cells
        self._packed: list[Packed] = []
        self._waiting: Iterator[tuple[int, Any]] = iter(())
        self._before = 0  # cells that the current pass began with
        self._again = False  # the pass packs what has not changed
        self._round = self._all()
        self._round_began = next_blob
        self._came_round = False

    def begin(self) -> None:
        """Begin a checkpoint."""
        self._packed = [{} for _ in self._cells]
        self._again = False
        self._begin_pass()

    def go_on(self, seconds: float) -> bool:
        """Pack for about `seconds`; return whether `finish` has little left to do.

        Raises:
            PackError: a cell cannot be packed.
        """
        end = time.monotonic() + seconds
        while True:
            for _ in range(_AT_ONCE):
                one = next(self._waiting, None)
                if one is None:
                    break
                self._pack(*one)
            else:
                if time.monotonic() < end:
                    continue
                return False
            if self._pass_is_the_last():
                return True

    def finish(self, next_blob: int) -> list[Packed]:
        """Pack the rest, and return all that was packed, by the place of the cells.

        Args:
            next_blob: number of the first blob that this checkpoint will write.

        Raises:
            PackError: a cell cannot be packed.
        """
        for place, cells in enumerate(self._cells):
            for identity in cells.changed:
                self._pack(place, identity)
            cells.changed.clear()
        if self._came_round:
            self.first_blob, self._round_began = self._round_began, next_blob
            self._came_round = False
        packed, self._packed = self._packed, []
        return packed

    def _begin_pass(self) -> None:
        changed = [list(cells.changed) for cells in self._cells]
        for cells in self._cells:
            cells.changed.clear()
        self._before = sum(map(len, changed))
        self._waiting = (
            (place, identity) for place, some in enumerate(changed) for identity in some
        )

    def _pass_is_the_last(self) -> bool:
        """Begin the next pass, if another one is worth it."""
        if not self._again:
            self._again = True
            self._waiting = self._some_again(max(_LEAST_AGAIN, sum(map(len, self._packed))))
            return False
        left = sum([len(cells.changed) for cells in self._cells])
        if left <= LAST or left > self._before // 2:
            return True
        self._begin_pass()
        return False

    def _some_again(self, count: int) -> Iterator[tuple[int, Any]]:
        """Yield the next cells of the round."""
        for _ in range(count):
            one = next(self._round, None)
            if one is None:
                self._came_round = True
                self._round = self._all()
                return
            place, identity = one
            if identity not in self._packed[place]:
                yield one

    def _all(self) -> Iterator[tuple[int, Any]]:
        for place, cells in enumerate(self._cells):
            for identity in cells.identities():
                yield place, identity

    def _pack(self, place: int, identity: Any) -> None:
        cells = self._cells[place]
        try:
            value = cells.packed(identity)
            if value is not None and len(value) > LONGEST:
                raise ValueError(f"it takes {len(value)} bytes, and {LONGEST} is the most")
        except Exception as error:
            raise PackError(cells, cells.named(identity), error) from error
        self._packed[place][identity] = value


def blobs_of(cells: Sequence[Cells], packed: Sequence[Packed]) -> list[tuple[int, bytes]]:
    """Return what `Collector.finish` gave as blobs, each with the place of its cells."""
    return [
        (place, blob)
        for place, (one, some) in enumerate(zip(cells, packed, strict=True))
        for blob in divided([(one.named(identity), value) for identity, value in some.items()])
    ]
