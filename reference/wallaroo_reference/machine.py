"""The interface of the interpreter and the compiled path: a machine that is fed frames.

Sans-IO: no socket, thread or clock. The feeder empties `outputs` and `dead_letters`.
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
        outputs: the outputs of each sink, in order, until the feeder takes them.
        dead_letters: the dead letters, in order, until the feeder takes them.
        ended: why the run ended before its input did (dead-3, dead-4), else `None`; once it is
            set, `feed` does nothing.
        meter: measures the outputs of a feed; if it has limits, a feed may end early.
        findings: about the application; the compiled path has none.
    """

    sequence: int
    outputs: dict[SinkId, list[bytes]]
    dead_letters: list[DeadLetter]
    ended: Ended | None
    meter: Meter

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings about the application."""

    def feed(self, source: str, payloads: Sequence[bytes]) -> None:
        """Process frames of one source, in order, each completely before the next begins.

        Args:
            source: the source's name.
            payloads: the frames' payloads. If the meter has limits this is a list; when there are
                enough outputs the feed ends early, and the payloads that were not processed are
                removed from the list.
        """

    def entities(self) -> list[Entity]:
        """Return the state entities as they are now."""
