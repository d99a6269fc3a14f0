"""The track of a part of the input: what its records say about time, for steps with windows.

Event times are known where frames are decoded, and watermarks depend on sources alone (time-3). So
every task that decodes records sends the track of its part to every shard that holds windows, which
replays it between the messages that it gets.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from enum import IntEnum
from typing import TypeAlias

Track: TypeAlias = "array[int]"
"""A part's moments, in order: their fields, one after the other."""


class What(IntEnum):
    """What kind of record it was."""

    TICK = 0
    MESSAGE = 1
    END = 2


Moment: TypeAlias = tuple[int, int, int, int, int]
"""What a record says about time: (sequence, arrival time, `What`, source, event time).

The source is its number among the application's sources, 0 for a tick; the event time may be
`wallaroo.windowing.watermarks.NO_TIME`.
"""

_FIELDS = 5


def moments(tracks: Iterable[Track]) -> list[Moment]:
    """Return the moments of several parts in order of their records."""
    found: list[Moment] = []
    for track in tracks:
        numbers = iter(track)
        found += zip(*[numbers] * _FIELDS, strict=True)
    return sorted(found)
