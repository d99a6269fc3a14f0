"""Windows: how messages are grouped by time or number, and where a late one goes (window-1).

>>> import wallaroo
>>> wallaroo.range_windows(wallaroo.minutes(1)).with_slide(wallaroo.seconds(10)).pane
10000000000
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, Self, TypeAlias, TypeVar, cast

from wallaroo import kinds
from wallaroo.aggregations import AggregationRecord, aggregation_of
from wallaroo.checks import name_of
from wallaroo.errors import WallarooParameterError
from wallaroo.overriding import override
from wallaroo.times import duration

M = TypeVar("M")
N = TypeVar("N")
A = TypeVar("A")
K = TypeVar("K")

MOST_PANES = 10_000
"""Most panes in a range window (window-1)."""


class LateDataPolicy(StrEnum):
    """What becomes of a late message (window-6)."""

    DEAD_LETTER = "dead-letter"
    DROP = "drop"
    FIRE_PER_MESSAGE = "fire-per-message"
    PLACE_IN_OLDEST_WINDOW = "place-in-oldest-window"


@dataclass(frozen=True, kw_only=True)
class _Windows:
    """What windows of every kind have: each of their ``with_…`` calls may be made once."""

    given: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def over(self, aggregation: kinds.AnyAggregation[M, A, K, N]) -> WindowedAggregation[M, K, N]:
        """Return the step that computes `aggregation` over these windows.

        Raises:
            WallarooParameterError: it is not an aggregation; or it has no `combine`, which windows
                that slide and sessions need.
        """
        record = aggregation_of(aggregation)
        if record.combine is None and (why := self._what_combines()):
            raise WallarooParameterError(
                f"{record.name} has no combine, and {why}. "
                "Write: def combine(self, earlier, later): …"
            )
        return WindowedAggregation(cast("Windows", self), record)

    def _what_combines(self) -> str | None:
        """Return why accumulators of these windows are combined; `None`: they are not."""
        return None

    def _changed(self, call: str, **changes: Any) -> Self:
        """Return the windows after a ``with_…`` call.

        Raises:
            WallarooParameterError: it has been made before.
        """
        if call in self.given:
            made_by = {RangeWindows: "range_windows", SessionWindows: "session_windows"}
            function = made_by.get(type(self), "count_windows")
            raise WallarooParameterError(f"{function}: {call} is called twice. Write it once")
        return replace(self, given=self.given | {call}, **changes)


@dataclass(frozen=True, kw_only=True)
class _TimedWindows(_Windows):
    """Windows of event time.

    Args:
        delay: nanoseconds that a window waits for late messages.
        late: what becomes of later ones.
    """

    delay: int = 0
    late: LateDataPolicy = LateDataPolicy.DEAD_LETTER

    def with_delay(self, delay: int) -> Self:
        """Return the windows with a delay, in nanoseconds, for which they wait to fire.

        Raises:
            WallarooParameterError: it is not an int of 0 or more, or was set before.
        """
        return self._changed(
            "with_delay", delay=duration("with_delay(…): the delay", delay, least=0)
        )

    def with_late_data_policy(self, policy: str) -> Self:
        """Return the windows with a policy for late messages: see `LateDataPolicy`.

        Raises:
            WallarooParameterError: these windows have no such policy, or one was set before.
        """
        return self._changed("with_late_data_policy", late=_policy(policy))

    def _delay_and_policy(self) -> str:
        delay = "" if self.delay == 0 else f", delay {show_duration(self.delay)}"
        late = "" if self.late is LateDataPolicy.DEAD_LETTER else f", late {self.late.value}"
        return f"{delay}{late}"


@dataclass(frozen=True)
class RangeWindows(_TimedWindows):
    """Windows `[k * slide, k * slide + range)` for every integer k (window-2).

    Args:
        range: nanoseconds.
        slide: nanoseconds from one window's start to the next, at most `range`.
    """

    range: int
    slide: int

    def with_slide(self, slide: int) -> RangeWindows:
        """Return the windows with another slide, in nanoseconds: `0 < slide <= range`.

        Raises:
            WallarooParameterError: the slide is none of these, was set before, or makes too many
                panes.
        """
        changed = self._changed("with_slide", slide=duration("with_slide(…): the slide", slide))
        if slide > self.range:
            raise WallarooParameterError(
                f"with_slide({slide}): the slide is longer than the range, {self.range}, so that "
                "messages would lie in no window. Write a slide up to the range"
            )
        panes = self.range // changed.pane
        if panes > MOST_PANES:
            raise WallarooParameterError(
                f"with_slide({slide}): a window of {self.range} would have {panes} panes, and "
                f"{MOST_PANES} is the most. Write a slide that divides the range"
            )
        return changed

    @property
    def pane(self) -> int:
        """The length of a pane, in nanoseconds: the greatest that fits range and slide."""
        return math.gcd(self.range, self.slide)

    def described(self) -> str:
        """Return the windows with their parameters, for people."""
        slide = "" if self.slide == self.range else f", slide {show_duration(self.slide)}"
        return f"range {show_duration(self.range)}{slide}{self._delay_and_policy()}"

    @override
    def _what_combines(self) -> str | None:
        slides = self.slide != self.range
        return "sliding windows are combined from panes" if slides else None


@dataclass(frozen=True)
class SessionWindows(_TimedWindows):
    """Windows of messages that follow each other within `gap` (window-7).

    Late messages are not placed in the oldest window.

    Args:
        gap: nanoseconds without a message after which a session ends.
    """

    gap: int

    @override
    def with_late_data_policy(self, policy: str) -> Self:
        changed = super().with_late_data_policy(policy)
        if changed.late is LateDataPolicy.PLACE_IN_OLDEST_WINDOW:
            raise WallarooParameterError(
                f"with_late_data_policy({policy!r}): sessions lie on no grid, so there is no "
                "oldest one to place a message in. Write: 'dead-letter', 'drop' or "
                "'fire-per-message'"
            )
        return changed

    def described(self) -> str:
        """Return the windows with their parameters, for people."""
        return f"sessions, gap {show_duration(self.gap)}{self._delay_and_policy()}"

    @override
    def _what_combines(self) -> str | None:
        return "sessions that meet are combined"


@dataclass(frozen=True)
class CountWindows(_Windows):
    """Windows of a number of messages (window-8).

    Args:
        count: messages in a window.
        timeout: nanoseconds of arrival time after which a window fires as it is; `None`: never.
    """

    count: int
    timeout: int | None = None

    def with_timeout(self, timeout: int) -> CountWindows:
        """Return the windows with a timeout, in nanoseconds since a window's first message.

        Raises:
            WallarooParameterError: it is not an int of 1 or more, or was set before.
        """
        length = duration("with_timeout(…): the timeout", timeout)
        return self._changed("with_timeout", timeout=length)

    def described(self) -> str:
        """Return the windows with their parameters, for people."""
        timeout = "" if self.timeout is None else f", timeout {show_duration(self.timeout)}"
        return f"count {self.count}{timeout}"


Windows: TypeAlias = RangeWindows | SessionWindows | CountWindows

Shape: TypeAlias = "tuple[str | int | None, ...]"
"""What windows must have in common to go on with what is stored of them: see `shape_of`."""


def shape_of(windows: Windows) -> Shape:
    """Return the kind of windows and all their parameters but the policy for late messages."""
    if isinstance(windows, RangeWindows):
        return "range", windows.range, windows.slide, windows.delay
    if isinstance(windows, SessionWindows):
        return "sessions", windows.gap, windows.delay
    return "count", windows.count, windows.timeout


def windows_of(shape: Shape) -> Windows:
    """Return windows of this shape.

    Raises:
        TypeError: it is not one.
    """
    match shape:
        case ("range", int(length), int(slide), int(delay)):
            return RangeWindows(length, slide, delay=delay)
        case ("sessions", int(gap), int(delay)):
            return SessionWindows(gap, delay=delay)
        case ("count", int(count), int() | None as timeout):
            return CountWindows(count, timeout)
    raise TypeError(f"{shape!r:.80} describes no windows")


def refuse_bare(component: object, call: str = "to") -> None:
    """Refuse windows without an aggregation, or an aggregation without windows, as a computation.

    Args:
        component: what was given.
        call: the method that takes both together.

    Raises:
        WallarooParameterError: `component` is windows, or looks like an aggregation.
    """
    if isinstance(component, Windows):
        raise WallarooParameterError(
            f"windows ({component.described()}) without an aggregation. Write: "
            f".{call}(WINDOWS.over(AGGREGATION))"
        )
    if hasattr(component, "initial_accumulator") and hasattr(component, "update"):
        name = name_of(component)
        raise WallarooParameterError(
            f"{name} is an aggregation, and has no window. Write: "
            f".{call}(wallaroo.range_windows(wallaroo.seconds(60)).over({name}))"
        )


@dataclass(frozen=True)
class WindowedAggregation(Generic[kinds.Taken, kinds.TakenKey, kinds.Message]):
    """Windows with what is computed over them: a step, made by `over`."""

    windows: Windows
    aggregation: AggregationRecord

    def name(self) -> str:
        """Return the aggregation's name, which is the step's."""
        return self.aggregation.name


def range_windows(length: int) -> RangeWindows:
    """Return windows of `length` nanoseconds, one after the other (window-2).

    Raises:
        WallarooParameterError: `length` is not a duration of a nanosecond or more.
    """
    length = duration("range_windows(…): the range", length)
    return RangeWindows(length, length)


def session_windows(gap: int) -> SessionWindows:
    """Return windows that end once no message has come for `gap` nanoseconds (window-7).

    Raises:
        WallarooParameterError: `gap` is not a duration of a nanosecond or more.
    """
    return SessionWindows(duration("session_windows(…): the gap", gap))


def count_windows(count: int) -> CountWindows:
    """Return windows of `count` messages (window-8).

    Raises:
        WallarooParameterError: `count` is not an int of 1 or more.
    """
    if type(count) is not int or count < 1:
        raise WallarooParameterError(
            f"count_windows(…): the count is an int of 1 or more, not {count!r:.60}"
        )
    return CountWindows(count)


def show_duration(length: int) -> str:
    """Return a duration in nanoseconds for people, exactly: ``1.5 s``."""
    units = (("d", 86400 * 10**9), ("h", 3600 * 10**9), ("min", 60 * 10**9))
    for unit, size in units:
        if length and length % size == 0:
            return f"{length // size} {unit}"
    for unit, size in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if length >= size:
            whole, rest = divmod(length, size)
            digits = f"{rest:0{len(str(size)) - 1}d}".rstrip("0")
            return f"{whole}.{digits} {unit}" if digits else f"{whole} {unit}"
    return f"{length} ns"


def _policy(policy: Any) -> LateDataPolicy:
    if isinstance(policy, str):
        for each in LateDataPolicy:
            if each.value == policy:
                return each
    names = ", ".join([repr(each.value) for each in LateDataPolicy])
    raise WallarooParameterError(
        f"with_late_data_policy({policy!r:.60}): a policy is one of {names}"
    )
