"""Time: durations in nanoseconds, and what an event time may be (time-2, window-1).

Every duration and every point in time is an `int` of nanoseconds; points in time count from
1970-01-01 UTC. Nothing here reads a clock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from wallaroo.errors import WallarooParameterError

TIME_END = 1 << 63
"""The smallest int too large for an event time, in nanoseconds (time-2)."""

MILLISECOND = 10**6
"""In nanoseconds."""

_with_unit: set[int] = set()  # durations below a millisecond that a function here has made

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


class BadTimeError(ValueError):
    """A value that is not an event time (time-2)."""


class SourceMoment(NamedTuple):
    """The time of a source between two records.

    Args:
        greatest: the greatest event time so far; `None`: there was none.
        last_frame: arrival time of its last frame; `None`: there was none.
        ended: it gives nothing any more.
        partitions: of a Kafka source that has partitions: their times, by their numbers; then
            `greatest` and `last_frame` say nothing (kafka-9).
    """

    greatest: int | None
    last_frame: int | None
    ended: bool
    partitions: Mapping[int, SourceMoment] = MappingProxyType({})


def nanoseconds(count: float) -> int:
    """Return a duration of `count` nanoseconds.

    Every function here takes an `int` or a `float` and returns the exact product as an `int` of
    nanoseconds, rounded to the nearest, half to even (window-1).

    Raises:
        WallarooParameterError: it is not a number, not finite, negative, or positive and rounds to
            0.

    >>> seconds(1.5), nanoseconds(2.5)
    (1500000000, 2)
    """
    return _duration("nanoseconds", count, 1)


def microseconds(count: float) -> int:
    """Return a duration of `count` microseconds; see `nanoseconds`."""
    return _duration("microseconds", count, 10**3)


def milliseconds(count: float) -> int:
    """Return a duration of `count` milliseconds; see `nanoseconds`."""
    return _duration("milliseconds", count, 10**6)


def seconds(count: float) -> int:
    """Return a duration of `count` seconds; see `nanoseconds`."""
    return _duration("seconds", count, 10**9)


def minutes(count: float) -> int:
    """Return a duration of `count` minutes; see `nanoseconds`."""
    return _duration("minutes", count, 60 * 10**9)


def hours(count: float) -> int:
    """Return a duration of `count` hours; see `nanoseconds`."""
    return _duration("hours", count, 3600 * 10**9)


def days(count: float) -> int:
    """Return a duration of `count` days of 24 hours; see `nanoseconds`."""
    return _duration("days", count, 86400 * 10**9)


def duration(what: str, value: Any, *, least: int = 1) -> int:
    """Return `value` if it is a duration: an `int` of nanoseconds, `least` or more.

    Raises:
        WallarooParameterError: it is not a duration; the error begins with `what`.
    """
    if type(value) is int and value >= least:
        return value
    if type(value) is int:
        wrong = f"is {least} or more, not {value}"
    else:
        wrong = f"is an int of nanoseconds, not {_described(value)}"
    raise WallarooParameterError(f"{what} {wrong}. Write: wallaroo.seconds(COUNT), or another unit")


def has_unit(length: int) -> bool:
    """Whether a duration below a millisecond was made by a function that names its unit."""
    return length in _with_unit


def event_time_from(result: Any) -> int:
    """Return what an `event_time` function gave, in nanoseconds since 1970 (time-2).

    Args:
        result: an `int`, exactly this type, 0 <= result < 2**63, or an aware `datetime`.

    Raises:
        BadTimeError: it is neither.
    """
    kind = type(result)
    if kind is int:
        time: int = result
    elif issubclass(kind, datetime):
        offset = datetime.utcoffset(result)
        if offset is None:
            raise BadTimeError(
                "a datetime without a time zone may mean any hour. Write: "
                "datetime(…, tzinfo=timezone.utc)"
            )
        since = datetime.replace(result, tzinfo=None) - _EPOCH - offset
        time = since // _MICROSECOND * 1000
    else:
        hint = " For seconds write: wallaroo.seconds(…)" if kind is float else ""
        raise BadTimeError(
            "an event time is an int of nanoseconds since 1970, or an aware datetime, not "
            f"{'None' if result is None else f'a {kind.__name__}'}.{hint}"
        )
    if not 0 <= time < TIME_END:
        shown = f"{time}" if abs(time) < 10**30 else "a number far outside"
        raise BadTimeError(
            f"an event time is from 0 to 2**63 - 1 nanoseconds since 1970, not {shown}"
        )
    return time


def refuse_ahead(time: int, max_ahead: int) -> NoReturn:
    """Refuse an event time that is too far ahead of its record's arrival (time-2).

    Raises:
        BadTimeError: always.
    """
    raise BadTimeError(
        f"its event time is {time}, more than {max_ahead} ns ahead of its arrival (max_ahead)"
    )


def kafka_time_from(timestamp: Any) -> int:
    """Return a Kafka record's own timestamp as an event time (kafka-8).

    Raises:
        BadTimeError: it has none, or one that is no event time.
    """
    if timestamp is None:
        raise BadTimeError("the record has no timestamp")
    return event_time_from(timestamp)


def _duration(unit: str, count: Any, factor: int) -> int:
    call = f"wallaroo.{unit}({_described(count)})"
    if type(count) not in (int, float):
        raise WallarooParameterError(f"{call}: a duration is an int or a float")
    if type(count) is float and not math.isfinite(count):
        raise WallarooParameterError(f"{call}: a duration is finite")
    exact = Fraction(count) * factor
    if exact < 0:
        raise WallarooParameterError(f"{call}: a duration is not negative")
    rounded = round(exact)
    if exact > 0 and rounded == 0:
        raise WallarooParameterError(f"{call}: that is less than a nanosecond, and rounds to 0")
    if rounded < MILLISECOND:
        _with_unit.add(rounded)
    return rounded


def _described(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - the user's __repr__
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:60] + "…"
