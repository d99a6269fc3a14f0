"""Results of a run, as the blocks of the specification show them."""

from __future__ import annotations

import json
from pathlib import Path

from wallaroo import readable
from wallaroo.testing import Result
from wallaroo.trace import DeadLetter, Entity


def shown(title: str, result: Result, *, partitions: int | None) -> str:
    """Return the text of a block of that title for a run, with a newline at its end."""
    trace = result.trace
    lines = {
        "outputs": lambda: readable.output_lines(result.outputs),
        "dead letters": lambda: [readable.dead_letter_line(one) for one in trace.dead_letters],
        "dead-letter lines": lambda: [_line(one) for one in trace.dead_letters],
        "entities": lambda: [_entity(one, partitions) for one in trace.entities],
        "open windows": lambda: [readable.window_line(one) for one in trace.windows],
        "late": lambda: readable.late_lines(trace.late),
        "findings": lambda: [
            line for one in trace.findings for line in readable.finding_lines(one)
        ],
        "ended": lambda: [] if trace.ended is None else [readable.ended_line(trace.ended)],
    }[title]()
    return "".join([f"{line}\n" for line in lines or [readable.NOTHING]])


def wrapped(text: str) -> str:
    """Return an error's text in lines of a width that is read without scrolling."""
    return "\n".join(readable.wrapped(text)) + "\n"


def _entity(entity: Entity, partitions: int | None) -> str:
    where = "" if partitions is None else f"  in partition {entity.number} of {partitions}"
    return readable.entity_line(entity) + where


def _line(letter: DeadLetter) -> str:
    """Return a letter's line of JSON; paths only as file names."""
    form = letter.to_json()
    for failure in (form, *form["causes"]):
        for frame in failure["where"]:
            frame["file"] = Path(frame["file"]).name
    return json.dumps(form)
