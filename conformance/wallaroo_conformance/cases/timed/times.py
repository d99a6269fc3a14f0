"""Event times of a timed case's messages, and all of its times moved."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wallaroo_conformance.cases.timed.case import Entry, TimedCase

LATER: Final = 840
"""Nanoseconds: a whole number of all the ranges and slides that cases have."""

_PARTS = 3  # of a message's text


def time_of(entry: Entry) -> int | None:
    """Return the event time in a message's text, if there is one."""
    parts = entry.payload.decode("latin-1").split(" ")
    has_time = entry.what == "frame" and len(parts) == _PARTS and parts[1].isdigit()
    return int(parts[1]) if has_time else None


def with_time(entry: Entry, time: int) -> Entry:
    """Return a message with another event time in its text, if there is one."""
    if time_of(entry) is None:
        return entry
    letter, _, text = entry.payload.decode("latin-1").split(" ")
    return replace(entry, payload=f"{letter} {time} {text}".encode("latin-1"))


def earlier(case: TimedCase) -> TimedCase:
    """Return the case with its times as early as they can be, the same in all windows."""
    times = [time_of(entry) for entry in case.inputs]
    known = [time for time in times if time is not None]
    gone = min([*known, *[one.at for one in case.inputs]], default=0) // LATER * LATER
    moved = [
        with_time(replace(entry, at=entry.at - gone), (time or 0) - gone)
        for entry, time in zip(case.inputs, times, strict=True)
    ]
    return replace(case, inputs=tuple(moved))
