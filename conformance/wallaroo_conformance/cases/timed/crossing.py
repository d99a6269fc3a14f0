"""Crossing timed cases, as `wallaroo_conformance.cases.crossing` does the others."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from wallaroo_conformance.cases.crossing import merged
from wallaroo_conformance.cases.timed.case import SOURCES, SourceSpec, TimedCase, fitting

_MOST_STEPS = 5


def timed_crossed(one: TimedCase, other: TimedCase, rng: Random) -> TimedCase:
    """Return a case made of parts of both, in the mode of the first."""
    sources = list(one.sources)
    places = [_adopted(sources, spec, rng) for spec in other.sources]
    at = rng.randint(0, len(one.steps))
    steps = (*one.steps[:at], *other.steps, *one.steps[at:])
    # Records of the same times, or those of the other case behind those of the first.
    later = rng.choice((0, max((entry.at for entry in one.inputs), default=0)))
    inputs = [
        replace(entry, source=places[entry.source], at=entry.at + later) for entry in other.inputs
    ]
    first, second = rng.choice(((one, other), (other, one)))
    return TimedCase(
        sources=tuple(sources),
        steps=steps[:_MOST_STEPS],
        inputs=tuple(fitting(entry, sources) for entry in merged(one.inputs, inputs, rng)),
        ended=rng.choice((one.ended, other.ended)),
        form=rng.choice((one.form, other.form)),
        expire_after=rng.choice((one.expire_after, other.expire_after)),
        shared=rng.choice((one.shared, other.shared)),
        codec=rng.choice((one.codec, other.codec)),
        batches=first.batches,
        number=second.number,
        isolation=one.isolation,
        on_error=rng.choice((one.on_error, other.on_error)),
        small=rng.choice((one.small, other.small)),
        done=one.done,
    )


def _adopted(sources: list[SourceSpec], spec: SourceSpec, rng: Random) -> int:
    """Return the number of a source for the other case's records; it may be one more."""
    if len(sources) < len(SOURCES) and rng.random() < 1 / 3:
        sources.append(spec)
        return len(sources) - 1
    number = rng.randrange(len(sources))
    if rng.random() < 1 / 2:
        sources[number] = spec
    return number
