"""Machines that take turns: each must stand where the one before it stood."""

from wallaroo_reference.lives import Kept

from wallaroo.trace import sorted_entities, sorted_windows


class Compared(Kept):
    """What is kept of a machine, and how it stood; the machine that gets it must stand so too."""

    def take(self, machine):
        super().take(machine)
        self._before = _state(machine)

    def put(self, machine):
        super().put(machine)
        assert _state(machine) == self._before


def _state(machine):
    return (
        machine.sequence,
        sorted_entities(machine.entities()),
        [window.to_json() for window in sorted_windows(machine.windows())],
        machine.due(),
    )
