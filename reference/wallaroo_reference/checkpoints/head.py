"""The head of a checkpoint: all it says besides the cells, as one record of JSON."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wallaroo.topology import SinkId
from wallaroo.transport.generators import LoggedSource
from wallaroo_reference.cells import Kind, Moment, SourceMoment

FORMAT = 1
"""The format of the file; `docs/recovery.md` says what each number stands for."""


@dataclass(frozen=True)
class CellsHead:
    """Cells of one kind and name; blobs refer to them by their position in the head.

    Args:
        kind: what they are.
        name: of the state partition or aggregation.
        count: how many there were.
    """

    kind: Kind
    name: str
    count: int


@dataclass(frozen=True)
class Head:
    """What a checkpoint says besides its cells.

    Args:
        at: when it was made, in nanoseconds since 1970.
        moment: where the machine stood; `moment.sequence` is the checkpoint's position.
        cells: the machine's cells, in its order.
        sinks: for each sink the number of outputs before the position.
        generators: for each generator source what the log says about it before the position, except
            its end, which is in the moment.
        first_blob: number of the first blob that counts.
        next_blob: number after the last.
    """

    at: int
    moment: Moment
    cells: Sequence[CellsHead]
    sinks: Mapping[SinkId, int]
    generators: Mapping[str, LoggedSource]
    first_blob: int
    next_blob: int

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
                "sources": {
                    name: [one.greatest, one.last_frame, one.ended]
                    for name, one in moment.sources.items()
                },
                "watermarks": [_finite(one) for one in moment.watermarks],
                "cells": [[one.kind, one.name, one.count] for one in self.cells],
                "sinks": [[*sink, count] for sink, count in self.sinks.items()],
                "generators": {
                    name: [base64.b64encode(one.last).decode(), one.behind]
                    for name, one in self.generators.items()
                },
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
        return Head(
            at=form["at"],
            moment=Moment(
                form["sequence"],
                form["now"],
                form["first"],
                {name: SourceMoment(*one) for name, one in form["sources"].items()},
                [_infinite(one) for one in form["watermarks"]],
            ),
            cells=[CellsHead(*one) for one in form["cells"]],
            sinks={(pipeline, index): count for pipeline, index, count in form["sinks"]},
            generators={
                name: LoggedSource(last=base64.b64decode(last), behind=behind)
                for name, (last, behind) in form["generators"].items()
            },
            first_blob=form["blobs"][0],
            next_blob=form["blobs"][1],
        )
    except OtherFormatError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise DamagedHeadError(f"it cannot be read as a head: {error!r}") from error


def _finite(watermark: float) -> Any:
    if watermark == -math.inf:
        return "none"
    return "ended" if watermark == math.inf else int(watermark)


def _infinite(said: Any) -> float:
    if said == "none":
        return -math.inf
    return math.inf if said == "ended" else said
