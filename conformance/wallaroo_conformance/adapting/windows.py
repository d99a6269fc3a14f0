"""Windows for adapters: what an engine with windows of its own has to fold.

Such an engine decides which windows a message belongs to, keeps what is accumulated, and decides
when a window fires and which message is late.

Many engines ask for three functions: one adds a message to what a window holds, one joins what two
sessions hold, one says what a window gives. These are `Folding`. They combine panes and sessions as
the rules say (window-5, window-7), whichever windows the engine puts a message into.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeGuard

from wallaroo.errors import UnsupportedTopology
from wallaroo.operations import Windowed
from wallaroo.topology import Application, Step
from wallaroo.windows import CountWindows, LateDataPolicy, RangeWindows, SessionWindows
from wallaroo_conformance.adapting.calls import Calls, Message, Outcome

Folded: TypeAlias = Mapping[tuple[int, int], bytes]
"""What a window holds: accumulators. The key of a session's is its first and last event time, that
of a pane's its number, twice. It is empty if nothing came, or no `update` succeeded (window-9)."""


def refuse_unfolded(application: Application, engine: str) -> None:
    """Refuse windows that `Folding` does not have (build-2).

    Raises:
        UnsupportedTopology: there are count windows, a policy for late messages other than
            ``dead-letter`` and ``drop``, or an idle source or several in front of a window: an
            adapter has one input, which cannot hold back for a source (time-3).
    """
    for index in application.window_steps:
        step = application.nodes[index]
        assert isinstance(step, Step)
        assert isinstance(step.operation, Windowed)
        windows = step.operation.windows
        if isinstance(windows, CountWindows):
            raise UnsupportedTopology("window-8", step.name, f"{engine} has no such count windows")
        if windows.late not in (LateDataPolicy.DEAD_LETTER, LateDataPolicy.DROP):
            reason = f"{engine} has no late policy {windows.late.value!r}"
            raise UnsupportedTopology("window-6", step.name, reason)
        if len(application.ways[index]) > 1:
            raise UnsupportedTopology("time-3", step.name, f"{engine} has one source here")
        for source in application.ways[index]:
            if application.sources[source].config.idle_after is not None:
                raise UnsupportedTopology("time-3", source, f"{engine} knows no idle sources")


class Folding:
    """The functions for one window step of one run.

    Args:
        calls: the application's calls.
        step: a step with range or session windows.
        note: takes the dead letters and ends.
    """

    def __init__(self, calls: Calls, step: Step, note: Callable[[Outcome], object]) -> None:
        self._calls, self._step, self._note = calls, step, note
        assert isinstance(step.operation, Windowed)
        self._windows = step.operation.windows
        self._joining: tuple[bytes, Message] | None = None  # key and message added last
        self._added: tuple[Folded, Folded] = {}, {}  # its session before it and after it
        self._late: set[tuple[int, ...]] = set()
        self._failed: set[tuple[int, ...]] = set()

    def add(self, folded: Folded, key: bytes, message: Message) -> Folded:
        """Return what a window holds after one more message.

        A message may be added to several sliding windows; if its `update` fails, that is one dead
        letter.
        """
        if isinstance(self._windows, RangeWindows):
            pane = message.time // self._windows.pane
            part = self._calls.update(self._step, key, message, folded.get((pane, pane)))
            return {**folded, (pane, pane): part} if self._is_good(part, message) else folded
        part = self._calls.update(self._step, key, message)
        if not self._is_good(part, message):
            return folded
        self._joining = key, message
        joined = self._joined(folded, {(message.time, message.time): part})
        self._added = folded, folded if joined is None else joined
        return self._added[1]

    def join(self, folded: Folded, other: Folded) -> Folded:
        """Return what two sessions hold that the last message has made one.

        If `combine` raises, they stay two, without that message (window-9), and `give` gives both.
        """
        joined = self._joined(folded, other)
        if joined is not None:
            return joined
        before, after = self._added
        return {
            bounds: part
            for part_of in (folded, other)
            for bounds, part in (before if part_of == after else part_of).items()
        }

    def give(self, folded: Folded, key: bytes, start: int | None = None) -> list[Outcome]:
        """Return what a window gives.

        Args:
            folded: what it holds.
            key: its key.
            start: of a range window, in nanoseconds since 1970.
        """
        windows = self._windows
        if isinstance(windows, RangeWindows):
            assert start is not None, "range windows have a start"
            parts = [part for _, part in sorted(folded.items())]
            return self._fired(key, parts, start, start + windows.range) if parts else []
        assert isinstance(windows, SessionWindows)
        return [
            outcome
            for (first, last), part in sorted(folded.items())
            for outcome in self._fired(key, [part], first, last + windows.gap)
        ]

    def late(self, key: bytes, message: Message) -> list[Outcome]:
        """Return what becomes of a late message; nothing more if it is late for another window."""
        if message.lineage in self._late:
            return []
        self._late.add(message.lineage)
        return self._calls.late(self._step, key, message)

    def partly_late(self, message: Message) -> None:
        """Count a message that is late for some of its windows, and not for the others."""
        if message.lineage not in self._late:
            self._late.add(message.lineage)
            self._calls.partly_late(self._step)

    def _fired(self, key: bytes, parts: list[bytes], start: int, end: int) -> list[Outcome]:
        return self._calls.fire(self._step, key, parts, start, end)

    def _joined(self, folded: Folded, other: Folded) -> Folded | None:
        """Return two sessions as one, or `None` if `combine` has raised."""
        assert self._joining is not None, "sessions become one by a message"
        if not folded or not other:
            return folded or other
        # In order of the first event time; on a tie the older one comes first (window-7).
        ordered = sorted([*folded.items(), *other.items()], key=lambda item: item[0][0])
        key, message = self._joining
        part = self._calls.combine(self._step, key, message, [part for _, part in ordered])
        if not self._is_good(part, message):
            return None
        bounds = [bound for bound, _ in ordered]
        return {(bounds[0][0], max(last for _, last in bounds)): part}

    def _is_good(self, part: bytes | Outcome, message: Message) -> TypeGuard[bytes]:
        if isinstance(part, bytes):
            return True
        if message.lineage not in self._failed:
            self._failed.add(message.lineage)
            self._note(part)
        return False
