"""What a live run does not support yet, refused before any input is read (build-2)."""

from __future__ import annotations

from wallaroo.errors import UnsupportedTopology
from wallaroo.parts import second_part_of
from wallaroo.topology import Application

_NOT_SERVED = frozenset({"graph-4", "key-4", "window-1"})
"""Rules of the second part whose use is refused: nothing writes ticks, values and ends."""


def refuse_unserved(application: Application) -> None:
    """Refuse what only a run over a bounded input supports.

    Raises:
        UnsupportedTopology: names the first rule and step.
    """
    for rule, step in second_part_of(application):
        if rule in _NOT_SERVED:
            raise UnsupportedTopology(
                rule,
                step,
                "Spark runs this over a bounded input only, not live. Write: --engine reference",
            )
