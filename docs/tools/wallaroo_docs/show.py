"""Results of a run, as text for people: one line a fact, the same for every engine."""

from __future__ import annotations

import base64
import json
import struct
import textwrap
from pathlib import Path
from typing import Any

from wallaroo.keys import Key, show_key
from wallaroo.testing import Result
from wallaroo.topology import SinkId
from wallaroo.trace import DeadLetter, Ended, Finding, Reason

NOTHING = "(none)"
_WIDTH = 88


def shown(title: str, result: Result, *, partitions: int | None) -> str:
    """Return what a block of that title says of a run, with a newline at its end."""
    lines = {
        "outputs": lambda: _outputs(result.outputs),
        "dead letters": lambda: [_dead_letter(letter) for letter in result.dead_letters],
        "dead-letter lines": lambda: [_line(letter) for letter in result.dead_letters],
        "entities": lambda: _entities(result, partitions),
        "findings": lambda: [line for each in result.findings for line in _finding(each)],
        "ended": lambda: _ended(result.trace.ended),
    }[title]()
    return "".join([f"{line}\n" for line in lines or [NOTHING]])


def wrapped(text: str) -> str:
    """Return an error's text in lines of a width that is read without scrolling."""
    return "\n".join(_wrap(text)) + "\n"


def _outputs(outputs: dict[SinkId, list[bytes]]) -> list[str]:
    if len(outputs) == 1:
        return [repr(output) for written in outputs.values() for output in written]
    return [
        f"{pipeline}[{index}]  {output}"
        for (pipeline, index), written in outputs.items()
        for output in [repr(each) for each in written] or [NOTHING]
    ]


def _dead_letter(letter: DeadLetter) -> str:
    if letter.reason is Reason.ENCODE:
        where = f" at sink {letter.sink}"
    else:
        where = "" if letter.step is None else f" at {letter.step!r}"
    parts = [f"{letter.lineage} {letter.reason}{where}"]
    if letter.error_type is not None:
        parts.append(letter.error_type)
    if letter.key is not None:
        parts.append(f"key {_key(letter.key)}")
    return ", ".join([*parts, f"frame {letter.payload!r:.60}"])


def _line(letter: DeadLetter) -> str:
    """Return a letter's line of JSON; of files their names, since the directory is a temporary."""
    form = letter.to_json()
    for failure in (form, *form["causes"]):
        for frame in failure["where"]:
            frame["file"] = Path(frame["file"]).name
    return json.dumps(form)


def _entities(result: Result, partitions: int | None) -> list[str]:
    return [
        f"{entity.partition}[{_key(entity.key)}] = {_structure(entity.state)}"
        + ("" if partitions is None else f"  in partition {entity.number} of {partitions}")
        for entity in result.trace.entities
    ]


def _finding(finding: Finding) -> list[str]:
    key = "" if finding.key is None else f", key {_key(finding.key)}"
    return _wrap(f"{finding.kind} at {finding.step!r}{key}: {finding.text}")


def _ended(ended: Ended | None) -> list[str]:
    if ended is None:
        return []
    where = "" if ended.step is None else f" at {ended.step!r}"
    what = "--on-error stop" if ended.kind == "on-error" else ended.error_type
    return [f"{ended.lineage} {what}{where}"]


def _wrap(text: str) -> list[str]:
    lines = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [line if number == 0 else f"    {line}" for number, line in enumerate(lines)]


def _key(key: Key) -> str:
    """Return a key in ASCII, so that keys that look alike can be told apart."""
    return show_key(key).encode("ascii", "backslashreplace").decode("ascii")


def _structure(form: Any) -> str:
    """Return a canonical structure (`wallaroo.canonical`) much as Python would write the value."""
    match form:
        case None | bool():
            return repr(form)
        case ["str", text]:
            return repr(text)
        case ["int", digits]:
            return str(int(digits, 16))
        case ["float", bits]:
            return repr(_double(bits))
        case ["bytes" | "bytearray", text]:
            return repr(base64.b64decode(text))
        case ["list", items]:
            return f"[{', '.join(map(_structure, items))}]"
        case ["tuple", items]:
            return f"({', '.join(map(_structure, items))}{',' if len(items) == 1 else ''})"
        case ["dict", pairs]:
            return f"{{{', '.join([f'{_structure(k)}: {_structure(v)}' for k, v in pairs])}}}"
        case ["set" | "frozenset", items]:
            return f"{{{', '.join(map(_structure, items))}}}"
        case [str(kind), ["global", "copyreg.__newobj__"], [_], state, None, None]:
            pairs = [] if state is None else state[1]
            attributes = [f"{name[1]}={_structure(value)}" for name, value in pairs]
            return f"{kind.rpartition('.')[2]}({', '.join(attributes)})"
    return json.dumps(form)


def _double(bits: str) -> float:
    value: float = struct.unpack(">d", bytes.fromhex(bits))[0]
    return value
