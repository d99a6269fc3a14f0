"""From a line of generated code that raised to a dead letter: its lineage and fields (dead-1).

Generated code keeps no lineage and no names of steps. The `Spot` of the line names the step, and
the variables of the function say how far each loop has come.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from wallaroo.judging import DeadLetterError
from wallaroo.keys import Key, show_key
from wallaroo.trace import DeadLetter, Lineage, Reason
from wallaroo_reference.compiled.codegen_text import Spot

_MAY_HALF_CHANGE = frozenset({Reason.RAISED, Reason.BAD_RESULT})


def line_that_raised() -> int:
    """Return the line of the generated function that raised the current exception."""
    trace = sys.exc_info()[2]
    assert trace is not None
    return trace.tb_lineno


def lineage_in(spot: Spot, names: Mapping[str, Any]) -> Lineage:
    """Return the lineage of the message at a line, from what is left in the loops' iterators.

    Args:
        spot: the line's.
        names: the variables of the line's function.
    """
    positions = [
        len(names[items]) - 1 - names[rest].__length_hint__() for items, rest in spot.loops
    ]
    if "lineage" in names:
        return (*names["lineage"], *positions)
    return (names["start"] + positions[0], *positions[1:])


def dead_letter_at(
    spot: Spot,
    source: str | None,
    lineage: Lineage,
    dead: DeadLetterError,
    key: Key | None,
    payload: bytes | None,
) -> DeadLetter:
    """Return the dead letter of a message that failed at a line.

    Args:
        spot: the line's.
        source: of the record that is processed; `None` for a tick.
        lineage: the message's.
        dead: why it cannot go on; it does not end the run.
        key: the message's key, if it has met an entity or a window.
        payload: the frame's.
    """
    assert dead.reason is not None
    text = dead.error
    if key is not None and dead.reason in _MAY_HALF_CHANGE and spot.half:
        text += f" [trusting: the {spot.half} of {show_key(key)} may be half changed]"
    return DeadLetter(
        lineage=lineage,
        source=source,
        pipeline=spot.pipeline,
        step=spot.step,
        position=spot.position,
        sink=spot.sink,
        key=key,
        reason=dead.reason,
        error_type=dead.error_type,
        error=text,
        payload=payload,
        where=dead.failure.where,
        causes=dead.failure.causes,
    )
