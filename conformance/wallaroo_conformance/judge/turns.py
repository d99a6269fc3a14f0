"""Facts of the order of calls: what is due together, what is late, where event times lie."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from wallaroo.records import Frame, Record
from wallaroo.times import BadTimeError, event_time_from
from wallaroo.topology import Application
from wallaroo.windows import CountWindows, LateDataPolicy, RangeWindows, SessionWindows
from wallaroo_conformance.judge.fact import Fact


class Turns:
    """Notes what fires in one turn: several windows, or windows before a record's own message.

    Args:
        log: the case's records.
        facts: where facts are added.
    """

    def __init__(self, log: Sequence[Record], facts: set[Fact]) -> None:
        self._facts = facts
        self._followed = iter(_followed_by_frames(log))
        self._fired: list[Any] = []  # since the last record or message at a window
        self._in_frame = self._alone = self._lost = False
        self._taken: Counter[int] = Counter()  # messages at a count window's step since one fired
        self._updated: int | None = None  # the step whose update was the call before

    def of_frame(self, *, lost: bool) -> None:
        """Note that a frame was decoded; `lost`: it gave no message."""
        self._fired, self._in_frame, self._updated = [], True, None
        self._alone = next(self._followed, False)
        self._lost = self._alone and lost

    def without_time(self) -> None:
        """Note that a message has no event time: its frame gave none."""
        self._lost, self._updated = self._alone, None

    def updated(self, index: int) -> None:
        """Note that a message came into the windows of the step at an index."""
        self._taken[index] += 1
        self._updated = index
        if self._fired and self._in_frame:
            self._facts.add(Fact.FIRED_BEFORE_OWN)
        self._fired = []

    def fired(self, index: int, windows: Any, key: Any) -> None:
        """Note that a window of a key has fired at the step at an index."""
        if isinstance(windows, CountWindows) and windows.timeout is not None:
            taken = self._taken.pop(index, 0)
            if taken > 1 and (self._updated != index or taken < windows.count):
                self._facts.add(Fact.TIMEOUT_OF_SEVERAL)
        self._updated = None
        if self._lost:
            self._facts.add(Fact.FIRED_BY_LOST)
        this = index, key
        if self._fired:
            together = self._fired[-1] == this
            self._facts.add(Fact.ONE_KEY_DUE if together else Fact.DUE_TOGETHER)
        self._fired.append(this)


def _followed_by_frames(log: Sequence[Record]) -> list[bool]:
    """Return for each frame of a log whether the calls behind it can only be its own.

    The calls do not show where a tick, an end or a generator's value begins.
    """
    return [
        other is None or isinstance(other, Frame)
        for one, other in zip_longest(log, log[1:])
        if isinstance(one, Frame)
    ]


class EventTimes:
    """Notes messages at edges, and those in time because a session is open that they overlap.

    Where late messages are dead letters, a message is in time if `update` is called for it.

    Args:
        application: the case's application.
        facts: where facts are added.
    """

    def __init__(self, application: Application, facts: set[Fact]) -> None:
        self._facts = facts
        self._application = application
        windows = [getattr(step.operation, "windows", None) for step in application.steps]
        self._slides = [one.slide for one in windows if isinstance(one, RangeWindows)]
        self._greatest: dict[str, int] = {}  # event time of each source
        self._source, self._time = "", 0  # of the record's message

    def of_message(self, source: str, given: Any) -> None:
        """Note what the function of event times gave for a message."""
        with contextlib.suppress(BadTimeError):
            time = event_time_from(given)
            self._source, self._time = source, time
            latest = time >= max(self._greatest.values(), default=0)
            if latest and any(time % slide == 0 for slide in self._slides):
                self._facts.add(Fact.AT_EDGE)
            self._greatest[source] = max(time, self._greatest.get(source, 0))

    def updated(self, index: int, windows: Any) -> None:
        """Note that a message came into the windows of the step at an index."""
        if not isinstance(windows, SessionWindows) or not self._has_time_of_one_source(index):
            return
        if windows.late is LateDataPolicy.DEAD_LETTER:
            watermark = self._greatest[self._source] - windows.delay
            if self._time + windows.gap <= watermark:
                self._facts.add(Fact.IN_TIME_BY_SESSION)

    def _has_time_of_one_source(self, index: int) -> bool:
        """Whether a window step's watermark is the greatest event time of one source."""
        application = self._application
        names = list(application.ways[index])
        return (
            len(names) == 1
            and application.sources[names[0]].config.event_time is not None
            and not nodes_before(application, index) & set(application.window_steps)
        )


def nodes_before(application: Application, index: int) -> set[int]:
    """Return the nodes that lead to a node."""
    found: set[int] = set()
    rest = [index]
    while rest:
        for origin in getattr(application.nodes[rest.pop()], "inputs", ()):
            if origin not in found:
                found.add(origin)
                rest.append(origin)
    return found
