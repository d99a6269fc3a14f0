"""How far time has come, computed from the whole log so far (time-3, kafka-6, kafka-9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wallaroo.records import Assigned, Consumed, End, Frame, Record, Value
from wallaroo.topology import Application, Source

NEVER = -math.inf
"""A watermark that holds everything back."""


@dataclass
class Entry:
    """A record of the log.

    Args:
        record: the record.
        at: its arrival time, which never decreases along the log.
        time: the event time of its message; `None`: it has none.
    """

    record: Record
    at: int
    time: int | None = None


def ways(application: Application, index: int) -> set[tuple[str, int]]:
    """Return the ways from sources to a node: each source with the delays of windows on the way."""
    node = application.nodes[index]
    if isinstance(node, Source):
        return {(node.pipeline, 0)}
    found = set()
    for origin in node.inputs:
        operation = getattr(application.nodes[origin], "operation", None)
        delay = getattr(getattr(operation, "windows", None), "delay", 0)
        found |= {(source, delays + delay) for source, delays in ways(application, origin)}
    return found


def step_watermark(application: Application, index: int, log: Sequence[Entry]) -> float:
    """Return what the log so far says of a step's watermark."""
    marks = [
        (_source_watermark(application.sources[name], log), delays)
        for name, delays in ways(application, index)
    ]
    return min([mark - delays for mark, delays in marks if mark is not None], default=NEVER)


def _source_watermark(source: Source, log: Sequence[Entry]) -> float | None:
    """Return a source's watermark; `None`: it holds nothing back."""
    own = [entry for entry in log if getattr(entry.record, "source", None) == source.pipeline]
    ends = [entry.record.partition for entry in own if isinstance(entry.record, End)]
    if None in ends:
        return math.inf
    partitions = _joined(own)
    if not partitions:  # it is no topic, or nothing says yet what is read of it
        return _watermark(
            source, [one for one in own if isinstance(one.record, Frame | Value)], log
        )
    marks = []
    for partition in partitions:
        frames = [
            entry
            for entry in own
            if isinstance(entry.record, Consumed) and entry.record.record.partition == partition
        ]
        marks.append(math.inf if partition in ends else _watermark(source, frames, log))
    return min([mark for mark in marks if mark is not None], default=None)


def _joined(own: Sequence[Entry]) -> set[int]:
    """Return the partitions of a topic that count: the first ones, and others from a record on."""
    assigned = [entry.record for entry in own if isinstance(entry.record, Assigned)]
    first = {number for number, _, _ in assigned[0].partitions} if assigned else set()
    consumed = {
        entry.record.record.partition for entry in own if isinstance(entry.record, Consumed)
    }
    return first | consumed


def _watermark(source: Source, frames: Sequence[Entry], log: Sequence[Entry]) -> float | None:
    """Return the watermark of what has given these frames; `None`: it holds nothing back."""
    if source.config.event_time is None:
        return log[-1].at
    idle_after = source.config.idle_after
    silent = log[-1].at - (frames[-1].at if frames else log[0].at)
    idle = idle_after is not None and silent >= idle_after
    times = [entry.time for entry in frames if entry.time is not None]
    if times:
        return max(times) + (silent if idle else 0)
    return None if idle else NEVER
