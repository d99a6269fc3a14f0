"""Moves in a case's graph; all other nodes still get their messages from where they did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from wallaroo_conformance.cases.case import FIRST_STEP, ConformanceCase


def moves(case: ConformanceCase) -> Iterator[ConformanceCase]:
    """Yield the case with a part of its graph left out."""
    for step in case.steps:
        for origin in dict.fromkeys(step.origins):
            yield without_steps(case, {step.id: origin})
    for half in (case.steps[len(case.steps) // 2 :], case.steps[: len(case.steps) // 2]):
        yield without_steps(case, {step.id: step.origins[0] for step in half})
    for gone in case.sources if len(case.sources) > 1 else ():
        yield without_source(case, gone.id)
    yield numbered(case)


def without_steps(case: ConformanceCase, instead: Mapping[int, int]) -> ConformanceCase:
    """Return the case without some steps.

    Args:
        case: the case.
        instead: for each step to leave out, the node whose messages go to what is behind it.
    """
    last: dict[int, int] = {}
    for gone in instead:
        last[gone] = instead[gone]
        while last[gone] in instead:
            last[gone] = instead[last[gone]]
    steps = tuple([step for step in case.steps if step.id not in instead])
    return _redirected(replace(case, steps=steps), last)


def without_source(case: ConformanceCase, gone: int) -> ConformanceCase:
    """Return the case without a source, what only it leads to, and merges with its messages."""
    kept = {node for node, sources in case.feeding().items() if sources != {gone}}
    left = replace(
        case,
        sources=tuple([source for source in case.sources if source.id != gone]),
        steps=tuple([step for step in case.steps if step.id in kept]),
        sinks=tuple([sink for sink in case.sinks if sink.origin in kept]),
        inputs=tuple(
            [entry for entry in case.inputs if entry.source != gone or entry.what == "tick"]
        ),
    )
    merges = [step for step in left.steps if not kept.issuperset(step.origins)]
    instead = {step.id: max(step.origins, key=kept.__contains__) for step in merges}
    return without_steps(left, instead)


def numbered(case: ConformanceCase) -> ConformanceCase:
    """Return the case with the numbers of its nodes as small as they can be."""
    new = {source.id: number for number, source in enumerate(case.sources)}
    new |= {step.id: number for number, step in enumerate(case.steps, FIRST_STEP)}
    sources = [replace(source, id=new[source.id]) for source in case.sources]
    steps = [replace(step, id=new[step.id]) for step in case.steps]
    inputs = [
        entry if entry.what == "tick" else replace(entry, source=new[entry.source])
        for entry in case.inputs
    ]
    left = replace(case, sources=tuple(sources), steps=tuple(steps), inputs=tuple(inputs))
    return _redirected(left, new)


def _redirected(case: ConformanceCase, instead: Mapping[int, int]) -> ConformanceCase:
    """Return the case with other nodes in the place of some, as origins of messages."""
    steps = [
        replace(step, origins=tuple([instead.get(origin, origin) for origin in step.origins]))
        for step in case.steps
    ]
    sinks = [replace(sink, origin=instead.get(sink.origin, sink.origin)) for sink in case.sinks]
    return replace(case, steps=tuple(steps), sinks=tuple(sinks))
