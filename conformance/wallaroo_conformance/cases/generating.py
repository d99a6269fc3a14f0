"""Cases out of random bytes.

Each choice has its byte at a place of its own, scaled so that 0 is the plainest choice. There are
two sorts: rows of any operators in the builder's form, and graphs with keys, time and windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import TypeVar

from wallaroo.times import TIME_END
from wallaroo_conformance.cases.case import (
    FIRST_STEP,
    ConformanceCase,
    Input,
    PartitionSpec,
    Shape,
    SinkSpec,
    SourceSpec,
    StepSpec,
    What,
    WindowSpec,
    ends,
)
from wallaroo_conformance.cases.operators import (
    AGGREGATIONS,
    BUILDERS,
    COMBINING,
    COMPUTATIONS,
    DECODERS,
    ENCODERS,
    EVENT_TIMES,
    GRAPH,
    KEY_LISTS,
    KEYS,
    MULTI_COMPUTATIONS,
    ROUTES,
    STATE_COMPUTATIONS,
    STATE_MULTI_COMPUTATIONS,
    STATEFUL,
    STATELESS,
    STEPS,
    U64_KEY_LISTS,
    Tone,
    Trait,
)
from wallaroo_conformance.cases.operators.marks import ENDS_THE_RUN, MARKS
from wallaroo_conformance.cases.payloads import PAYLOADS

T = TypeVar("T")

DRAWN_PARTITIONS = 3

_SOURCES, _INPUTS = 3, 24
_HEAD, _STEPS, _SINKS = 12, 8, 3
_SOURCE_BYTES = 2 + _SINKS + 5 * _STEPS
LENGTH = _HEAD + 3 * DRAWN_PARTITIONS + _SOURCES * _SOURCE_BYTES + _INPUTS * 2
"""Bytes a case is made of."""

_TIMED_HEAD, _TIMED_STEPS = 20, 6
_TIMED_SOURCE_BYTES, _TIMED_STEP_BYTES, _TIMED_INPUT_BYTES = 3, 10, 9
TIMED_LENGTH = (
    _TIMED_HEAD
    + _SOURCES * _TIMED_SOURCE_BYTES
    + _TIMED_STEPS * _TIMED_STEP_BYTES
    + _INPUTS * _TIMED_INPUT_BYTES
)
"""Bytes a timed case is made of."""


# Checks with one seed, as those of mutants, begin with the same cases.
@lru_cache(maxsize=48)
def generate(
    count: int, random_seed: int, tone: Tone = "any", *, timed: bool = False
) -> tuple[ConformanceCase, ...]:
    """Return `count` different cases, the same for equal seeds."""
    chance = Random(random_seed)  # noqa: S311 - no secret
    made = timed_case_from_bytes if timed else case_from_bytes
    found: dict[ConformanceCase, None] = {}
    while len(found) < count:
        found[made(chance.randbytes(TIMED_LENGTH if timed else LENGTH), tone)] = None
    return tuple(found)


def case_from_bytes(drawn: bytes, tone: Tone = "any") -> ConformanceCase:
    """Return the case that `LENGTH` bytes stand for; `tame`: without findings, nearly always."""
    tables = _TABLES[tone]
    head, position = drawn[:_HEAD], _HEAD
    partitions = []
    for _ in range(DRAWN_PARTITIONS):
        partitions.append(_partition(drawn[position : position + 3], tables))
        position += 3
    del partitions[1 + _pick(head[2], (0, 1, 2)) :]
    sources: list[SourceSpec] = []
    steps: list[StepSpec] = []
    sinks: list[SinkSpec] = []
    for number in _chosen(head[0]):
        byte = drawn[position + number * _SOURCE_BYTES :][:_SOURCE_BYTES]
        sources.append(SourceSpec(len(sources), _pick(byte[0], tables.decoders)))
        row = _row(byte, sources[-1].id, FIRST_STEP + len(steps), partitions, tables)
        steps += row
        count = _pick(byte[2], (1, 1, 1, 1, 1, 2, 2, 0))
        encoders = [_pick(one, tables.encoders) for one in byte[3 : 3 + count]]
        last = row[-1].id if row else sources[-1].id
        sinks += [SinkSpec(last, encoder) for encoder in encoders]
    inputs = []
    for number in range(1 + head[1] * head[1] * _INPUTS // 65536):
        byte = drawn[LENGTH - 2 * _INPUTS + 2 * number :]
        inputs.append(_input(byte[0], byte[1], len(sources)))
    return ConformanceCase(
        tuple(sources),
        tuple(steps),
        tuple(sinks),
        tuple(partitions),
        tuple(inputs),
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
        # Of timed cases.
        self.keys = KEYS.choices(tone, common=1, triples=True)
        self.operators = (
            *AGGREGATIONS.choices(tone, common=2),
            *self.keys,
            *STATELESS.choices(tone, triples=True),
            *STATEFUL.choices(tone, common=2, triples=True),
            *(*GRAPH, "merge"),
        )
        self.event_times = (*EVENT_TIMES.choices(tone, common=3), None)


_TABLES: dict[Tone, _Tables] = {"any": _Tables("any"), "tame": _Tables("tame")}
_SHAPES: tuple[Shape, ...] = ("single", "keyed", "keyed", "keyed", "u64")
_RARE = {b"many", b"k" * 300}
_DEEP = 247
_COMMON = 10  # payloads from the front of the list, drawn as often as all others together
_MARKED = (b"x", b"ax", b"y", b"ya", b"yab", b"az", b"quit", b"halt")
_PAYLOAD_TABLE = (*(PAYLOADS[:_COMMON] * 3), *_MARKED, *PAYLOADS)


def _pick(byte: int, table: Sequence[T]) -> T:
    """Return one of `table`: for 0 the first."""
    return table[byte * len(table) >> 8]


def _chosen(byte: int) -> list[int]:
    """Return which sources there are: a bit for each, so that lower bytes can take any away."""
    return [number for number in range(_SOURCES) if byte >> (5 + number) & 1] or [0]


def _partition(drawn: bytes, tables: _Tables) -> PartitionSpec:
    shape = _pick(drawn[0], _SHAPES)
    lists = tuple(U64_KEY_LISTS if shape == "u64" else KEY_LISTS)
    keys = _pick(drawn[2], (None,) * (3 * len(lists)) + lists)
    return PartitionSpec(
        shape, _pick(drawn[1], tables.builders), None if shape == "single" else keys
    )


def _row(
    drawn: bytes, source: int, first: int, partitions: Sequence[PartitionSpec], tables: _Tables
) -> list[StepSpec]:
    """Return the steps of a source, the first of which gets the number `first`."""
    count = _pick(drawn[1], (0, 1, 1, 2, 2, 3, 3, 4, 5, _STEPS))
    deep = drawn[1] > _DEEP  # many multi computations in a row
    steps: list[StepSpec] = []
    wanted = 0  # a step's partition unless its byte says another: in order, each once
    wide = 0
    for number in range(count):
        byte = drawn[2 + _SINKS + 5 * number :][:5]
        if not byte[0]:
            continue  # no step: so that one can be taken from the middle
        operators = tables.narrow if deep else _pick(byte[0], tables.kinds)
        if operators is tables.multi:
            wide += 1
            if wide > 2:
                operators = tables.single  # outputs stay few
        operator = _pick(byte[1], operators)
        step = StepSpec(first + len(steps), operator, (steps[-1].id if steps else source,))
        if operator in STATELESS:
            steps.append(replace(step, parallel=byte[2] > 170))
            continue
        if byte[2] > 215:
            partition = byte[2] % 3 % len(partitions)
        else:
            partition, wanted = wanted % 3 % len(partitions), wanted + 1
        route = _route(byte[3], partitions[partition], tables)
        steps.append(replace(step, partition=partition, route=route))
    return steps


def _route(byte: int, partition: PartitionSpec, tables: _Tables) -> str:
    u64 = partition.shape == "u64"
    if partition.keys is not None and byte % 4:
        return (U64_KEY_LISTS if u64 else KEY_LISTS)[partition.keys].route
    return _pick(byte, tables.u64_routes if u64 else tables.routes)


def _input(source: int, drawn: int, sources: int) -> Input:
    payload = _pick(drawn, _PAYLOAD_TABLE)
    if payload in _RARE and source % 3:
        payload = PAYLOADS[source % _COMMON]
    return Input(source * sources >> 8, payload, connection=source % 3)


def _batches(drawn: bytes, inputs: int) -> tuple[int, ...] | None:
    if drawn[0] < 128:
        return None
    return tuple([1 + byte % 4 for byte in drawn[1 : 1 + min(inputs, 1 + drawn[0] % 5)]])


_RANGES = ((10, None), (10, None), (10, 4), (10, 5), (6, 2), (12, 3), (7, None), (1, None))
_DELAYS = (0, 0, 0, 0, 3, 5, 10, 30)
_BEGINNINGS = (*((0,) * 6), 1_000, 1_790_000_000_000_000_000)
"""Arrival times of first records: mostly 1970, which reduces well, and now and then a real one."""
_POLICIES = (
    *("dead-letter", "dead-letter", "drop", "fire-per-message"),
    *("place-in-oldest-window", "place-in-oldest-window"),
)
_TEXTS, _LETTER, _TIME = (next(iter(table)) for table in (AGGREGATIONS, KEYS, EVENT_TIMES))
_STATE, *_ = STATEFUL.having(Trait.OF_TRIPLES)
_DECODER, _ENCODER = (*DECODERS.having(Trait.OF_TRIPLES), *ENCODERS.having(Trait.OF_TRIPLES))


def timed_case_from_bytes(drawn: bytes, tone: Tone = "any") -> ConformanceCase:
    """Return the timed case that `TIMED_LENGTH` bytes stand for.

    `tame`: for `trusting` mode; without the operators that alter messages, since they make
    findings, and then that mode promises nothing.
    """
    tables = _TABLES[tone]
    head, position = drawn[:_TIMED_HEAD], _TIMED_HEAD
    sources = []
    for number in range(_pick(head[0], (1, 1, 1, 2, 2, 3))):
        byte = drawn[position + number * _TIMED_SOURCE_BYTES :]
        sources.append(_timed_source(number, byte, tables))
    position += _SOURCES * _TIMED_SOURCE_BYTES
    builder, marks, codec = head[3] > 200, head[4] > 128, head[5] > 220
    graph = _Graph(sources, builder=builder, shared=head[12] > 200)
    bytes_of_steps = [
        drawn[position + number * _TIMED_STEP_BYTES :][:_TIMED_STEP_BYTES]
        for number in range(_pick(head[1], (1, 1, 2, 2, 3, 3, 4, 5, 6)))
    ]
    if head[6] > 180:  # of a shape that the relations know
        sources[:] = [SourceSpec(0, _DECODER, None if sources[0].event_time is None else _TIME)]
        graph, marks = _Graph(sources, builder=False, shared=False), False
        graph.add_plain(head[7], bytes_of_steps, tables)
    else:
        if len(sources) > 1 and head[2] > 64 and not builder:
            graph.add("merge", 0, 1)
            del bytes_of_steps[0]
        for byte in bytes_of_steps:
            graph.draw(byte, tables)
    done = 190 < head[12] <= 200
    return replace(
        graph.case(done=done, expire_after=_pick(head[11], (None, None, 10, 5, 20))),
        inputs=_timed_inputs(
            drawn[-_INPUTS * _TIMED_INPUT_BYTES :],
            1 + head[8] * head[8] * _INPUTS // 65536,
            sources,
            began=_pick(head[9], _BEGINNINGS),
            marks=marks,
            codec=codec,
        ),
        ended=head[10] < 160,
        codec=codec,
        batches=None if head[13] < 128 else tuple([1 + byte % 4 for byte in head[14:17]]),
        number=_pick(head[17], (None, None, 1, 2, 3, 4, 7)),
        isolation="isolated" if tone == "any" else "trusting",
        on_error="stop" if head[18] > 240 else "skip",
        small=head[19] > 191,
    )


class _Graph:
    """The steps of a timed case, one after the other.

    Args:
        sources: of the case; more may not come.
        builder: in the builder's form, where steps stand in rows and have no keys of their own.
        shared: all state computations are over one state partition.
    """

    def __init__(self, sources: list[SourceSpec], *, builder: bool, shared: bool) -> None:
        self._sources = sources
        self._builder = builder
        self._shared = shared
        self._nodes = [source.id for source in sources]
        self._last = {source.id: source.id for source in sources}  # in the builder's form
        self._steps: list[StepSpec] = []
        self._sinks: list[SinkSpec] = []
        self._partitions: list[PartitionSpec] = []

    def add(self, operator: str, *back: int, window: WindowSpec | None = None) -> StepSpec:
        """Add a step that takes messages from nodes; 0 is the last one, 1 the one before it."""
        origins = [self._nodes[-1 - one % len(self._nodes)] for one in back]
        step = StepSpec(FIRST_STEP + len(self._steps), operator, tuple(origins), window=window)
        self._append(step)
        return step

    def draw(self, byte: bytes, tables: _Tables) -> None:
        """Add the step that bytes stand for."""
        operator = _pick(byte[0], tables.operators)
        window = _window(byte[3:8], operator) if operator in AGGREGATIONS else None
        origin = _pick(byte[1], (0, 0, 0, 0, 0, 0, 1, 2, 3))
        if not self._builder:
            other = (_pick(byte[2], (0, 1, 1, 2, 2)),) if operator == "merge" else ()
            step = self.add(operator, origin, *other, window=window)
            if byte[9] > 225:
                self._sinks.append(SinkSpec(step.id, _ENCODER))
        elif operator not in KEYS and operator not in GRAPH:
            source = self._sources[origin % len(self._sources)].id
            route = _pick(byte[8], (None, *tables.keys))
            number, before = FIRST_STEP + len(self._steps), (self._last[source],)
            self._last[source] = number
            self._append(StepSpec(number, operator, before, route=route, window=window))

    def add_plain(self, byte: int, bytes_of_steps: Sequence[bytes], tables: _Tables) -> None:
        """Add one step with windows or state, perhaps behind a key."""
        drawn = [(_pick(one[0], tables.operators), one) for one in bytes_of_steps]
        found = [(name, one) for name, one in drawn if name in AGGREGATIONS]
        name, window = _STATE, None
        alone = _pick(byte, (False, False, True))
        if found:
            name, window = found[0][0], _window(found[0][1][3:8], found[0][0])
            if name in COMBINING or not alone:
                name = _TEXTS
        if not alone:
            self.add(_LETTER, 0)
        self.add(name, 0, window=window)

    def case(self, *, done: bool, expire_after: int | None) -> ConformanceCase:
        """Return a case without input; `done`: only steps that were given a sink have one."""
        sinks = [*self._sinks]
        if not done:
            have = {sink.origin for sink in sinks}
            last = ends(self._nodes, self._steps, _ENCODER)
            sinks += [sink for sink in last if sink.origin not in have]
        partitions = [replace(spec, expire_after=expire_after) for spec in self._partitions]
        return ConformanceCase(
            tuple(self._sources),
            tuple(self._steps),
            tuple(sinks),
            tuple(partitions) or (PartitionSpec(),),
            form="builder" if self._builder else "pipelines",
        )

    def _append(self, step: StepSpec) -> None:
        if step.operator in STATEFUL:
            shape: Shape = (
                "keyed" if self._builder and step.route and not self._shared else "single"
            )
            if not (self._shared and self._partitions):
                self._partitions.append(PartitionSpec(shape))
            route = step.route or StepSpec.route
            step = replace(step, route=route, partition=len(self._partitions) - 1)
        elif step.window is None:
            step = replace(step, route=StepSpec.route)
        self._nodes.append(step.id)
        self._steps.append(step)


def _timed_source(number: int, byte: bytes, tables: _Tables) -> SourceSpec:
    return SourceSpec(
        number,
        _DECODER,
        _pick(byte[0], tables.event_times),
        _pick(byte[1], (None, None, 15, 30)),
        byte[2] > 215,
    )


def _window(byte: bytes, operator: str) -> WindowSpec:
    kind = _pick(byte[0], ("range", "range", "range", "session", "session", "count"))
    if operator not in COMBINING and kind == "session":
        kind = "range"  # it has no combine
    if kind == "count":
        return WindowSpec("count", _pick(byte[1], (2, 3, 1)), timeout=_pick(byte[2], (None, 10, 5)))
    delay, late = _pick(byte[3], _DELAYS), _pick(byte[4], _POLICIES)
    if kind == "session":
        allowed = "drop" if late == "place-in-oldest-window" else late
        return WindowSpec("session", _pick(byte[1], (5, 3, 8)), delay=delay, late=allowed)
    size, slide = _pick(byte[1], _RANGES)
    return WindowSpec("range", size, slide if operator in COMBINING else None, delay, late)


def _timed_inputs(
    drawn: bytes,
    count: int,
    sources: Sequence[SourceSpec],
    *,
    began: int,
    marks: bool,
    codec: bool,
) -> tuple[Input, ...]:
    """Return records whose event times go on with some disorder and a few gaps."""
    entries: list[Input] = []
    event, at = 0, began
    for number in range(count):
        byte = drawn[number * _TIMED_INPUT_BYTES :][:_TIMED_INPUT_BYTES]
        what = _pick(byte[0], _WHATS)
        source = byte[1] * len(sources) >> 8
        event += _pick(byte[2], (0, 1, 2, 3, 4, 5, 10, 40))
        at = max(at + _pick(byte[3], (0, 0, 1, 2, 5, 10, 15, 40, -3)), 0)
        if what != "frame":
            if what == "failed" and not sources[source].generator:
                what = "end"
            elif what == "failed" and byte[7] > 180:
                what = "exited"
            entries.append(Input(0 if what == "tick" else source, at=at, what=what))
            continue
        time = max(event - _pick(byte[4], (0, 0, 0, 0, 1, 2, 3, 5, 8, 10, 14, 25)), 0)
        mark = _pick(byte[5], _MARK_SPACE) if marks else None
        shown, text = str(time), str(number)
        if codec and byte[6] > 239:
            text += "p" if byte[6] > 247 else "r"
        elif mark == "no event time":
            shown = _pick(byte[7], _ODD_TIMES)
        elif mark in MARKS:
            text += mark + ENDS_THE_RUN * (byte[7] > 247)
        elif mark is not None and not sources[source].generator:
            shown, text = (shown, "") if mark == "filtered" else ("0 0", text)
        letter = _pick(byte[8], "abc")
        entries.append(Input(source, f"{letter} {shown} {text}".encode(), at))
    return tuple(entries)


_ODD_TIMES = (*(("x", "yes", "half", "below") * 2), str(TIME_END - 1))
"""Mostly no event times; and the last one."""
_WRONG = (*MARKS, "no event time", "filtered", "not decoded")
_MARK_SPACE = (*((None,) * 25), *_WRONG)
_WHATS: tuple[What, ...] = (*(("frame",) * 20), *(("tick",) * 4), "end", "failed")
