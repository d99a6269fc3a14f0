"""Machines that take turns: each goes on from what a checkpoint keeps of the last (recover-1).

In memory and between any two records, so that bounded cases try what otherwise takes a process that
is killed.
"""

from __future__ import annotations

from wallaroo_reference.machine import Machine


class Kept:
    """What a checkpoint keeps of a machine that `keeps`.

    Args:
        machine: a new one.

    Attributes:
        cells: for each of the machine's `Cells` the values by name.
        moment: where the machine stood when they were taken.
    """

    def __init__(self, machine: Machine) -> None:
        self.cells: list[dict[bytes, bytes]] = [{} for _ in machine.cells()]
        self.moment = machine.moment()

    def take(self, machine: Machine) -> None:
        """Take what has changed, and where the machine stands."""
        for kept, cells in zip(self.cells, machine.cells(), strict=True):
            for identity in cells.changed:
                name, value = cells.named(identity), cells.packed(identity)
                if value is None:
                    kept.pop(name, None)
                else:
                    kept[name] = value
            cells.changed.clear()
        self.moment = machine.moment()

    def put(self, machine: Machine) -> None:
        """Put it into a new machine, which then stands where the other one stood."""
        for kept, cells in zip(self.cells, machine.cells(), strict=True):
            cells.unpack([*kept.items()])
        machine.go_on_from(self.moment)
