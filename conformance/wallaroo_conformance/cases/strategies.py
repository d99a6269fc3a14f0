"""Cases out of bytes, and the Hypothesis strategy of them.

Each choice has its byte at a place of its own, scaled so that 0 is the plainest choice. So random
bytes are a random case (`generating`), and lowering bytes, which is what Hypothesis does to shrink,
simplifies one choice at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

from wallaroo_conformance.cases.case import (
    DRAWN_PARTITIONS,
    ConformanceCase,
    Input,
    PartitionSpec,
    PipelineSpec,
    Shape,
    StepSpec,
)
from wallaroo_conformance.cases.operators import (
    BUILDERS,
    COMPUTATIONS,
    DECODERS,
    ENCODERS,
    KEY_LISTS,
    MULTI_COMPUTATIONS,
    ROUTES,
    STATE_COMPUTATIONS,
    STATE_MULTI_COMPUTATIONS,
    STATELESS,
    STEPS,
    U64_KEY_LISTS,
    Tone,
    Trait,
)
from wallaroo_conformance.cases.payloads import PAYLOADS

T = TypeVar("T")

_RARE = {b"many", b"k" * 300}
_DEEP = 247
_COMMON = 10  # payloads from the front of the list, drawn as often as all others together

_PIPELINES, _STEPS, _SINKS, _INPUTS = 3, 8, 3, 24
_PARTITIONS = DRAWN_PARTITIONS
_HEAD = 12
_PIPELINE_BYTES = 2 + _SINKS + 5 * _STEPS
_INPUT_BYTES = 2
LENGTH = _HEAD + 3 * _PARTITIONS + _PIPELINES * _PIPELINE_BYTES + _INPUTS * _INPUT_BYTES
"""Bytes a case is made of."""


def cases() -> st.SearchStrategy[ConformanceCase]:
    """Return a strategy of cases."""
    return st.binary(min_size=LENGTH, max_size=LENGTH).map(case_from_bytes)


def case_from_bytes(drawn: bytes, tone: Tone = "any") -> ConformanceCase:
    """Return the case that `LENGTH` bytes stand for; `tame`: without findings, nearly always."""
    tables = _TABLES[tone]
    head, position = drawn[:_HEAD], _HEAD
    partitions = []
    for _ in range(_PARTITIONS):
        partitions.append(_partition(drawn[position : position + 3], tables))
        position += 3
    del partitions[1 + _pick(head[2], (0, 1, 2)) :]
    pipelines = []
    for number in _chosen(head[0]):
        begin = position + number * _PIPELINE_BYTES
        pipelines.append(_pipeline(drawn[begin : begin + _PIPELINE_BYTES], partitions, tables))
    position = LENGTH - _INPUTS * _INPUT_BYTES
    inputs = []
    for _ in range(1 + head[1] * head[1] * _INPUTS // 65536):
        inputs.append(_input(drawn[position : position + _INPUT_BYTES], len(pipelines)))
        position += _INPUT_BYTES
    return ConformanceCase(
        pipelines=tuple(pipelines),
        partitions=tuple(partitions),
        inputs=tuple(inputs),
        batches=_batches(head[3:9], len(inputs)),
        number=_pick(head[9], (None, None, 1, 2, 3, 4, 7)),
        isolation="isolated" if tone == "any" else "trusting",
        on_error="stop" if head[10] > 230 else "skip",
        small=head[11] > 190,
    )


class _Tables:
    """The choices, each repeated by how often it is to be chosen."""

    def __init__(self, tone: Tone) -> None:
        self.decoders = DECODERS.choices(tone, common=2)
        self.single = COMPUTATIONS.choices(tone)
        self.multi = MULTI_COMPUTATIONS.choices(tone)
        stateful = STATE_COMPUTATIONS.choices(tone)
        multi_stateful = STATE_MULTI_COMPUTATIONS.choices(tone)
        self.kinds = (
            *(self.single, self.single, self.single, self.multi, self.multi),
            *(stateful, stateful, stateful, stateful, multi_stateful, multi_stateful),
        )
        self.routes = ROUTES.choices(tone, common=1)
        self.u64_routes = tuple([name for name in self.routes if ROUTES.has(name, Trait.NUMBERS)])
        self.narrow = tuple([name for name in STEPS.choices(tone) if STEPS.has(name, Trait.NARROW)])
        self.builders = BUILDERS.choices(tone, common=5)
        self.encoders = ENCODERS.choices(tone, common=1)


_TABLES: dict[Tone, _Tables] = {"any": _Tables("any"), "tame": _Tables("tame")}
_SHAPES: tuple[Shape, ...] = ("single", "keyed", "keyed", "keyed", "u64")
_MARKED = (b"x", b"ax", b"y", b"ya", b"yab", b"az", b"quit", b"halt")
_PAYLOAD_TABLE = (*(PAYLOADS[:_COMMON] * 3), *_MARKED, *PAYLOADS)


def _pick(byte: int, table: Sequence[T]) -> T:
    """Return one of `table`: for 0 the first."""
    return table[byte * len(table) >> 8]


def _chosen(byte: int) -> list[int]:
    """Return which pipelines there are: a bit for each, so that shrinking can take any away."""
    return [number for number in range(_PIPELINES) if byte >> (5 + number) & 1] or [0]


def _partition(drawn: bytes, tables: _Tables) -> PartitionSpec:
    shape = _pick(drawn[0], _SHAPES)
    lists = tuple(U64_KEY_LISTS if shape == "u64" else KEY_LISTS)
    keys = _pick(drawn[2], (None,) * (3 * len(lists)) + lists)
    return PartitionSpec(
        shape, _pick(drawn[1], tables.builders), None if shape == "single" else keys
    )


def _pipeline(drawn: bytes, partitions: list[PartitionSpec], tables: _Tables) -> PipelineSpec:
    decoder = _pick(drawn[0], tables.decoders)
    count = _pick(drawn[1], (0, 1, 1, 2, 2, 3, 3, 4, 5, _STEPS))
    deep = drawn[1] > _DEEP  # many multi computations in a row
    steps = []
    wanted = 0  # a step's partition unless its byte says another: in order, each once
    wide = 0
    for number in range(count):
        byte = drawn[2 + _SINKS + 5 * number :][:5]
        if not byte[0]:
            continue  # no step: so that shrinking can take one from the middle
        operators = tables.narrow if deep else _pick(byte[0], tables.kinds)
        if operators is tables.multi:
            wide += 1
            if wide > 2:
                operators = tables.single  # outputs stay few
        operator = _pick(byte[1], operators)
        if operator in STATELESS:
            steps.append(StepSpec(operator, byte[2] > 170))
            continue
        if byte[2] > 215:
            partition = byte[2] % 3
        else:
            partition, wanted = wanted % 3, wanted + 1
        route = _route(byte[3], partitions[partition % len(partitions)], tables)
        steps.append(StepSpec(operator, False, partition, route))
    sinks = [
        _pick(byte, tables.encoders)
        for byte in drawn[3 : 3 + _pick(drawn[2], (1, 1, 1, 1, 1, 2, 2, 0))]
    ]
    return PipelineSpec(decoder, tuple(steps), tuple(sinks))


def _route(byte: int, partition: PartitionSpec, tables: _Tables) -> str:
    u64 = partition.shape == "u64"
    if partition.keys is not None and byte % 4:
        return (U64_KEY_LISTS if u64 else KEY_LISTS)[partition.keys].route
    return _pick(byte, tables.u64_routes if u64 else tables.routes)


def _input(drawn: bytes, pipelines: int) -> Input:
    payload = _pick(drawn[1], _PAYLOAD_TABLE)
    if payload in _RARE and drawn[0] % 3:
        payload = PAYLOADS[drawn[0] % _COMMON]
    return Input(drawn[0] * pipelines >> 8, payload, drawn[0] % 3)


def _batches(drawn: bytes, inputs: int) -> tuple[int, ...] | None:
    if drawn[0] < 128:
        return None
    return tuple([1 + byte % 4 for byte in drawn[1 : 1 + min(inputs, 1 + drawn[0] % 5)]])
