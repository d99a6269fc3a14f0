"""Single records followed through an application: what each call did, when, with its lineage.

From time to time a record is followed: all calls of user code for it, and for the messages made
from it, are noted with the lineage of their message. Other records are not noted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from wallaroo.components import Generator
from wallaroo.kafka_records import Header
from wallaroo.topology import Application, SinkId
from wallaroo.trace import Lineage
from wallaroo.user_code.calls import Call, CallSite, instrument
from wallaroo.user_code.failure import describe_error

EVERY = 1.0
"""Seconds between two records that are followed, at least."""

_MOST = 256  # visits of a record that are kept: one message may become millions
_LONGEST_ERROR = 500  # characters


@dataclass(slots=True)
class Visit:
    """A message at a node: the calls that were made for it there, one after the other.

    Attributes:
        node: the node's index in the application.
        lineage: the message's (order-1).
        began, ended: nanoseconds since 1970, of the first call's beginning and the last one's end.
        error: the type and the text of what user code raised there; `None`: nothing.
    """

    node: int
    lineage: Lineage
    began: int
    ended: int
    error: tuple[str, str] | None = None


@dataclass(slots=True)
class Visits:
    """The visits that were made for a record, in the order of their calls.

    Attributes:
        left_out: number of calls beyond those that are kept.
    """

    kept: list[Visit] = field(default_factory=list)
    left_out: int = 0

    def add(self, visit: Visit) -> None:
        """Add a call; calls for one message at one node are one visit."""
        last = self.kept[-1] if self.kept else None
        if last is not None and (last.node, last.lineage) == (visit.node, visit.lineage):
            last.ended = visit.ended
            last.error = visit.error or last.error
        elif len(self.kept) < _MOST:
            self.kept.append(visit)
        else:
            self.left_out += 1

    def merge(self, other: Visits) -> None:
        """Add visits that were made elsewhere."""
        room = _MOST - len(self.kept)
        self.kept += other.kept[:room]
        self.left_out += other.left_out + len(other.kept[room:])


@dataclass(slots=True)
class Followed:
    """A record, followed to the delivery of what came of it.

    Attributes:
        source: its source.
        sequence: its sequence number.
        visits: what was called for it.
        context: of a record of Kafka, the headers that say which trace it belongs to.
        arrived, ended: nanoseconds since 1970.
        delivered: when its outputs were delivered, by sink: with all those of its read (reference),
            or of its micro-batch (Spark).
    """

    source: str
    sequence: int
    visits: Visits = field(default_factory=Visits)
    context: tuple[Header, ...] = ()
    arrived: int = 0
    ended: int = 0
    delivered: dict[SinkId, int] = field(default_factory=dict)


class Follower:
    """Follows records in a process that makes their calls itself.

    Args:
        application: whose calls are noted.
        every: seconds between two records.

    Attributes:
        application: the same application; its components note their calls.
        lineage: returns the lineage of the message that is processed; the engine sets it.
    """

    def __init__(self, application: Application, every: float = EVERY) -> None:
        self.lineage: Callable[[], Lineage | None] = lambda: None
        self._every = every
        self._due = time.monotonic()
        self._open: Followed | None = None
        self._done: Followed | None = None
        self.application = instrument(application, self._noted)

    def begin(self, source: str, sequence: int) -> None:
        """Follow the next record, if it is time for one."""
        if self._done is None and time.monotonic() >= self._due:
            self._open = Followed(source, sequence)

    def end(self) -> None:
        """Note that all calls for the record have been made."""
        if self._open is not None:
            self._done, self._open = self._open, None
            self._due = time.monotonic() + self._every

    def take(self) -> Followed | None:
        """Return a record when all calls for it have been made; each record once."""
        done, self._done = self._done, None
        return done

    def _noted(self, site: CallSite, call: Call) -> Call:
        """Return a call that is noted, where it is made for a message at a node."""
        index = site.place
        if isinstance(index, str) or isinstance(site.component, Generator):
            return call

        def noted(*arguments: Any) -> Any:
            record = self._open
            if record is None:
                return call(*arguments)
            lineage = self.lineage()
            if lineage is None or lineage[0] != record.sequence:
                return call(*arguments)
            visit = Visit(index, lineage, time.time_ns(), 0)
            try:
                result = call(*arguments)
                if hasattr(type(result), "__next__"):
                    result = _to_its_end(result, visit)
            except BaseException as error:
                visit.error = error_of(error)
                raise
            finally:
                visit.ended = time.time_ns()
                record.visits.add(visit)
            return result

        return noted


def error_of(error: BaseException) -> tuple[str, str]:
    """Return the type and the text of what user code raised."""
    return type(error).__name__, describe_error(error)[:_LONGEST_ERROR]


def _to_its_end(items: Iterator[Any], visit: Visit) -> Iterator[Any]:
    """Return a multi result's iterator; the engine's reading of it is part of the call."""
    try:
        yield from items
    except GeneratorExit:  # the engine reads no further
        raise
    except BaseException as error:
        visit.error = error_of(error)
        raise
    finally:
        visit.ended = time.time_ns()
