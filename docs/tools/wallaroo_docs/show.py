"""Results of a run, as the blocks of the specification show them."""

from __future__ import annotations

import json
from pathlib import Path

from wallaroo import readable
from wallaroo.testing import Result
from wallaroo.trace import DeadLetter, Entity


def sections(result: Result, partitions: int | None = None) -> dict[str, str]:
    """Return the texts of the blocks of all that happened in a run, by their titles."""
    trace = result.trace
    lines = {
        **readable.sections(trace),
        "dead-letter lines": [_line(letter) for letter in trace.dead_letters],
        "entities": [_entity(entity, partitions) for entity in trace.entities],
    }
    return {title: _text(some) for title, some in lines.items() if some}


def shown(title: str, result: Result, *, partitions: int | None) -> str:
    """Return the text of a block of that title for a run, with a newline at its end."""
    return sections(result, partitions).get(title, _text([readable.NOTHING]))


def _text(lines: list[str]) -> str:
    return "".join([f"{line}\n" for line in lines])


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
