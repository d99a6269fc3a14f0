"""What a run did, as values that can be compared: outputs, dead letters, entities, findings.

A `Trace` holds what the rules define and nothing else (no times, no addresses), and has a canonical
JSON form. Two engines agree when `Trace.comparable` is equal.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from wallaroo.findings import Finding
from wallaroo.json_fields import (
    a_number,
    a_text,
    or_none,
    some_bytes,
)
from wallaroo.kafka_records import Output, Produced
from wallaroo.keys import Key, encode_key, key_from_json, key_to_json
from wallaroo.topology import SinkId
from wallaroo.user_code.failure import Cause, UserFrame

Lineage: TypeAlias = tuple[int, ...]
"""(sequence, index in the first multi output, index in the second, …) (order-1).

A branch adds its number (graph-2). What a window gives in its step's turn has the lineage
(sequence, -n, i): n is 1 for the last window step, 2 for the one before it, and i counts the
windows that fire in this turn. The negative number puts it before the record's own message
(time-4).
"""

InputLog: TypeAlias = "Sequence[Any]"
"""Records, or pairs (source, payload), in the order received; the position is the sequence."""

_OWN_MESSAGE = 0  # ends a lineage that is sorted: after what windows gave, before its own items
NOT_COMPARED = ("error", "where", "causes", "position")
"""The fields of a dead letter in a trace that are not compared: engines may differ in them, and the
position shows in the order already."""


class Reason(StrEnum):
    """Why a message could not go on (dead-1)."""

    DECODE = "decode"
    RAISED = "raised"
    BAD_RESULT = "bad-result"
    BAD_KEY = "bad-key"
    UNKNOWN_KEY = "unknown-key"
    BAD_TIME = "bad-time"
    LATE = "late"
    ENCODE = "encode"
    UNPORTABLE = "unportable"


_RECORD = ("topic", "partition", "offset")


@dataclass(frozen=True)
class DeadLetter:
    """A message that cannot go on (dead-1).

    Args:
        lineage: the message's lineage.
        source: the source that received its frame; of what a tick made due, `None`.
        pipeline: the pipeline it was in.
        step: the computation's name; for key errors the state computation's; `None` for `decode`,
            for `encode`, for event times and generators, and for a decoder's result that is
            `unportable`.
        position: the step's position in its pipeline, from 0; -1 for the decoder, and the number
            of steps for an encoder. Orders dead letters of one lineage; not part of the JSON line.
        sink: the sink's index, `None` unless the reason is `encode`.
        key: the message's key; `None` in a stateless step, for an invalid key (`bad-key`), and if
            the partition function raised.
        reason: why.
        error_type: name of the exception's class if user code raised one, else `None`.
        error: what happened, for people; this text may differ between engines.
        payload: the original frame's payload, or record's value; `None` for what a window or a
            generator gave.
        record: of Kafka, where the record stands that it came from: topic, partition, offset; an
            engine that is served knows it; not compared.
        where: if user code raised, the user's frames, the line that failed last
            (`wallaroo.user_code.failure.Failure`); not compared.
        causes: what the exception was raised from, the nearest first; not compared.
    """

    lineage: Lineage
    source: str | None
    pipeline: str
    step: str | None
    position: int
    sink: int | None
    key: Key | None
    reason: Reason
    error_type: str | None
    error: str
    payload: bytes | None
    where: tuple[UserFrame, ...] = field(default=(), compare=False)
    causes: tuple[Cause, ...] = field(default=(), compare=False)
    record: tuple[str, int, int] | None = field(default=None, compare=False)

    @property
    def order(self) -> tuple[Lineage, int, int]:
        """(lineage, position, sink): the order of dead letters."""
        sink = -1 if self.sink is None else self.sink
        return (lineage_order(self.lineage), self.position, sink)

    @classmethod
    def from_json(cls, form: Any) -> DeadLetter:
        """Return the dead letter of a trace's JSON form; ``error`` and ``position`` may be missing.

        Raises:
            KeyError, TypeError, ValueError: `form` is not such a form.
        """
        payload, key = form["payload"], form["key"]
        return cls(
            *(
                _lineage_from(form["lineage"]),
                or_none(a_text, form["source"]),
                a_text(form["pipeline"]),
            ),
            *(or_none(a_text, form["step"]), a_number(form.get("position", -1))),
            or_none(a_number, form["sink"]),
            None if key is None else key_from_json(key),
            Reason(form["reason"]),
            or_none(a_text, form["error_type"]),
            a_text(form.get("error", "")),
            or_none(some_bytes, payload),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the fields of a line of ``--dead-letters FILE``."""
        return {
            "lineage": list(self.lineage),
            "source": self.source,
            "pipeline": self.pipeline,
            "step": self.step,
            "sink": self.sink,
            "key": None if self.key is None else key_to_json(self.key),
            "reason": self.reason.value,
            "error_type": self.error_type,
            "error": self.error,
            "payload": in_base64(self.payload),
            "where": _frames_to_json(self.where),
            "causes": [
                {**cause._asdict(), "where": _frames_to_json(cause.where)} for cause in self.causes
            ],
            **({} if self.record is None else dict(zip(_RECORD, self.record, strict=True))),
        }


@dataclass(frozen=True)
class Entity:
    """A state entity at the end of a run.

    Args:
        partition: its state partition's name.
        key: its key; `wallaroo.keys.SINGLE_KEY` for `to_stateful`.
        number: its partition number, for the run's number of partitions (route-4).
        state: its canonical structure (`wallaroo.canonical.structure`).
        load: returns the state as an object of its own class; `None` if the engine cannot give
            it. Not compared, not in the JSON form.
    """

    partition: str
    key: Key
    number: int
    state: Any
    load: Callable[[], Any] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def from_json(cls, form: Any) -> Entity:
        """Return the entity whose `to_json` is `form`; raises as `DeadLetter.from_json`."""
        key, number = key_from_json(form["key"]), a_number(form["number"])
        return cls(a_text(form["partition"]), key, number, form["state"])

    def to_json(self) -> dict[str, Any]:
        """Return the entity as JSON."""
        return {
            "partition": self.partition,
            "key": key_to_json(self.key),
            "number": self.number,
            "state": self.state,
        }


@dataclass(frozen=True)
class OpenWindow:
    """A window that is open at the end of a run (window-11).

    Args:
        step: the window step's name.
        key: the window's key.
        start, end: its bounds, in nanoseconds since 1970.
        accumulator: its accumulator, panes combined, as canonical structure.
        value: the accumulator itself, for the person who looks; not compared.
    """

    step: str
    key: Key
    start: int
    end: int
    accumulator: Any
    value: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def from_json(cls, form: Any) -> OpenWindow:
        """Return the window whose `to_json` is `form`; raises as `DeadLetter.from_json`."""
        bounds = a_number(form["start"]), a_number(form["end"])
        return cls(a_text(form["step"]), key_from_json(form["key"]), *bounds, form["accumulator"])

    def to_json(self) -> dict[str, Any]:
        """Return the window as JSON."""
        return {
            "step": self.step,
            "key": key_to_json(self.key),
            "start": self.start,
            "end": self.end,
            "accumulator": self.accumulator,
        }


@dataclass(frozen=True)
class Ended:
    """Why a run ended before its input did (dead-3, dead-4).

    Args:
        kind: ``on-error`` (`--on-error stop`), or ``exit`` (`SystemExit`, `KeyboardInterrupt`, or
            the death of a worker).
        pipeline: the pipeline of the message at which it ended.
        step: the computation's name, `None` for a decoder or an encoder.
        lineage: that message's lineage.
        error_type: the exception's class name for ``exit``, else `None`.
        sink: the sink's index, if it was an encoder.
    """

    kind: Literal["on-error", "exit"]
    pipeline: str
    step: str | None
    lineage: Lineage
    error_type: str | None
    sink: int | None = None

    @property
    def where(self) -> str:
        """The call at which the run ended, for people."""
        if self.step is not None:
            return f"step {self.step}"
        return "decoder" if self.sink is None else f"encoder of sink {self.sink}"

    @classmethod
    def from_json(cls, form: Any) -> Ended:
        """Return the end whose `to_json` is `form`; raises as `DeadLetter.from_json`."""
        kind = form["kind"]
        if kind not in ("on-error", "exit"):
            raise ValueError(f"no run ends by {kind!r}")
        return cls(
            kind,
            a_text(form["pipeline"]),
            or_none(a_text, form["step"]),
            _lineage_from(form["lineage"]),
            or_none(a_text, form["error_type"]),
            or_none(a_number, form["sink"]),
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "kind": self.kind,
            "pipeline": self.pipeline,
            "step": self.step,
            "sink": self.sink,
            "lineage": list(self.lineage),
            "error_type": self.error_type,
        }


@dataclass(frozen=True)
class Trace:
    """What a run did.

    Args:
        outputs: for each sink of the application its outputs, in order; of a Kafka sink
            `wallaroo.kafka_records.Produced`.
        dead_letters: in order (`DeadLetter.order`).
        entities: sorted by partition and encoded key.
        ended: why the run ended before its input did, else `None`.
        findings: about the application; not compared between engines.
        windows: the windows open at the end, sorted by step, encoded key and start (window-11).
        late: late messages by (step, what became of them: ``dropped`` or ``partly``); policies
            whose effect is seen elsewhere are not counted here (window-6).
    """

    outputs: Mapping[SinkId, tuple[Any, ...]]
    dead_letters: tuple[DeadLetter, ...] = ()
    entities: tuple[Entity, ...] = ()
    ended: Ended | None = None
    findings: tuple[Finding, ...] = field(default=(), compare=False)
    windows: tuple[OpenWindow, ...] = ()
    late: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def comparable(self) -> dict[str, Any]:
        """Return what engines must agree on: all but findings and `NOT_COMPARED`."""
        form = self.to_json()
        del form["findings"]
        for letter in form["dead_letters"]:
            for name in (*NOT_COMPARED, *_RECORD):  # a bounded run need not say where one stands
                letter.pop(name, None)
        return form

    @classmethod
    def from_json(cls, form: Any) -> Trace:
        """Return the trace whose `to_json` is `form`, without its findings.

        Only ``outputs`` must be there; what else is missing is empty. Unknown fields are ignored.

        Raises:
            ValueError: `form` is not a trace; the text says what is wrong with it.
        """
        try:
            sinks = [
                ((a_text(one["pipeline"]), a_number(one["sink"])), one["outputs"])
                for one in form["outputs"]
            ]
            ended = form.get("ended")
            return cls(
                {
                    sink: tuple([output_from_json(output) for output in outputs])
                    for sink, outputs in sinks
                },
                tuple([DeadLetter.from_json(one) for one in form.get("dead_letters", ())]),
                tuple([Entity.from_json(one) for one in form.get("entities", ())]),
                None if ended is None else Ended.from_json(ended),
                windows=tuple([OpenWindow.from_json(one) for one in form.get("windows", ())]),
                late={
                    (a_text(step), a_text(which)): a_number(number)
                    for step, which, number in form.get("late", ())
                },
            )
        except KeyError as error:
            raise ValueError(f"not a trace: {error} is missing") from error
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"not a trace: {error}") from error

    def to_json(self) -> dict[str, Any]:
        """Return the trace as JSON values."""
        return {
            "outputs": [
                {
                    "pipeline": pipeline,
                    "sink": index,
                    "outputs": [output_to_json(output) for output in outputs],
                }
                for (pipeline, index), outputs in sorted(self.outputs.items())
            ],
            "dead_letters": [
                {**letter.to_json(), "position": letter.position} for letter in self.dead_letters
            ],
            "entities": [entity.to_json() for entity in self.entities],
            "ended": None if self.ended is None else self.ended.to_json(),
            "findings": [finding.to_json() for finding in self.findings],
            "windows": [window.to_json() for window in self.windows],
            "late": [[*which, number] for which, number in sorted(self.late.items())],
        }

    def canonical_json(self) -> str:
        """Return the trace's canonical JSON text: ASCII, sorted keys, no white space."""
        return canonical_json(self.to_json())


def output_to_json(output: Output) -> Any:
    """Return an output as a JSON value: bytes in base64; of a Kafka sink all its fields."""
    if isinstance(output, bytes):
        return in_base64(output)
    return {
        **output._asdict(),
        "value": in_base64(output.value),
        "key": in_base64(output.key),
        "headers": [[name, in_base64(value)] for name, value in output.headers],
    }


def output_from_json(form: Any) -> Output:
    """Return the output that `output_to_json` gave; raises as `DeadLetter.from_json`."""
    if not isinstance(form, dict):
        return some_bytes(form)
    return Produced(
        or_none(some_bytes, form["value"]),
        or_none(some_bytes, form["key"]),
        or_none(a_number, form["partition"]),
        tuple([(a_text(name), or_none(some_bytes, value)) for name, value in form["headers"]]),
        a_number(form["timestamp"]),
        a_number(form["number"]),
    )


def in_base64(data: bytes | None) -> str | None:
    """Return bytes as a JSON value: a text in base64, or null."""
    return None if data is None else base64.b64encode(data).decode("ascii")


def canonical_json(value: Any) -> str:
    """Return `value` as JSON text that is the same for equal values."""
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def lineage_order(lineage: Lineage) -> Lineage:
    """Return what lineages are sorted by: what a record made due comes before its own message."""
    return (*lineage, _OWN_MESSAGE)


def sorted_entities(entities: list[Entity]) -> tuple[Entity, ...]:
    """Return `entities` in the order a trace lists them."""
    return tuple(sorted(entities, key=lambda entity: (entity.partition, encode_key(entity.key))))


def sorted_windows(windows: list[OpenWindow]) -> tuple[OpenWindow, ...]:
    """Return `windows` in the order a trace lists them."""
    return tuple(sorted(windows, key=lambda one: (one.step, encode_key(one.key), one.start)))


def _frames_to_json(frames: tuple[UserFrame, ...]) -> list[dict[str, Any]]:
    return [frame._asdict() for frame in frames]


def _lineage_from(value: Any) -> Lineage:
    if not isinstance(value, list) or not value or {*map(type, value)} != {int}:
        raise TypeError(f"a lineage is a list of whole numbers, not {value!r:.80}")
    return tuple(value)
