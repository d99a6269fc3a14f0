"""Cases drawn by chance.

Messages are of any form, or of three parts, which have keys, times and marks. Cases are rows of
steps in the builder's form, or graphs in the other. Each case of three parts keeps to a few things
of its own: to one mark, to few letters, to gaps of one size. Rare things come often in some cases
then, and so they meet, where cases that have a little of everything would never bring them
together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random
from string import ascii_lowercase
from typing import Any, TypeAlias

from wallaroo.times import TIME_END
from wallaroo_conformance.cases.case import (
    PARTITIONS,
    TOPICS_READ,
    TOPICS_WRITTEN,
    ConformanceCase,
    Input,
    PartitionSpec,
    Shape,
    SinkSpec,
    SourceSpec,
    StepSpec,
    What,
    WindowKind,
    WindowSpec,
    fitting,
)
from wallaroo_conformance.cases.composing import graph, row, step, together
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
    Tone,
    Trait,
    key_lists,
)
from wallaroo_conformance.cases.operators.common import PAYLOADS
from wallaroo_conformance.cases.operators.marks import CODED, ENDS_THE_RUN, MARKS

_INPUTS, _STEPS = 24, 8
_MANY = 300  # records, more than an engine may take at once
_NUMBERS_OF_PARTITIONS = (*((1, 2, 3) * 8), len(PARTITIONS))
_WITH_TOPICS = 1 / 6
"""The share of cases of three parts that read and write Kafka, for engines that do."""


# Checks with one seed, as those of mutants, begin with the same cases.
@lru_cache(maxsize=48)
def generate(
    count: int, random_seed: int, tone: Tone = "any", *, simple: float = 1 / 2, kafka: bool = True
) -> tuple[ConformanceCase, ...]:
    """Return `count` different cases, the same for equal seeds.

    Args:
        count: how many.
        random_seed: of the generator.
        tone: `tame`: for `trusting` mode; without the operators that make findings, nearly always.
        simple: the share of cases with messages of any form, without time and windows.
        kafka: some cases read and write Kafka.
    """
    seeds = Random(random_seed)  # noqa: S311 - no secret
    found: dict[ConformanceCase, None] = {}
    while len(found) < count:
        # What is drawn for one case does not depend on what others have drawn.
        rng = Random(seeds.getrandbits(64))  # noqa: S311 - no secret
        small = rng.random() < 1 / 4
        if rng.random() < simple:
            case = _case_of_anything(rng, _ANYTHING[tone])
        else:
            case = _case_of_triples(rng, _TRIPLES[tone], small=small)
            if kafka and rng.random() < _WITH_TOPICS:
                case = _with_topics(rng, case)
        batches = tuple([rng.randint(1, 4) for _ in range(rng.choice((1, 2, 3, 4, 5, 8, 12)))])
        if rng.random() < 1 / 3:  # what many records have left is met in small batches
            batches = (rng.randint(5, _INPUTS), *batches)
        case = replace(
            case,
            batches=batches if rng.random() < 3 / 4 else None,
            number=rng.choice((1, 1, 1, 2, 3) if small else (None, None, 1, 2, 3, 4, 7)),
            isolation="isolated" if tone == "any" else "trusting",
            on_error="stop" if rng.random() < 1 / 6 else "skip",
            small=small,
        )
        found[case] = None
    return tuple(found)


class _Table:
    """The choices for messages of one form, each repeated by how often it is to be chosen."""

    def __init__(self, tone: Tone, *, triples: bool) -> None:
        self.decoders = DECODERS.choices(tone, common=2, triples=triples)
        self.encoders = ENCODERS.choices(tone, common=1, triples=triples)
        self.event_times = (*EVENT_TIMES.choices(tone, common=3), None, None)
        # In rows of triples windows and times are what matters, not odd states or many steps.
        self.lengths = (0, 1, 1, 2, 2) if triples else (0, 1, 1, 2, 2, 3, 3, 4, 5, _STEPS)
        self.builders = BUILDERS.choices(tone, common=30 if triples else 12)
        self.aggregations = AGGREGATIONS.choices(tone, common=2)
        single, multi = (1, 1) if triples else (3, 2)
        self.stateful = (
            *STATE_COMPUTATIONS.choices(tone, common=2, triples=triples) * single,
            *STATE_MULTI_COMPUTATIONS.choices(tone, triples=triples) * multi,
        )
        self.operators = (
            *COMPUTATIONS.choices(tone, triples=triples) * single,
            *MULTI_COMPUTATIONS.choices(tone, triples=triples) * multi,
            *self.stateful,
            *self.aggregations * triples,
        )
        self.of_graphs = (*self.operators, *KEYS.choices(tone, common=1, triples=True))
        self.of_graphs += GRAPH * 3
        self.narrow = tuple(
            [name for name in STEPS.choices(tone, triples=triples) if STEPS.has(name, Trait.NARROW)]
        )
        self.routes = ROUTES.choices(tone, common=6 if triples else 1, triples=triples)
        self.u64_routes = tuple(
            [name for name in ROUTES.choices(tone, common=1) if ROUTES.has(name, Trait.NUMBERS)]
        )


_TONES: tuple[Tone, ...] = ("any", "tame")
_ANYTHING, _TRIPLES = (
    {tone: _Table(tone, triples=triples) for tone in _TONES} for triples in (False, True)
)
_SHAPES: tuple[Shape, ...] = ("single", "keyed", "keyed", "keyed", "u64")
_VALUES = tuple(
    [name for name in DECODERS.having(Trait.OF_VALUES) if not DECODERS.has(name, Trait.OF_TRIPLES)]
)
_RARE = {b"many", b"k" * 300}
_LARGE = b"a" * 70_000
_DEEP = 1 / 32
_COMMON = 10  # payloads from the front of the list, drawn as often as all others together
_MARKED = (b"x", b"ax", b"y", b"ya", b"yab", b"az", b"quit", b"halt")
_PAYLOAD_TABLE = (*(PAYLOADS[:_COMMON] * 3), *_MARKED, *PAYLOADS)


def _case_of_anything(rng: Random, table: _Table) -> ConformanceCase:
    decoders = rng.choices(table.decoders, k=rng.choice((1, 1, 1, 2, 2, 2, 3)))
    sources = [SourceSpec(number, decoder) for number, decoder in enumerate(decoders)]
    case = _rows(rng, sources, table)
    inputs = [_input(rng, len(sources)) for _ in range(_count(rng))]
    if rng.random() < 1 / 12:  # values of any type that no decoder has made
        sources[-1] = SourceSpec(len(sources) - 1, rng.choice(_VALUES), generator=True)
    inputs = [fitting(entry, sources) for entry in inputs]
    codec = rng.random() < (1 / 2 if sources[-1].generator else 1 / 16)
    return replace(case, sources=tuple(sources), inputs=tuple(inputs), codec=codec)


def _count(rng: Random) -> int:
    """Return how many records a case has: few more often than many."""
    return _MANY if rng.random() < 1 / 256 else 1 + int(rng.random() ** 1.5 * _INPUTS)


def _input(rng: Random, sources: int) -> Input:
    if rng.random() < 1 / 1_024:
        return Input(rng.randrange(sources), _LARGE)
    payload = rng.choice(_PAYLOAD_TABLE)
    if payload in _RARE and rng.random() < 2 / 3:
        payload = rng.choice(PAYLOADS[:_COMMON])
    return Input(rng.randrange(sources), payload)


# -- rows ------------------------------------------------------------------------------------------


def _rows(
    rng: Random, sources: Sequence[SourceSpec], table: _Table, operators: Sequence[str] = ()
) -> ConformanceCase:
    """Return a row of steps behind each source, in the builder's form; of these operators only."""
    partitions = [_partition(rng, table) for _ in range(rng.choice(_NUMBERS_OF_PARTITIONS))]
    rows: list[ConformanceCase] = []
    for _ in sources:
        encoders = rng.choices(table.encoders, k=rng.choice((1, 1, 1, 1, 1, 2, 2, 0)))
        steps = _row(rng, partitions, table, operators or table.operators)
        rows.append(row(*steps, encoders=encoders))
    whole = together(rows, ())
    return replace(whole, sources=tuple(sources), partitions=tuple(partitions))


def _partition(rng: Random, table: _Table) -> PartitionSpec:
    shape = rng.choice(_SHAPES)
    keys = None
    if shape != "single" and rng.random() < 1 / 4:
        keys = rng.choice(key_lists(shape))
    return PartitionSpec(shape, rng.choice(table.builders), keys)


def _row(
    rng: Random, partitions: Sequence[PartitionSpec], table: _Table, operators: Sequence[str]
) -> list[StepSpec]:
    """Return the steps behind a source, without their numbers."""
    deep = table.narrow and rng.random() < _DEEP  # many multi computations in a row
    steps: list[StepSpec] = []
    wanted = wide = 0  # a step's partition, mostly in order; multi computations so far
    for _ in range(_STEPS if deep else rng.choice(table.lengths)):
        operator = rng.choice(table.narrow if deep else operators)
        wide += operator in MULTI_COMPUTATIONS
        if operator in MULTI_COMPUTATIONS and wide > 2 and not deep:
            continue  # outputs stay few
        made = step(operator, window=_window(rng, operator))
        if operator in STATELESS:
            made = replace(made, parallel=rng.random() < 1 / 3)
        elif operator in AGGREGATIONS:
            made = replace(made, route=rng.choice((None, *table.routes)))
        else:
            if rng.random() < 1 / 6:
                partition = rng.randrange(len(partitions))
            else:
                partition, wanted = wanted % len(partitions), wanted + 1
            route = _route(rng, partitions[partition], table)
            made = replace(made, partition=partition, route=route)
        steps.append(made)
    return steps


def _route(rng: Random, partition: PartitionSpec, table: _Table) -> str:
    if partition.keys is not None and rng.random() < 3 / 4:
        return KEY_LISTS[partition.keys].route
    return rng.choice(table.u64_routes if partition.shape == "u64" else table.routes)


# -- messages of three parts -----------------------------------------------------------------------

_RANGES = (
    *((10, None), (10, None), (7, None), (1, None)),
    *((10, 4), (5, 2), (7, 3), (10, 5), (6, 2), (12, 3), (30, 5), (40, 10)),
)
_DELAYS = (0, 0, 0, 0, 0, 3, 5, 10, 30)
_REAL = 1_790_000_000_000_000_000 - 20  # a second ends within a case
_BEGINNINGS = (*((0,) * 6), 1_000, _REAL)
"""Arrival times of first records: mostly 1970, which reduces well, and now and then a real one."""
_PLACING = "place-in-oldest-window"
_PER_MESSAGE = "fire-per-message"
_POLICIES = ("dead-letter", "drop", _PER_MESSAGE, _PER_MESSAGE, _PLACING, _PLACING)
_ONE_POLICY = (("drop",), (_PER_MESSAGE,), (_PLACING,))
_KINDS: tuple[WindowKind, ...] = ("range", "session", "count")
_TEXTS, _LETTER, _TIME = (next(iter(table)) for table in (AGGREGATIONS, KEYS, EVENT_TIMES))
[_PASSING] = AGGREGATIONS.having(Trait.PASSES_ON)
[_FILTER] = COMPUTATIONS.having(Trait.FILTERS)
_STATE, *_ = STATEFUL.having(Trait.OF_TRIPLES)
_DECODER, _ENCODER = (*DECODERS.having(Trait.OF_TRIPLES), *ENCODERS.having(Trait.OF_TRIPLES))
_PLAIN = 1 / 6
"""The share of cases with one plain step, in which nothing fails: an engine that knows little of
time can run these."""


def _case_of_triples(rng: Random, table: _Table, *, small: bool) -> ConformanceCase:
    sources = [
        SourceSpec(
            number,
            _DECODER,
            rng.choice(table.event_times),
            rng.choice((None, None, None, None, 5, 10, 15, 30)),
            rng.random() < 1 / 6,
            max_ahead=rng.choice((*((None,) * 7), 4)),
        )
        for number in range(rng.choice((1, 1, 1, 2, 2, 3)))
    ]
    plain = rng.random() < _PLAIN
    many_keys = small and rng.random() < 1 / 2
    about = "all" if plain else rng.choice(_ABOUT)
    if about != "all" and rng.random() < 2 / 3:
        sources = sources[:1]
    if about == "time" or (about == "windows" and rng.random() < 3 / 4):
        sources = [replace(source, event_time=source.event_time or _TIME) for source in sources]
    records = _Records(rng, about, plain=plain, many_keys=many_keys)
    if plain:
        sources = [SourceSpec(0, _DECODER, None if sources[0].event_time is None else _TIME)]
        case = graph(*_plain_steps(rng), sources=sources)
    else:
        if records.all_equal:
            sources = [replace(source, event_time=None) for source in sources]
        if about == "states":
            sources = sources[:1]
        if about == "states" and rng.random() < 1 / 2:
            case = _rows(rng, sources, table, table.stateful)
        elif about == "all" and rng.random() < 1 / 4:
            case = _rows(rng, sources, table)
        else:
            shared = rng.random() < 1 / 5  # all state computations are over one state partition
            if about == "states":
                steps = [step(rng.choice((_LETTER, *table.routes)))] * (rng.random() < 4 / 5)
                states = _states_in_a_row(rng, table)
                steps += states
                shared = shared or rng.random() < 1 / 3 or any(map(_filters, states))
            elif about in ("windows", "time"):
                steps = _windows_in_a_row(rng, len(sources), table)
            else:
                steps = _graph(rng, len(sources), table, many_keys=many_keys)
            case = graph(*steps, sources=sources, shared=shared)
            case = _with_other_sinks(rng, case)
    expire_after = rng.choice((10, 10, 20, 5) if about == "states" else (None, 10, 5, 20))
    partitions = [replace(one, expire_after=expire_after) for one in case.partitions]
    most = max([_count(rng) for _ in range(1 if about == "all" else 2)])
    most += len(records.first)
    case = replace(case, partitions=tuple(partitions))
    inputs = [fitting(records.next(sources), sources) for _ in range(most)]
    return replace(
        case if records.unit == 1 else longer(case, records.unit),
        inputs=tuple(inputs),
        ended=rng.random() < 3 / 8,  # else all that fails might fail at the end
        codec=records.codec,
    )


def longer(case: ConformanceCase, unit: int) -> ConformanceCase:
    """Return the case with durations that are so many times as long."""

    def stretched(part: Any, *names: str) -> Any:
        times = [(name, getattr(part, name)) for name in names]
        return replace(part, **{name: time * unit for name, time in times if time is not None})

    def windows(spec: WindowSpec) -> Any:
        return stretched(
            spec, *(("timeout",) if spec.kind == "count" else ("size", "slide", "delay"))
        )

    return replace(
        case,
        sources=tuple([stretched(one, "idle_after", "max_ahead") for one in case.sources]),
        partitions=tuple([stretched(one, "expire_after") for one in case.partitions]),
        steps=tuple(
            [replace(one, window=one.window and windows(one.window)) for one in case.steps]
        ),
    )


_FROM_TOPICS, _TO_TOPICS, [_TIMESTAMP] = (
    table.having(Trait.OF_TOPIC) for table in (DECODERS, ENCODERS, EVENT_TIMES)
)


def _with_topics(rng: Random, case: ConformanceCase) -> ConformanceCase:
    """Return the case with Kafka topics for some of its sources and sinks."""
    sources = [_source_of_topic(rng, source) for source in case.sources]
    partitions = {source.id: source.topic for source in sources}
    entries = [_in_topic(rng, entry, partitions.get(entry.source, 0)) for entry in case.inputs]
    sinks = [
        SinkSpec(sink.origin, rng.choice((_ENCODER, *_TO_TOPICS)), rng.choice((0, *TOPICS_WRITTEN)))
        for sink in case.sinks
    ]
    return replace(
        case,
        sources=tuple(sources),
        sinks=tuple([sink if sink.topic else replace(sink, encoder=_ENCODER) for sink in sinks]),
        inputs=tuple(entries),
    )


def _source_of_topic(rng: Random, source: SourceSpec) -> SourceSpec:
    if source.generator or rng.random() < 1 / 8:
        return source
    time = source.event_time and rng.choice((source.event_time, _TIMESTAMP))
    decoder = rng.choice((_DECODER, _DECODER, *_FROM_TOPICS))
    return replace(source, topic=rng.choice(TOPICS_READ), event_time=time, decoder=decoder)


def _in_topic(rng: Random, entry: Input, partitions: int) -> Input:
    """Return a record as one of a topic; now and then in a partition that is added."""
    if not partitions or entry.what == "tick":
        return entry
    partition = rng.randrange(partitions + (rng.random() < 1 / 8))
    sorts: Sequence[What] = (*(("frame",) * 6), "tombstone", "hole")
    what = rng.choice(sorts) if entry.what == "frame" else "end"
    return replace(entry, partition=partition, what=what)


def _graph(rng: Random, sources: int, table: _Table, *, many_keys: bool) -> list[StepSpec]:
    """Return the steps of a graph, as `composing.graph` takes them."""
    steps: list[StepSpec] = []
    policies = rng.choice((_POLICIES, _POLICIES, *_ONE_POLICY))
    count = rng.choice((1, 1, 2, 2, 2, 3, 3, 4, 5))
    # How far back a step's origin is: mostly right before it, or many are beside each other.
    backs = rng.choice(((0, 0, 0, 0, 0, 0, 1, 2, 3), (0, 0, 1, 1, 2, 3)))
    merged = rng.choice(("first", "first", "last", "by chance")) if sources > 1 else ""
    if merged == "first":
        if rng.random() < 1 / 3:  # each side has keys of its own
            steps += [step(rng.choice(table.routes), 1), step(rng.choice(table.routes), 1)]
        steps.append(step("merge", 0, 1))
        count -= 1
    steps += [step(_LETTER)] * (many_keys or rng.random() < 1 / 3)
    for nodes in range(sources + len(steps), sources + len(steps) + count):
        operator = rng.choice(table.of_graphs)
        back = [rng.choice(backs)]
        if operator == "merge":
            back.append(rng.choice((0, 1, 1, 2, 2)))
        origins = [one % nodes for one in back]
        steps.append(step(operator, *origins, window=_window(rng, operator, policies)))
    if merged == "last":  # what one source gives comes between what others make due
        steps += [step("merge", 0, sources + len(steps) - 1)]
        steps += [step(_STATE)] * (rng.random() < 1 / 2)
    return steps


def _windows_in_a_row(rng: Random, sources: int, table: _Table) -> list[StepSpec]:
    """Return windows behind windows, with one policy, and often of one kind."""
    policies = rng.choice((_POLICIES, *_ONE_POLICY))
    kinds = rng.choice((_KINDS, _KINDS, _KINDS, *[(kind,) for kind in _KINDS]))
    names = [rng.choice(table.aggregations) for _ in range(rng.choice((1, 2, 2, 2, 2, 2)))]
    if len(names) > 1 and rng.random() < 1 / 2:
        names[0] = _PASSING
    windows = [step(name, window=_window(rng, name, policies, kinds)) for name in names]
    if len(names) > 1 and rng.random() < 1 / 3:  # what the first gives is late at the second
        spec = WindowSpec("range", rng.choice((1, 7, 10)), late=rng.choice(policies))
        first = rng.choice((WindowSpec("count", 2, timeout=40), WindowSpec("range", 7, delay=30)))
        windows = [replace(windows[0], window=first), replace(windows[1], window=spec)]
    merged = [step("merge", 0, 1)] * (sources > 1)
    keyed = [step(_LETTER)] * (rng.random() < 4 / 5)
    if len(windows) > 1 and rng.random() < 1 / 4:  # one source over two ways
        windows.insert(1, step("merge", *rng.sample((0, 1), 2)))
    return [*merged, *keyed, *windows]


def _states_in_a_row(rng: Random, table: _Table) -> list[StepSpec]:
    """Return state computations behind each other, or beside each other behind filters."""
    beside = rng.random() < 1 / 3
    steps: list[StepSpec] = []
    for _ in range(rng.choice((1, 2, 3))):
        filters = beside and rng.random() < 1 / 2
        back = len(steps) * beside
        steps += [step(_FILTER, back)] * filters
        steps.append(step(rng.choice(table.stateful), 0 if filters else back))
    return steps


def _filters(one: StepSpec) -> bool:
    return one.operator == _FILTER


def _with_other_sinks(rng: Random, case: ConformanceCase) -> ConformanceCase:
    """Return a graph that has sinks in its middle too, or two of one step, or few."""
    sinks = [SinkSpec(one.id, _ENCODER) for one in case.steps if rng.random() < 1 / 8]
    if rng.random() > 1 / 25:
        have = {sink.origin for sink in sinks}
        sinks += [sink for sink in case.sinks if sink.origin not in have]
        sinks += sinks[-1:] * (rng.random() < 1 / 8)
    return replace(case, sinks=tuple(sinks))


def _plain_steps(rng: Random) -> list[StepSpec]:
    """Return one step with windows or state, perhaps behind a key."""
    name, alone = rng.choice((_STATE, *AGGREGATIONS)), rng.random() < 1 / 3
    window = _window(rng, name)
    if name in AGGREGATIONS and (name in COMBINING or not alone):
        name = _TEXTS
    return [step(_LETTER)] * (not alone) + [step(name, window=window)]


def _window(
    rng: Random,
    operator: str,
    policies: Sequence[str] = _POLICIES,
    kinds: Sequence[WindowKind] = _KINDS,
) -> WindowSpec | None:
    """Return windows for an aggregation; nothing else has any."""
    if operator not in AGGREGATIONS:
        return None
    kind = rng.choice(kinds)
    if operator not in COMBINING and kind == "session":
        kind = "range"  # it has no combine
    if kind == "count":
        return WindowSpec(
            "count", rng.choice((2, 3, 4, 1, 9, 9)), timeout=rng.choice((None, 5, 10, 40))
        )
    delay, late = rng.choice(_DELAYS), rng.choice(policies)
    if kind == "session":
        delay, late = rng.choice((0, 0, 0, 3, 10)), _POLICIES[0] if late == _PLACING else late
        return WindowSpec("session", rng.choice((5, 3, 8, 9)), delay=delay, late=late)
    size, slide = rng.choice(_RANGES)
    return WindowSpec("range", size, slide if operator in COMBINING else None, delay, late)


class _Records:
    """Records of three parts: their event times go on, with some disorder and a few gaps.

    Args:
        rng: draws them.
        about: what the case is about (`_ABOUT`); its rare records are of that sort.
        plain: nothing fails.
        many_keys: more than small thresholds allow.
    """

    def __init__(self, rng: Random, about: str, *, plain: bool, many_keys: bool) -> None:
        self._rng = rng
        self._marks: Sequence[str | None] = (None,)
        if about in _MARKS_ABOUT:
            self._marks = (None, *rng.sample(_MARKS_ABOUT[about], rng.choice((1, 1, 2))))
        elif about == "all" and not plain and rng.random() < 4 / 5:
            own = rng.sample(_WRONG, rng.choice((1, 1, 2)))
            some = (*((None,) * 25), *_WRONG)  # or a little of everything
            self._marks = rng.choice((*[(None, None, *own)] * 3, some))
        self._ends_the_run = rng.random() < 1 / 5
        self.all_equal = not plain and rng.random() < 1 / 8
        """All messages are equal; some are told apart by what they look like."""
        with_codec = not {"p", "r", CODED}.isdisjoint(map(str, self._marks))
        self.codec = rng.random() < (1 / 2 if with_codec else 1 / 8)
        self._change = rng.choice((0.0, 1 / 10))
        self._of = ("abcdefghijkl", "abcdefghijkl", "a") if many_keys else ("a", "ab", "abc")
        self._whats = self._usual = rng.choice((_WHATS, _WHATS, _WITH_ENDS))
        self._habits = _HABITS_ABOUT.get(about, _HABITS)
        self._draw_habits()
        self.first = list(ascii_lowercase) if many_keys and rng.random() < 1 / 2 else []
        """A message of each of these letters comes first, at nearly one time; then of few."""
        self.unit = rng.choice((*((1,) * 9), 100, 1_000, 1_000))
        """Durations are so many times as long, and times near multiples of it."""
        self._rests = (
            rng.choice(((0, 1, 7), (0, 1, 7), (0, 3, self.unit - 1))) if self.unit > 1 else (0,)
        )
        self._began = rng.choice(_BEGINNINGS)
        self._events_began = (
            rng.choice((0, self._began)) if rng.random() < 31 / 32 else TIME_END - 40
        )
        self._at = self._event = 0  # in units
        self._number = rng.randrange(6)  # says which error a mark is

    def _draw_habits(self) -> None:
        """Draw what records have in common; in some cases others come later."""
        rng = self._rng
        self._letters = "a" if self.all_equal else rng.choice(self._of)
        self._steps, self._gaps, self._late = map(rng.choice, self._habits)

    def next(self, sources: Sequence[SourceSpec]) -> Input:
        """Return one more record."""
        rng = self._rng
        if rng.random() < self._change:
            self._whats = rng.choice((self._usual, _TICKS))
            self._draw_habits()
        letter, what = rng.choice(self._letters), rng.choice(self._whats)
        steps, gaps = self._steps, self._gaps
        if self.first:
            letter, what, steps, gaps = self.first.pop(), "frame", (0, 0, 1), (0,)
            self._whats = self._usual if self.first else rng.choice((_MOSTLY_TICKS, self._usual))
        source = rng.choice(sources)
        self._number += 1
        self._event += rng.choice(steps)
        self._at += rng.choice(gaps)
        at = self._near(self._began, self._at)
        if what != "frame":
            if what == "failed" and not source.generator:
                what = "end"
            elif what == "failed" and rng.random() < 1 / 3:
                what = "exited"
            return Input(0 if what == "tick" else source.id, at=at, what=what)
        late = rng.choice(self._late)
        shown, text = str(self._near(self._events_began, self._event - late)), str(self._number)
        if self.all_equal:
            shown, text = rng.choice(("1", "1", "yes", "one")), CODED
        mark = rng.choice(self._marks)
        if mark == "no event time":
            shown = rng.choice(_ODD_TIMES)
        elif mark in MARKS:
            text += mark + ENDS_THE_RUN * self._ends_the_run
        elif mark is not None and not source.generator:
            shown, text = (shown, "") if mark == "filtered" else ("0 0", text)
        payload = f"{letter} {shown} {text}".encode()
        return Input(source.id, payload, at)

    def _near(self, beginning: int, units: int) -> int:
        """Return a time so many units behind a beginning, or a little later."""
        time = beginning + units * self.unit + self._rng.choice(self._rests)
        return min(max(time, 0), TIME_END - 1)


_PAUSES = ((0, 1, 2, 0, 1, 2, 60), (*((0,) * 9), 60))
"""Gaps: all that is open or idle comes to its end in one turn."""
_GAPS = (
    *((0, 0, 1, 2, 5, 10, 15, 40, -3), (0, 0, 5, 10), (4, 7), (0, 10, 20, 21)),
    *((0,), (0,), (0,)),  # what an engine takes at once
    *_PAUSES,
)
_Durations: TypeAlias = Sequence[int]
_LATE: Sequence[_Durations] = (
    *((0,), (0, 0, 6, 12, 25), (0, 0, 0, 0, 1, 2, 3, 5, 8, 10, 14, 25), (0, 0, 30, 70)),
)
_HABITS: Sequence[Sequence[_Durations]] = (
    ((0, 1, 2, 3, 4, 5, 10, 40), (0, 5, 10), (0, 1, 3), (0, 1, 1, 2)),
    _GAPS,
    _LATE,
)
_HABITS_ABOUT: Mapping[str, Sequence[Sequence[_Durations]]] = {
    "time": (  # much is near together
        ((0, 1, 3), (0, 1, 1, 2)),
        ((0,), (0,), *_PAUSES),
        ((0, 1, 2, 3, 4), (0, 0, 0, 2, 5, 9), _LATE[2]),
    ),
    "windows": (*_HABITS[:2], (*_LATE[1:], (0, 40, 70))),
    "states": (_HABITS[0], ((0, 3, 4, 7), (0, 0, 5, 10), (2, 6), *_GAPS[:3]), _LATE),
}
"""How far event times go on, arrival times go on, and records are behind."""
_ODD_TIMES = (
    *(("x", "yes", "one", "half", "below") * 2),
    *map(str, (1 << 63, 1 << 70, TIME_END - 1)),
)
"""Mostly no event times; and the last one."""
_WRONG = (*MARKS, *"uco", *(("no event time",) * 3), "filtered", "filtered", "not decoded")
_ABOUT = (*("all",) * 9, *("windows",) * 5, *("time",) * 3, *("states",) * 3)
"""What a case is about: rare things of one sort come together where there is nothing else."""
_MARKS_ABOUT = {"windows": "uconi", "states": "bsvvdd"}
_WHATS: tuple[What, ...] = (*(("frame",) * 20), *(("tick",) * 4))
_WITH_ENDS: tuple[What, ...] = (*_WHATS, "end", "failed")
"""Nothing comes behind an end, so most cases have none before their own."""
_TICKS: tuple[What, ...] = ("frame", "tick")
_MOSTLY_TICKS: tuple[What, ...] = ("frame", "tick", "tick")
