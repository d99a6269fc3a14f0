"""What the interpreter and the compiled path have in common: a machine that is fed frames.

Sans-IO: no socket, thread or clock. Whoever feeds it drains `outputs` and `dead_letters`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from wallaroo.topology import SinkId
from wallaroo.trace import DeadLetter, Ended, Entity, Finding
from wallaroo_reference.meter import Meter


class Machine(Protocol):
    """An application, running.

    Attributes:
        sequence: the number the next frame gets.
        outputs: what each sink has got, in order; the feeder takes it out.
        dead_letters: what could not go on, in order; the feeder takes it out.
        ended: set once the run is over before its input is (dead-3, dead-4); feeding does
            nothing from then on.
        meter: weighs the outputs of a feed; where it has limits, a feed may end early.
        findings: about the application; the compiled path has none.
    """

    sequence: int
    outputs: dict[SinkId, list[bytes]]
    dead_letters: list[DeadLetter]
    ended: Ended | None
    meter: Meter

    @property
    def findings(self) -> Sequence[Finding]:
        """What was noticed about the application."""

    def feed(self, source: str, payloads: Sequence[bytes]) -> None:
        """Process frames of one source, in order, each to its end before the next begins.

        Args:
            source: whose.
            payloads: the frames' payloads. Where the meter has limits this is a list, and those
                that are not begun, because there are outputs enough, are taken out of it.
        """

    def entities(self) -> list[Entity]:
        """Return the state entities as they are now."""
