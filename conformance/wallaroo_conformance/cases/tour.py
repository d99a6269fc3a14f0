"""The tour: each operator in a pipeline that does nothing else, over all payloads.

Chance brings an operator together with all others; but what shows only where one certain operator
meets one certain payload, a short search may leave out. The tour leaves out none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from wallaroo.engine import Isolation
from wallaroo_conformance.cases.case import (
    PIPELINES,
    ConformanceCase,
    Input,
    PartitionSpec,
    PipelineSpec,
    StepSpec,
)
from wallaroo_conformance.cases.operators import (
    BUILDERS,
    DECODERS,
    ENCODERS,
    KEY_LISTS,
    ROUTES,
    STATEFUL,
    STATELESS,
    U64_KEY_LISTS,
    Table,
    Trait,
)
from wallaroo_conformance.cases.strategies import PAYLOADS, Tone

_LAST = b"quit"  # ends the run where an operator listens to it
_PAYLOADS = (*[payload for payload in PAYLOADS if payload != _LAST], _LAST)
_INPUTS = tuple(Input(0, payload) for payload in _PAYLOADS)

_PLAIN = PipelineSpec()
[_ANYTHING] = DECODERS.having(Trait.ANY_TYPE)
[_EXACT] = ENCODERS.having(Trait.EXACT)
_STATEFUL = tuple(STATEFUL)[: len(PIPELINES)]  # the plainest


def tour(tone: Tone) -> list[ConformanceCase]:
    """Return the tour's cases; `tame`: without the operators that make findings."""
    isolation: Isolation = "isolated" if tone == "any" else "trusting"
    return [replace(case, isolation=isolation) for case in _cases(tone)]


def _cases(tone: Tone) -> Iterator[ConformanceCase]:
    for decoder in _those(DECODERS, tone):
        yield _case(PipelineSpec(decoder, (), (_EXACT,)))
    for encoder in _those(ENCODERS, tone):
        yield _case(PipelineSpec(_ANYTHING, (), (encoder,)))
        yield _case(PipelineSpec(_PLAIN.decoder, (), (encoder, *_PLAIN.sinks)))
    for decoder in (_PLAIN.decoder, _ANYTHING):
        for operator in _those(STATELESS, tone):
            yield _case(PipelineSpec(decoder, (StepSpec(operator),), (_EXACT,)))
    for operator in _those(STATEFUL, tone):
        yield _with_state(operator, PartitionSpec("keyed"))
        yield _with_state(operator, PartitionSpec("single"))
    for route in _those(ROUTES, tone):
        yield _with_state(_STATEFUL[0], PartitionSpec("keyed"), route)
        if ROUTES.has(route, Trait.NUMBERS):
            yield _with_state(_STATEFUL[0], PartitionSpec("u64"), route)
    for name, listed in KEY_LISTS.items():
        yield _with_state(_STATEFUL[0], PartitionSpec("keyed", keys=name), listed.route)
    for name, listed in U64_KEY_LISTS.items():
        yield _with_state(_STATEFUL[0], PartitionSpec("u64", keys=name), listed.route)
    for builder in _those(BUILDERS, tone):
        yield _shared(PartitionSpec("keyed", builder))
        yield _shared(PartitionSpec("single", builder))


def _those(table: Table, tone: Tone) -> list[str]:
    return [name for name in table if tone == "any" or not table.has(name, Trait.FINDING)]


def _case(pipeline: PipelineSpec, partition: PartitionSpec | None = None) -> ConformanceCase:
    return ConformanceCase((pipeline,), (partition or PartitionSpec(),), _INPUTS)


def _with_state(operator: str, partition: PartitionSpec, route: str = "") -> ConformanceCase:
    step = StepSpec(operator, route=route or StepSpec.route)
    decoder = _PLAIN.decoder if partition.shape == "single" else _ANYTHING
    return _case(PipelineSpec(decoder, (step,), (_EXACT,)), partition)


def _shared(partition: PartitionSpec) -> ConformanceCase:
    """Return a case in which several pipelines share a partition."""
    return ConformanceCase(
        tuple(PipelineSpec(steps=(StepSpec(operator),), sinks=(_EXACT,)) for operator in _STATEFUL),
        (partition,),
        tuple(Input(at % len(_STATEFUL), payload) for at, payload in enumerate(_PAYLOADS)),
    )
