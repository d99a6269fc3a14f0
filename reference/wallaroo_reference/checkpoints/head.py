"""The head of a checkpoint: all it says besides the cells, as one record of JSON."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from wallaroo.json_fields import a_number, a_text, by_sink, or_none
from wallaroo.times import SourceMoment
from wallaroo.topology import SinkId
from wallaroo.transport.logged import LoggedSource, TopicPosition
from wallaroo.transport.resumption import Stream
from wallaroo.windows import Shape, windows_of
from wallaroo_reference.cells import Cells, Kind, Moment
from wallaroo_reference.machine import Machine

FORMAT = 2
"""The format of checkpoints. In 2 the number of a pane takes 9 bytes, in 1 it took 8."""


@dataclass(frozen=True)
class CellsHead:
    """Cells of one kind and name; blobs refer to them by their position in the head.

    Args:
        kind: what they are.
        name: of the state partition or aggregation.
        count: how many there were.
        shape: of the windows; empty for entities.
    """

    kind: Kind
    name: str
    count: int
    shape: Shape = ()

    def is_of(self, cells: CellsHead | Cells) -> bool:
        """Whether these are what `cells` are of: the same entities, or windows of one shape."""
        return (self.kind, self.name, self.shape) == (cells.kind, cells.name, cells.shape)


def places_in(machine: Machine, stored: Sequence[CellsHead]) -> list[Cells | None]:
    """Return where stored cells belong in a machine: for each its cells; `None`: it has none."""
    rest = list(machine.cells())
    places: list[Cells | None] = []
    for one in stored:
        cells = next((cells for cells in rest if one.is_of(cells)), None)
        if cells is not None:
            rest.remove(cells)
        places.append(cells)
    return places


def moment_in(
    machine: Machine, sources: Collection[str], was: Moment, steps: Sequence[Cells | None]
) -> Moment:
    """Return where a machine goes on, which may have other sources and window steps today.

    Args:
        machine: the machine.
        sources: the names of its sources.
        was: where the stored machine stood.
        steps: where that one's window steps belong, as `places_in` says.
    """
    reached = dict(zip(map(id, steps), was.watermarks, strict=True))
    return replace(
        was,
        sources={name: source for name, source in was.sources.items() if name in sources},
        watermarks=[reached.get(id(cells), -math.inf) for cells in machine.cells() if cells.shape],
    )


@dataclass(frozen=True)
class Head:
    """What a checkpoint says besides its cells.

    Args:
        at: when it was made, in nanoseconds since 1970.
        moment: where the machine stood; `moment.sequence` is the checkpoint's position.
        cells: the machine's cells, in its order.
        sinks: for each sink the number of outputs before the position.
        logged: what the log says of each source before the position.
        first_blob: number of the first blob that counts.
        next_blob: number after the last.
        topics: number of partitions of each Kafka sink's topic, as of the first start (kafka-13).
        streams: of each sink whose peer remembers, before the position (sink-9).
    """

    at: int
    moment: Moment
    cells: Sequence[CellsHead]
    sinks: Mapping[SinkId, int]
    logged: Mapping[str, LoggedSource]
    first_blob: int
    next_blob: int
    topics: Mapping[SinkId, int] = field(default_factory=dict)
    streams: Mapping[SinkId, Stream] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the head as text."""
        moment = self.moment
        return json.dumps(
            {
                "format": FORMAT,
                "at": self.at,
                "sequence": moment.sequence,
                "now": moment.now,
                "first": moment.first,
                "sources": {name: _times(one) for name, one in moment.sources.items()},
                "watermarks": [_finite(one) for one in moment.watermarks],
                "cells": [[one.kind, one.name, one.count, one.shape] for one in self.cells],
                "sinks": [[*sink, count] for sink, count in self.sinks.items()],
                "generators": {
                    name: [base64.b64encode(one.last).decode(), one.behind]
                    for name, one in self.logged.items()
                    if one.last or one.behind
                },
                "positions": {
                    name: one.position.form
                    for name, one in self.logged.items()
                    if one.position is not None
                },
                "topics": [[*sink, count] for sink, count in self.topics.items()],
                "streams": [[*sink, *one.form] for sink, one in self.streams.items()],
                "blobs": [self.first_blob, self.next_blob],
            }
        )


class DamagedHeadError(ValueError):
    """A text that is not a head."""


class OtherFormatError(ValueError):
    """A head of another format.

    Args:
        found: the number of that format.
    """

    def __init__(self, found: Any) -> None:
        super().__init__(f"its format is {found}, ours {FORMAT}")
        self.found = found


def head_from(text: str) -> Head:
    """Return the head that a text says.

    Raises:
        DamagedHeadError: it is not a head.
        OtherFormatError: it is of another format.
    """
    try:
        form = json.loads(text)
        if form["format"] != FORMAT:
            raise OtherFormatError(form["format"])
        first_blob, next_blob = form["blobs"]
        cells = [_cells(*one) for one in form["cells"]]
        if len(form["watermarks"]) != len([one for one in cells if one.shape]):
            raise ValueError("it has not a watermark for each window step")
        moment = Moment(
            a_number(form["sequence"]),
            a_number(form["now"]),
            or_none(a_number, form["first"]),
            {name: _source(*one) for name, one in form["sources"].items()},
            [_infinite(one) for one in form["watermarks"]],
        )
        return Head(
            at=a_number(form["at"]),
            moment=moment,
            cells=cells,
            sinks=by_sink(a_number, form["sinks"]),
            logged=_logged(moment, form["generators"], form["positions"]),
            topics=by_sink(a_number, form["topics"]),
            streams=by_sink(Stream.from_form, form.get("streams", ())),
            first_blob=a_number(first_blob),
            next_blob=a_number(next_blob),
        )
    except OtherFormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedHeadError(f"it cannot be read as a head: {error!r}") from error


def _finite(watermark: float) -> Any:
    if watermark == -math.inf:
        return "none"
    return "ended" if watermark == math.inf else int(watermark)


def _infinite(said: Any) -> float:
    if said == "none":
        return -math.inf
    return math.inf if said == "ended" else a_number(said)


def _times(source: SourceMoment) -> list[Any]:
    partitions = [[number, _times(one)] for number, one in source.partitions.items()]
    return [source.greatest, source.last_frame, source.ended, partitions]


def _source(greatest: Any, last_frame: Any, ended: Any, partitions: Any) -> SourceMoment:
    if type(ended) is not bool:
        raise TypeError(f"{ended!r:.40} is not true or false")
    parts = {a_number(number): _source(*one) for number, one in partitions}
    return SourceMoment(or_none(a_number, greatest), or_none(a_number, last_frame), ended, parts)


def _logged(
    moment: Moment, generators: Mapping[str, Any], positions: Mapping[str, Any]
) -> dict[str, LoggedSource]:
    """Return what the log says of sources; what has ended stands in the moment."""
    logged = {
        name: LoggedSource(
            ended=source.ended,
            partitions={
                number: LoggedSource(ended=True)
                for number, part in source.partitions.items()
                if part.ended
            },
        )
        for name, source in moment.sources.items()
    }
    for name, (last, behind) in generators.items():
        source = logged.get(name, LoggedSource())
        logged[name] = replace(source, last=base64.b64decode(last), behind=a_number(behind))
    for name, form in positions.items():
        source = logged.get(name, LoggedSource())
        logged[name] = replace(source, position=TopicPosition.from_form(form))
    return logged


def _cells(kind: Any, name: Any, count: Any, shape: Any) -> CellsHead:
    if kind not in get_args(Kind):
        raise TypeError(f"{kind!r:.40} is no kind of cells")
    if kind != "partition":
        windows_of(shape)
    return CellsHead(kind, a_text(name), a_number(count), tuple(shape))
