"""Moves in a case's graph; all other nodes still get their messages from where they did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from wallaroo_conformance.cases.case import FIRST_STEP, ConformanceCase, StepSpec, fitting

_MOST_STEPS = 8


def moves(case: ConformanceCase) -> Iterator[ConformanceCase]:
    """Yield the case with a part of its graph left out, or two of its sources made one."""
    for step in case.steps:
        for origin in dict.fromkeys(step.origins):
            yield without_steps(case, {step.id: origin})
        if step.operator == "merge":
            yield without_merge(case, step)
    for half in (case.steps[len(case.steps) // 2 :], case.steps[: len(case.steps) // 2]):
        yield without_steps(case, {step.id: step.origins[0] for step in half})
    for gone in case.sources:
        if len(case.sources) > 1:
            yield without_source(case, gone.id)
        for into in case.sources if case.form == "pipelines" else ():
            if gone != into:
                yield _joined(case, gone.id, into.id)
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


def without_merge(case: ConformanceCase, merge: StepSpec) -> ConformanceCase:
    """Return the case without a merge: all that is behind it is there twice, for each side."""
    first, second = merge.origins
    added = max([step.id for step in case.steps]) + 1 - FIRST_STEP
    copies = {merge.id: second}
    for step in case.steps:
        if step.id != merge.id and not copies.keys().isdisjoint(step.origins):
            copies[step.id] = step.id + added
    behind = [step for step in case.steps if step.id in copies and step.id != merge.id]
    copied = [
        replace(
            step,
            id=copies[step.id],
            origins=tuple([copies.get(origin, origin) for origin in step.origins]),
        )
        for step in behind
    ]
    sinks = [
        replace(sink, origin=copies[sink.origin]) for sink in case.sinks if sink.origin in copies
    ]
    if len(case.steps) - 1 + len(copied) > _MOST_STEPS:
        return case
    left = without_steps(case, {merge.id: first})
    return replace(left, steps=(*left.steps, *copied), sinks=(*left.sinks, *sinks))


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


def _joined(case: ConformanceCase, gone: int, into: int) -> ConformanceCase:
    """Return the case with the records of one source in another, and no merge of the two."""
    left = _redirected(case, {gone: into})
    alone = [step for step in left.steps if step.operator == "merge"]
    left = without_steps(left, {step.id: into for step in alone if {*step.origins} == {into}})
    sources = tuple([source for source in case.sources if source.id != gone])
    inputs = [
        fitting(replace(entry, source=into) if entry.source == gone else entry, sources)
        for entry in case.inputs
        if entry.source != gone or entry.what in ("frame", "tick")
    ]
    return replace(left, sources=sources, inputs=tuple(inputs))


def _redirected(case: ConformanceCase, instead: Mapping[int, int]) -> ConformanceCase:
    """Return the case with other nodes in the place of some, as origins of messages."""
    steps = [
        replace(step, origins=tuple([instead.get(origin, origin) for origin in step.origins]))
        for step in case.steps
    ]
    sinks = [replace(sink, origin=instead.get(sink.origin, sink.origin)) for sink in case.sinks]
    return replace(case, steps=tuple(steps), sinks=tuple(sinks))
