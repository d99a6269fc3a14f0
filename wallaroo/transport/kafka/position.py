"""Where Kafka sources stand: what a log and a checkpoint say of them (kafka-3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wallaroo.records import Assigned


@dataclass(frozen=True)
class Position:
    """Where a Kafka source stands: what a log and a checkpoint say of it.

    Args:
        topic: the topic's id.
        offsets: for each partition that is read, the next offset.
        at: when the source began, in nanoseconds since 1970: the arrival time of all that a
            bounded read reads (kafka-10).
        ends: for each partition of a bounded read, the offset behind its last; `None`: it is none.
        starts: for each of these, the offset at which the read began, from which turns count.
    """

    topic: str
    offsets: Mapping[int, int]
    at: int = 0
    ends: Mapping[int, int] | None = None
    starts: Mapping[int, int] | None = None

    @property
    def form(self) -> list[Any]:
        """The position as values of JSON."""
        return [self.topic, self.at, *map(_pairs, (self.offsets, self.ends, self.starts))]

    @classmethod
    def from_form(cls, form: Any) -> Position:
        """Return the position that `form` gave.

        Raises:
            TypeError, ValueError: it is not one.
        """
        topic, at, offsets, *bounds = form
        if type(topic) is not str or type(at) is not int:
            raise TypeError(f"{form!r:.80} is no position")
        ends, starts = [None if some is None else _offsets(some) for some in (*bounds, None)[:2]]
        return cls(topic, _offsets(offsets), at, ends, starts)

    def with_assigned(self, record: Assigned) -> Position:
        """Return the position once a log has said which partitions are read."""
        offsets = {number: first for number, first, _ in record.partitions}
        ends = {number: end for number, _, end in record.partitions if end is not None}
        bounded = ends and not self.ends  # from now on
        return Position(
            record.topic,
            {**self.offsets, **offsets},
            record.at if bounded or not self.at else self.at,
            {**(self.ends or {}), **ends} or None,
            offsets if bounded else self.starts,
        )


def _pairs(offsets: Mapping[int, int] | None) -> list[list[int]] | None:
    return None if offsets is None else [[*pair] for pair in offsets.items()]


def _offsets(form: Any) -> dict[int, int]:
    offsets: dict[int, int] = dict(form)
    if not {type(number) for pair in offsets.items() for number in pair} <= {int}:
        raise TypeError(f"{form!r:.80} are no offsets")
    return offsets
