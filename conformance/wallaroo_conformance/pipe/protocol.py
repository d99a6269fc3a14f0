"""The messages on the pipe: lines of ASCII JSON, one message each (docs/engine-protocol.md).

``hello`` and ``job`` go to the engine; ``hello``, ``trace``, ``refusal``, ``crash`` and ``done``
come back. Unknown fields are ignored on both sides, so that fields can be added. `schema.json`
beside this module describes every message.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import IO, Any, get_args

from wallaroo.engine import Capabilities, Isolation, Order, Stop
from wallaroo.kafka_records import KafkaRecord
from wallaroo.records import Assigned, Consumed, End, Frame, Record, Unused, Value
from wallaroo.trace import in_base64
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.records import with_entries

PROTOCOL = "wallaroo-engine/1"
SCHEMA = Path(__file__).parent / "schema.json"

_NAMED = frozenset({"isolation", "unsupported_rules"})
_ABSENT: Mapping[str, Any] = {"live": False, "recovery": False, "refuses_in_run": True}
"""Capabilities that are the same for all engines behind a pipe."""


class ProtocolError(Exception):
    """The other side has sent what the protocol does not allow."""


def to_line(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line; lone surrogates are escaped."""
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


def from_line(line: bytes) -> dict[str, Any]:
    """Return the message in a line.

    Raises:
        ProtocolError: it is not a JSON object with a ``type``.
    """
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a line that is not JSON ({error}): {_shown(line)}") from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ProtocolError(f"a line that is not a message (an object with a type): {_shown(line)}")
    return message


def take_over_standard_streams() -> tuple[IO[bytes], Callable[[bytes], None]]:
    """Return the requests, and a function that writes answers; nothing else can use the two.

    What other code in the process, or in one that it starts, reads from standard input is nothing;
    what it prints goes to standard error.
    """
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def write(answer: bytes) -> None:
        left = memoryview(answer)
        while left:
            left = left[answers.write(left) :]

    return requests, write


def case_message(number: int, case: ConformanceCase, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a case of a job, with its records."""
    records = []
    for entry, record in with_entries(case):
        records.append(_record(record))
        if isinstance(record, Value) and entry is not None:
            records[-1]["payload"] = in_base64(entry.payload)
    form: dict[str, Any] = {"id": number, "case": case.to_json(), "records": records}
    if options:
        form["options"] = dict(options)
    return form


def capabilities_from(form: Any) -> Capabilities:
    """Return the capabilities in a hello; what is missing there is the default.

    Raises:
        ProtocolError: a field has a value that it cannot have.
    """
    if not isinstance(form, dict):
        raise ProtocolError(f"capabilities are an object, not {form!r:.80}")
    given: dict[str, Any] = {}
    for field in fields(Capabilities):
        if field.name in form and field.name in _CHECKS:
            value = form[field.name]
            if not _CHECKS[field.name](value):
                raise ProtocolError(f"capabilities: {field.name} cannot be {value!r:.80}")
            given[field.name] = frozenset(value) if field.name in _NAMED else value
    return Capabilities(**given, **_ABSENT)


def capabilities_message(capabilities: Capabilities) -> dict[str, Any]:
    """Return capabilities as a hello has them."""
    form: dict[str, Any] = {}
    for field in fields(Capabilities):
        if field.name in _CHECKS:
            value = getattr(capabilities, field.name)
            form[field.name] = sorted(value) if field.name in _NAMED else value
    return form


def _record(record: Record) -> dict[str, Any]:
    if isinstance(record, Frame):
        payload = in_base64(record.payload)
        return {"what": "frame", "source": record.source, "at": record.at, "payload": payload}
    if isinstance(record, Value):
        return {"what": "value", "source": record.source, "at": record.at}
    if isinstance(record, End):
        failed: dict[str, Any] = {"error_type": record.error_type, "ends_run": record.ends_run}
        if record.partition is not None:
            failed["partition"] = record.partition
        return {"what": "end", "source": record.source, "at": record.at, **failed}
    if isinstance(record, Consumed):
        return {
            "what": "consumed",
            "source": record.source,
            "at": record.at,
            **_read(record.record),
        }
    if isinstance(record, Assigned):
        partitions = [[number, first] for number, first, _ in record.partitions]
        form = {"source": record.source, "at": record.at, "partitions": partitions}
        return {"what": "assigned", **form}
    if isinstance(record, Unused):
        form = {"source": record.source, "at": record.at, "numbers": record.numbers}
        return {"what": "unused", **form}
    return {"what": "tick", "at": record.at}


def _read(record: KafkaRecord) -> dict[str, Any]:
    """Return a record of a topic: value, key and headers are base64, or null."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": in_base64(record.key),
        "headers": [[name, in_base64(value)] for name, value in record.headers],
        "value": in_base64(record.value),
    }


def _is_one_of(values: tuple[Any, ...]) -> Any:
    return lambda value: value in values


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


_CHECKS: Mapping[str, Any] = {
    "isolation": lambda value: (
        _is_list_of_texts(value) and value and set(value) <= set(get_args(Isolation))
    ),
    "partitions": _is_flag,
    "batches": _is_flag,
    "unsupported_rules": _is_list_of_texts,
    "small": lambda value: isinstance(value, dict),
    "order": _is_one_of(get_args(Order)),
    "stop": _is_one_of(get_args(Stop)),
    "kafka": _is_flag,
}


def _shown(line: bytes) -> str:
    return ascii(line[:120].decode("utf-8", "replace")) + "…" * (len(line) > 120)
