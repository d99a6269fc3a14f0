"""Decides whether the sources are read: only while there is no reason to pause."""

from __future__ import annotations

from wallaroo.transport.edges import Edges


class Valve:
    """Pauses the edges while there is a reason to.

    Args:
        edges: what is paused.
    """

    def __init__(self, edges: Edges) -> None:
        self._edges = edges
        self._reasons: set[str] = set()

    @property
    def reasons(self) -> frozenset[str]:
        """The reasons against it now; in any thread."""
        return frozenset(self._reasons)

    def close(self, reason: str) -> None:
        """Pause reading, for a reason, until `open` is called with the same reason."""
        if not self._reasons:
            self._edges.pause()
        self._reasons.add(reason)

    def open(self, reason: str) -> None:
        """Read again, unless there is another reason to pause."""
        if reason in self._reasons:
            self._reasons.remove(reason)
            if not self._reasons:
                self._edges.resume()
