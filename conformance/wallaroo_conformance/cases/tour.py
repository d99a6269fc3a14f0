"""The tour: each operator in a pipeline that does nothing else, over all payloads.

Random cases combine an operator with all others; but a short search may leave out the one payload
on which a fault of one operator shows. The tour leaves out none. With few payloads it also puts
each operator where engines do something unusual: behind a long row of multi computations, and at
the end of a run that stops at the first dead letter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from wallaroo.engine import Isolation
from wallaroo_conformance.cases.case import (
    PARTITIONS,
    PIPELINES,
    ConformanceCase,
    Input,
    PartitionSpec,
    PipelineSpec,
    Shape,
    StepSpec,
)
from wallaroo_conformance.cases.operators import (
    BUILDERS,
    DECODERS,
    ENCODERS,
    KEY_LISTS,
    ROUTES,
    STATE_MULTI_COMPUTATIONS,
    STATEFUL,
    STATELESS,
    STEPS,
    U64_KEY_LISTS,
    Tone,
    Trait,
)
from wallaroo_conformance.cases.operators.stateful import PLAIN_PAIRS
from wallaroo_conformance.cases.payloads import PAYLOADS

_LAST = b"quit"  # ends the run where an operator listens to it
_PAYLOADS = (*[payload for payload in PAYLOADS if payload != _LAST and payload != b"halt"], _LAST)
_INPUTS = tuple(Input(0, payload) for payload in _PAYLOADS)
_FEW = tuple(Input(0, payload) for payload in (b"a", b"b a c", b"", b"y", b"zx", b"x", b"a"))
_HOLDING_LISTS = tuple(Input(0, payload) for payload in (b"(['a'], 1)", b"['b']", b"{'a': ['b']}"))
_TO_STOP_AT = tuple(Input(0, payload) for payload in (b"a", b"y", b"cy", b"ax", b"halt", b"a"))

_PLAIN = PipelineSpec()
[_ANYTHING] = DECODERS.having(Trait.ANY_TYPE)
[_ALTERING] = ENCODERS.having(Trait.ALTERS_MESSAGE)
[_EXACT] = ENCODERS.having(Trait.EXACT)
_STATEFUL = tuple(STATEFUL)[: len(PIPELINES)]  # the plainest
_NARROW = tuple([name for name in STEPS.having(Trait.NARROW) if name in STATELESS])
[_NESTED] = ROUTES.having(Trait.TUPLES)
[_LISTS] = DECODERS.having(Trait.LISTS)
[_MANY] = STEPS.having(Trait.MANY)
[_REFUSING] = STEPS.having(Trait.REFUSES)
[_REFUSING_DECODER] = DECODERS.having(Trait.REFUSES)
_PARTITIONS = 5


def tour(tone: Tone) -> list[ConformanceCase]:
    """Return the tour's cases; `tame`: without the operators that make findings."""
    isolation: Isolation = "isolated" if tone == "any" else "trusting"
    return [replace(case, isolation=isolation) for case in _cases(tone)]


def _cases(tone: Tone) -> Iterator[ConformanceCase]:
    for decoder in DECODERS.choices(tone):
        yield _case(PipelineSpec(decoder, (), (_EXACT,)))
        yield _stopped(PipelineSpec(decoder))
    for encoder in ENCODERS.choices(tone):
        yield _case(PipelineSpec(_ANYTHING, (), (encoder,)))
        yield _case(PipelineSpec(_PLAIN.decoder, (), (encoder, *_PLAIN.sinks)))
        yield _stopped(PipelineSpec(sinks=(*_PLAIN.sinks, encoder)))
        deep = _few(PipelineSpec(steps=_row(14), sinks=(encoder,)))
        yield deep
        yield replace(deep, on_error="stop")
    for operator in STATELESS.choices(tone):
        yield _case(PipelineSpec(_ANYTHING, (StepSpec(operator),), (_EXACT,)))
        if tone == "any":
            altered = PipelineSpec(_ANYTHING, (StepSpec(operator),), (_ALTERING, _EXACT))
            yield replace(_case(altered), inputs=_HOLDING_LISTS)
    for operator in STATEFUL.choices(tone):
        yield _with_state(operator, PartitionSpec("keyed"))
        yield _visited_again(operator)
    for operator in STEPS.choices(tone):
        yield _few(PipelineSpec(_LISTS, (*_row(6), StepSpec(operator)), (_EXACT,)))
        yield _stopped(PipelineSpec(steps=(StepSpec(operator),), sinks=()))
    for route in ROUTES.choices(tone):
        yield _with_state(_STATEFUL[0], PartitionSpec("keyed"), route)
        yield _stopped(PipelineSpec(steps=(StepSpec(_STATEFUL[0], route=route),)), "keyed")
        if ROUTES.has(route, Trait.NUMBERS):
            yield _with_state(_STATEFUL[0], PartitionSpec("u64"), route)
    for name, listed in KEY_LISTS.items():
        yield _with_state(_STATEFUL[0], PartitionSpec("keyed", keys=name), listed.route)
    for name, listed in U64_KEY_LISTS.items():
        yield _with_state(_STATEFUL[0], PartitionSpec("u64", keys=name), listed.route)
    for builder in BUILDERS.choices(tone):
        yield _shared(PartitionSpec("keyed", builder))
        yield _shared(PartitionSpec("single", builder))
        if not BUILDERS.has(builder, Trait.ENDS_THE_RUN):
            yield _with_state(_STATEFUL[0], PartitionSpec("keyed", builder), _NESTED)
        for operator in PLAIN_PAIRS.choices(tone):
            if PLAIN_PAIRS.has(operator, Trait.ALTERS_SILENTLY):
                pipeline = PipelineSpec(steps=(StepSpec(operator),), sinks=(_EXACT,))
                yield replace(_case(pipeline, PartitionSpec("single", builder)), inputs=_FEW)
    yield from _siblings()
    yield _named_alike()
    yield _many_frames()
    yield _much_of_a_frame()


def _case(pipeline: PipelineSpec, partition: PartitionSpec | None = None) -> ConformanceCase:
    return ConformanceCase((pipeline,), (partition or PartitionSpec(),), _INPUTS)


def _with_state(operator: str, partition: PartitionSpec, route: str = "") -> ConformanceCase:
    step = StepSpec(operator, route=route or StepSpec.route)
    case = _case(PipelineSpec(_ANYTHING, (step,), (_EXACT,)), partition)
    return replace(case, number=_PARTITIONS)


def _visited_again(operator: str) -> ConformanceCase:
    """Return a case in which a later step visits, and alters, the same entity."""
    last = StepSpec(next(iter(STATE_MULTI_COMPUTATIONS)))
    return _case(PipelineSpec(steps=(StepSpec(operator), StepSpec(), last), sinks=(_EXACT,)))


def _row(length: int) -> tuple[StepSpec, ...]:
    """Return a row of multi computations that hardly multiply what they get."""
    return tuple([StepSpec(_NARROW[number % len(_NARROW)]) for number in range(length)])


def _few(pipeline: PipelineSpec) -> ConformanceCase:
    return replace(_case(pipeline), inputs=_FEW)


def _stopped(pipeline: PipelineSpec, shape: Shape = "single") -> ConformanceCase:
    case = _case(pipeline, PartitionSpec(shape))
    return replace(case, inputs=_TO_STOP_AT, on_error="stop")


def _shared(partition: PartitionSpec) -> ConformanceCase:
    """Return a case in which several pipelines share a partition."""
    return ConformanceCase(
        tuple(PipelineSpec(steps=(StepSpec(operator),), sinks=(_EXACT,)) for operator in _STATEFUL),
        (partition,),
        tuple(Input(at % len(_STATEFUL), payload) for at, payload in enumerate(_PAYLOADS)),
    )


def _siblings() -> Iterator[ConformanceCase]:
    """Yield cases in which instances of one class stand beside one another."""
    for encoders in ENCODERS.siblings():
        yield _few(PipelineSpec(sinks=encoders))
    for operators in STEPS.siblings():
        yield _few(PipelineSpec(steps=tuple([StepSpec(operator) for operator in operators])))
    for decoders, routes in product(DECODERS.siblings(), ROUTES.siblings()):
        steps = [StepSpec(_STATEFUL[0], False, at, route) for at, route in enumerate(routes)]
        yield ConformanceCase(
            tuple(PipelineSpec(decoder, tuple(steps), (_EXACT,)) for decoder in decoders),
            (PartitionSpec("keyed"),) * len(steps),
            tuple(Input(at % 2, payload) for at, payload in enumerate((b"abc", b"\xe9", b"\xe9"))),
        )
    for builders in BUILDERS.siblings():
        partitions = tuple(PartitionSpec("single", builder) for builder in builders)
        numbers = range(len(builders))
        readers = tuple(StepSpec(_STATEFUL[2], partition=number) for number in numbers)
        yield ConformanceCase((PipelineSpec(steps=readers),), partitions, _FEW)


def _named_alike() -> ConformanceCase:
    """Return a case with all the state partitions whose names careless code may mix up."""
    numbers = range(len(PARTITIONS))
    steps = tuple(StepSpec(_STATEFUL[0], partition=number) for number in numbers)
    partitions = tuple(PartitionSpec() for _ in numbers)
    return ConformanceCase((PipelineSpec(steps=steps),), partitions, _FEW)


def _many_frames() -> ConformanceCase:
    """Return a case with hundreds of frames; every other is a dead letter."""
    texts = [b"%s%d" % (b"x" if number % 2 else b"a", number) for number in range(300)]
    steps = (StepSpec(_REFUSING),)
    return ConformanceCase(
        (PipelineSpec(steps=steps),), inputs=tuple(Input(0, one) for one in texts)
    )


def _much_of_a_frame() -> ConformanceCase:
    """Return a case in which a frame gives hundreds of items, entities, dead letters, or 70 KB."""
    steps = (StepSpec(_MANY), StepSpec(_STATEFUL[0]), StepSpec(_REFUSING))
    pipelines = (PipelineSpec(steps=steps), PipelineSpec(_REFUSING_DECODER), _PLAIN)
    large = b"a" * 70_000
    inputs = (*(Input(0, text) for text in (b"many", b"x" * 300)), Input(1, large), Input(2, large))
    return ConformanceCase(pipelines, (PartitionSpec("keyed"),), inputs)
