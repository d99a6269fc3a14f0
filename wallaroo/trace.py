"""What a run did, as values that can be compared: outputs, dead letters, entities, findings.

A `Trace` holds what the rules define and nothing else (no times, no addresses), and has a canonical
JSON form. Two engines agree when `Trace.comparable` is equal.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from wallaroo.failure import Cause, UserFrame
from wallaroo.keys import Key, encode_key, key_to_json
from wallaroo.topology import SinkId

Lineage: TypeAlias = tuple[int, ...]
"""(sequence, index in the first multi output, index in the second, …) (order-1)."""

InputLog: TypeAlias = "list[tuple[str, bytes]]"
"""(source, payload) in the order received; the position is the sequence."""

NOT_COMPARED = ("error", "where", "causes")
"""The fields of a dead letter in which engines may differ."""


class Reason(StrEnum):
    """Why a message could not go on (dead-1)."""

    DECODE = "decode"
    RAISED = "raised"
    BAD_RESULT = "bad-result"
    BAD_KEY = "bad-key"
    UNKNOWN_KEY = "unknown-key"
    ENCODE = "encode"
    UNPORTABLE = "unportable"


@dataclass(frozen=True)
class DeadLetter:
    """A message that cannot go on (dead-1).

    Args:
        lineage: the message's lineage.
        source: the source that received its frame.
        pipeline: the pipeline it was in.
        step: the computation's name; for key errors the state computation's; `None` for `decode`,
            for `encode`, and for a decoder's result that is `unportable`.
        position: the step's position in its pipeline, from 0; -1 for the decoder, and the number
            of steps for an encoder. Orders dead letters of one lineage; not part of the JSON line.
        sink: the sink's index, `None` unless the reason is `encode`.
        key: the message's key; `None` in a stateless step, for an invalid key (`bad-key`), and if
            the partition function raised.
        reason: why.
        error_type: name of the exception's class if user code raised one, else `None`.
        error: what happened, for people; this text may differ between engines.
        payload: the original frame's payload.
        where: if user code raised, the user's frames, the line that failed last
            (`wallaroo.failure.Failure`); not compared.
        causes: what the exception was raised from, the nearest first; not compared.
    """

    lineage: Lineage
    source: str
    pipeline: str
    step: str | None
    position: int
    sink: int | None
    key: Key | None
    reason: Reason
    error_type: str | None
    error: str
    payload: bytes
    where: tuple[UserFrame, ...] = field(default=(), compare=False)
    causes: tuple[Cause, ...] = field(default=(), compare=False)

    @property
    def order(self) -> tuple[Lineage, int, int]:
        """(lineage, position, sink): the order of dead letters."""
        return (self.lineage, self.position, -1 if self.sink is None else self.sink)

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
            "payload": base64.b64encode(self.payload).decode("ascii"),
            "where": _frames_to_json(self.where),
            "causes": [
                {**cause._asdict(), "where": _frames_to_json(cause.where)} for cause in self.causes
            ],
        }


class FindingKind(StrEnum):
    """The kinds of finding about an application that `isolated` mode reports."""

    UNFLAGGED_MUTATION = "unflagged-mutation"
    SHARED_MESSAGE = "shared-message"
    COMPONENT_ALTERED = "component-altered"
    IMMUTABLE_STATE = "immutable-state"
    UNPORTABLE = "unportable"


@dataclass(frozen=True)
class Finding:
    """A fault of the application itself, with which `trusting` mode may give wrong results.

    Args:
        kind: the kind of fault.
        pipeline: the pipeline where it was found first.
        step: the computation's name; for a decoder the decoder's name.
        key: the entity's key, `None` if there is no entity.
        lineage: the message at which it was found first.
        text: what happened and what to write instead, for people.
    """

    kind: FindingKind
    pipeline: str
    step: str
    key: Key | None
    lineage: Lineage
    text: str

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON."""
        return {
            "kind": self.kind.value,
            "pipeline": self.pipeline,
            "step": self.step,
            "key": None if self.key is None else key_to_json(self.key),
            "lineage": list(self.lineage),
            "text": self.text,
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

    def to_json(self) -> dict[str, Any]:
        """Return the entity as JSON."""
        return {
            "partition": self.partition,
            "key": key_to_json(self.key),
            "number": self.number,
            "state": self.state,
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
        outputs: for each sink of the application its outputs, in order.
        dead_letters: in order (`DeadLetter.order`).
        entities: sorted by partition and encoded key.
        ended: why the run ended before its input did, else `None`.
        findings: about the application; not compared between engines.
    """

    outputs: Mapping[SinkId, tuple[bytes, ...]]
    dead_letters: tuple[DeadLetter, ...] = ()
    entities: tuple[Entity, ...] = ()
    ended: Ended | None = None
    findings: tuple[Finding, ...] = field(default=(), compare=False)

    def comparable(self) -> dict[str, Any]:
        """Return what engines must agree on: all but findings and `NOT_COMPARED`."""
        form = self.to_json()
        del form["findings"]
        for letter in form["dead_letters"]:
            for name in NOT_COMPARED:
                del letter[name]
        return form

    def to_json(self) -> dict[str, Any]:
        """Return the trace as JSON values; outputs are base64."""
        return {
            "outputs": [
                {
                    "pipeline": pipeline,
                    "sink": index,
                    "outputs": [base64.b64encode(output).decode("ascii") for output in outputs],
                }
                for (pipeline, index), outputs in sorted(self.outputs.items())
            ],
            "dead_letters": [letter.to_json() for letter in self.dead_letters],
            "entities": [entity.to_json() for entity in self.entities],
            "ended": None if self.ended is None else self.ended.to_json(),
            "findings": [finding.to_json() for finding in self.findings],
        }

    def canonical_json(self) -> str:
        """Return the trace's canonical JSON text: ASCII, sorted keys, no white space."""
        return canonical_json(self.to_json())


def canonical_json(value: Any) -> str:
    """Return `value` as JSON text that is the same for equal values."""
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def sorted_entities(entities: list[Entity]) -> tuple[Entity, ...]:
    """Return `entities` in the order a trace lists them."""
    return tuple(sorted(entities, key=lambda entity: (entity.partition, encode_key(entity.key))))


def _frames_to_json(frames: tuple[UserFrame, ...]) -> list[dict[str, Any]]:
    return [frame._asdict() for frame in frames]
