"""Moves in a timed case's graph after which each step still gets its messages from where it did.

A step finds its origin by counting back, so that any part of a case can be left out; then steps
behind that part may get their messages from elsewhere. With these moves they do not. So a merge, a
second source or a step goes alone, and all else that a failure may need is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from wallaroo_conformance.cases.timed.building import origins
from wallaroo_conformance.cases.timed.case import (
    SOURCES,
    SourceSpec,
    TimedCase,
    TimedStep,
    fitting,
)

_COPY = 1_000  # is added to a node's number
_MOST_STEPS = 8


@dataclass(frozen=True)
class _Placed:
    """A step, its node's number, and those of the nodes that it gets messages from."""

    number: int
    step: TimedStep
    origins: tuple[int, ...]

    def without(self, gone: int, instead: int) -> _Placed:
        """Return the step with one origin in place of another."""
        return replace(
            self, origins=tuple([instead if one == gone else one for one in self.origins])
        )


def rewirings(case: TimedCase) -> Iterator[TimedCase]:
    """Yield the case without a step, with a merge undone, and with two sources made one."""
    if case.form != "pipelines":  # where each step belongs to a pipeline, and nothing merges
        return
    steps = _placed(case)
    for one in steps:
        for origin in dict.fromkeys(one.origins):
            yield _rewired(case, _bypassed(steps, one.number, origin))
        if one.step.operator == "merge":
            yield _rewired(case, _undone(steps, one))
    for gone in range(len(case.sources)):
        for into in range(len(case.sources)):
            if gone != into:
                yield _joined(case, steps, gone, into)


def with_another_source(case: TimedCase) -> TimedCase | None:
    """Return the case with one more source, which leads to a sink; `None`: it has too many."""
    number = len(case.sources)
    if case.form != "pipelines" or number == len(SOURCES):
        return None
    steps = _placed(case)
    return _rewired(case, steps, {**dict(enumerate(case.sources)), -1: SourceSpec()})


def _placed(case: TimedCase) -> list[_Placed]:
    return [
        _Placed(len(case.sources) + number, step, origins(case, number))
        for number, step in enumerate(case.steps)
    ]


def _bypassed(steps: Sequence[_Placed], gone: int, instead: int) -> list[_Placed]:
    """Return the steps without one; what got messages from it gets them from another node."""
    return [one.without(gone, instead) for one in steps if one.number != gone]


def _undone(steps: Sequence[_Placed], merge: _Placed) -> list[_Placed]:
    """Return the steps without a merge: all that is behind it is there twice, for each side."""
    first, second = merge.origins
    behind = {merge.number}
    for one in steps:
        if behind.intersection(one.origins):
            behind.add(one.number)
    behind.remove(merge.number)
    copies = [
        _Placed(
            one.number + _COPY,
            one.step,
            tuple([number + _COPY if number in behind else number for number in one.origins]),
        ).without(merge.number, second)
        for one in steps
        if one.number in behind
    ]
    left = [*_bypassed(steps, merge.number, first), *copies]
    if behind:
        return left
    # The merge was an end. Then its sides are, though other steps may get messages from them.
    return [
        replace(one, step=replace(one.step, sink=True)) if one.number in merge.origins else one
        for one in left
    ]


def _joined(case: TimedCase, steps: Sequence[_Placed], gone: int, into: int) -> TimedCase:
    """Return the case with the records of one source in another, and no merge of the two."""
    left = [one.without(gone, into) for one in steps]
    for one, before in zip(left, steps, strict=True):
        if len(set(one.origins)) < len(set(before.origins)):
            left = _bypassed(left, one.number, into)
    sources = {number: one for number, one in enumerate(case.sources) if number != gone}
    place = {number: index for index, number in enumerate(sources)}
    inputs = [
        fitting(replace(entry, source=place.get(entry.source, place[into])), [*sources.values()])
        for entry in case.inputs
        if entry.source != gone or entry.what in ("frame", "tick")
    ]
    return _rewired(replace(case, inputs=tuple(inputs)), left, sources)


def _rewired(
    case: TimedCase, steps: Sequence[_Placed], sources: Mapping[int, SourceSpec] | None = None
) -> TimedCase:
    """Return the case with these steps, and with those of its sources that are left."""
    sources = sources or dict(enumerate(case.sources))
    numbers = [*sources, *[one.number for one in steps]]
    place = {number: index for index, number in enumerate(numbers)}
    made = []
    for one in steps[:_MOST_STEPS]:
        back = [place[one.number] - 1 - place[origin] for origin in one.origins]
        made.append(replace(one.step, origin=back[0], other=back[-1] if len(back) > 1 else 0))
    return replace(case, sources=tuple(sources.values()), steps=tuple(made))
