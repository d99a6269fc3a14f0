"""What a run did, as text for people: one line a fact, the same for every engine.

The specification shows results in this form, and so does the `repr` of a test's result.
"""

from __future__ import annotations

import base64
import json
import struct
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from wallaroo.findings import Finding
from wallaroo.kafka_records import Output
from wallaroo.keys import Key, show_key
from wallaroo.topology import SinkId
from wallaroo.trace import DeadLetter, Ended, Entity, OpenWindow, Reason, Trace

NOTHING = "(none)"
WIDTH = 88


def trace_text(trace: Trace) -> str:
    """Return everything that a run did; what did not happen is left out."""
    lines = []
    for title, some in sections(trace).items():
        if some:
            lines += [f"{title}:", *[f"  {line}" for line in some]]
    return "\n".join(lines) or "nothing came out"


def sections(trace: Trace) -> dict[str, list[str]]:
    """Return everything that a run did, as lines under a title; none where nothing happened."""
    return {
        "outputs": output_lines(trace.outputs),
        "dead letters": [dead_letter_line(letter) for letter in trace.dead_letters],
        "entities": [entity_line(entity) for entity in trace.entities],
        "open windows": [window_line(window) for window in trace.windows],
        "late": late_lines(trace.late),
        "findings": [line for each in trace.findings for line in finding_lines(each)],
        "ended": [] if trace.ended is None else [ended_line(trace.ended)],
    }


def output_lines(outputs: Mapping[SinkId, Sequence[Output]]) -> list[str]:
    """Return the outputs, with their sink where there are several."""
    if len(outputs) == 1:
        return [output_text(output) for written in outputs.values() for output in written]
    return [
        f"{pipeline}[{index}]  {output}"
        for (pipeline, index), written in outputs.items()
        for output in [output_text(each) for each in written] or [NOTHING]
    ]


def output_text(output: Output) -> str:
    """Return an output: its bytes; of a Kafka sink all that is sent, and for which record."""
    if isinstance(output, bytes):
        return repr(output)
    parts = [repr(output.value)]
    if output.key is not None:
        parts.append(f"key {output.key!r}")
    if output.partition is not None:
        parts.append(f"partition {output.partition}")
    parts += [f"{name!a}: {value!r}" for name, value in output.headers]
    return ", ".join([*parts, f"at {output.timestamp} ms, for record {output.number}"])


def dead_letter_line(letter: DeadLetter) -> str:
    """Return what engines agree on of a dead letter."""
    if letter.reason is Reason.ENCODE:
        where = f" at sink {letter.sink}"
    else:
        where = "" if letter.step is None else f" at {letter.step!r}"
    parts = [f"{letter.lineage} {letter.reason}{where}"]
    if letter.error_type is not None:
        parts.append(letter.error_type)
    if letter.key is not None:
        parts.append(f"key {ascii_key(letter.key)}")
    frame = "no frame" if letter.payload is None else f"frame {letter.payload!r:.60}"
    return ", ".join([*parts, frame])


def entity_line(entity: Entity) -> str:
    """Return an entity as ``partition[key] = state``."""
    return f"{entity.partition}[{ascii_key(entity.key)}] = {structure_text(entity.state)}"


def window_line(window: OpenWindow) -> str:
    """Return an open window as ``step[key] from START s to END s = accumulator``."""
    bounds = f"from {seconds_text(window.start)} s to {seconds_text(window.end)} s"
    return f"{window.step}[{ascii_key(window.key)}] {bounds} = {structure_text(window.accumulator)}"


def late_lines(late: Mapping[tuple[str, str], int]) -> list[str]:
    """Return how many late messages each step has dropped, or taken into some windows only."""
    names = {"partly": "partly late"}
    return [f"{step}: {late[step, what]} {names.get(what, what)}" for step, what in sorted(late)]


def seconds_text(nanoseconds: int) -> str:
    """Return a time in nanoseconds as seconds, exactly."""
    whole, rest = divmod(abs(nanoseconds), 10**9)
    digits = f".{rest:09d}".rstrip("0").rstrip(".")
    return f"{'-' if nanoseconds < 0 else ''}{whole}{digits}"


def finding_lines(finding: Finding) -> list[str]:
    """Return a finding, in lines of a width that is read without scrolling."""
    key = "" if finding.key is None else f", key {ascii_key(finding.key)}"
    return wrapped(f"{finding.kind} at {finding.step!r}{key}: {finding.text}")


def ended_line(ended: Ended) -> str:
    """Return why the run ended before its input did."""
    where = "" if ended.step is None else f" at {ended.step!r}"
    what = "--on-error stop" if ended.kind == "on-error" else ended.error_type
    return f"{ended.lineage} {what}{where}"


def wrapped(text: str) -> list[str]:
    """Return a text in lines of `WIDTH`."""
    lines = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    return [line if number == 0 else f"    {line}" for number, line in enumerate(lines)]


def ascii_key(key: Key) -> str:
    """Return a key in ASCII, so that keys that look alike can be told apart."""
    return show_key(key).encode("ascii", "backslashreplace").decode("ascii")


def structure_text(form: Any) -> str:
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
            return f"[{', '.join(map(structure_text, items))}]"
        case ["tuple", items]:
            return f"({', '.join(map(structure_text, items))}{',' if len(items) == 1 else ''})"
        case ["dict", pairs]:
            shown = [f"{structure_text(k)}: {structure_text(v)}" for k, v in pairs]
            return f"{{{', '.join(shown)}}}"
        case ["set" | "frozenset", items]:
            return f"{{{', '.join(map(structure_text, items))}}}"
        case [str(kind), ["global", "copyreg.__newobj__"], [_], state, None, None]:
            match state:
                case None:
                    return _instance(kind, [])
                case ["dict", pairs] | ["tuple", [None, ["dict", pairs]]]:  # the second: __slots__
                    return _instance(kind, pairs)
        case [str(kind), ["global", "copyreg.__newobj__"], [_, *arguments], None, None, None]:
            # A named tuple.
            return f"{kind.rpartition('.')[2]}({', '.join(map(structure_text, arguments))})"
    return json.dumps(form)


def _instance(kind: str, pairs: list[Any]) -> str:
    attributes = [
        f"{name[1] if name[:1] == ['str'] else structure_text(name)}={structure_text(value)}"
        for name, value in pairs
    ]
    return f"{kind.rpartition('.')[2]}({', '.join(attributes)})"


def _double(bits: str) -> float:
    value: float = struct.unpack(">d", bytes.fromhex(bits))[0]
    return value
