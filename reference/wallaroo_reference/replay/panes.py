"""Which messages are in a window: every accumulator knows what it was made from.

A window step freezes an accumulator after each message, and after sessions merge. A frozen
accumulator here also knows the accumulators that it was made from and the message that was put in.
So the messages of a window are exactly those that its accumulators have met, whatever its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from wallaroo.trace import Lineage, lineage_order
from wallaroo_reference.isolated.copies import Frozen, packed, thaw


class Put(NamedTuple):
    """A message that was put into a window.

    Args:
        lineage: its lineage.
        time: its event time.
        message: the message, frozen.
    """

    lineage: Lineage
    time: int
    message: Any


class Panes:
    """Freezes the accumulators of window steps, and knows what is in them.

    Args:
        freeze: freezes a value.
    """

    def __init__(self, freeze: Callable[[Any], Any]) -> None:
        self._freeze = freeze
        self._put: Put | None = None  # the message that is being put in
        self._in_none = False  # whether no accumulator has met it yet
        self.thawed: list[_Pane] = []

    @contextmanager
    def putting(self, put: Put | None) -> Iterator[None]:
        """Inside the block, what is frozen is an accumulator that has met this message.

        Args:
            put: the message; `None`: what is frozen is not an accumulator, but what a window gives.
        """
        before = self._put
        self._put, self._in_none = put, True
        self.thawed.clear()
        try:
            yield
        finally:
            self._put = before
            self.thawed.clear()

    def freeze(self, value: Any) -> Any:
        """Return a value frozen; an accumulator with what is in it."""
        frozen = self._freeze(value)
        if self._put is None:
            return frozen
        pane = _Pane(self, frozen, tuple(self.thawed), self._put if self._in_none else None)
        self._in_none = False
        self.thawed.clear()
        return pane

    @property
    def watching(self) -> bool:
        """Whether a message is being put in."""
        return self._put is not None

    def puts(self, parts: Sequence[Any]) -> list[Put]:
        """Return the messages in accumulators, in order of lineage."""
        found: list[Put] = []
        todo = [part for part in parts if isinstance(part, _Pane)]
        while todo:
            pane = todo.pop()
            if pane.put is not None:
                found.append(pane.put)
            todo.extend(pane.made_of)
        return sorted(found, key=lambda put: lineage_order(put.lineage))


class _Pane(Frozen):
    """A frozen accumulator that knows what is in it."""

    __slots__ = ("_panes", "inner", "made_of", "put")

    def __init__(
        self, panes: Panes, inner: Any, made_of: tuple[_Pane, ...], put: Put | None
    ) -> None:
        self._panes = panes
        self.inner = inner
        self.made_of = made_of
        self.put = put

    def thaw(self) -> Any:
        """Return a copy of the accumulator."""
        if self._panes.watching:
            self._panes.thawed.append(self)
        return thaw(self.inner)

    def packed(self) -> bytes:
        """Return the accumulator as bytes."""
        return packed(self.inner)
