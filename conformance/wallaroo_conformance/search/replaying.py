"""Replaying: one stored case, as it is, on an engine and on the reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wallaroo.engine import Engine, load_engine
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.counterexamples import Counterexample
from wallaroo_conformance.judge.claims import Claims
from wallaroo_conformance.judge.differences import Crash, Result, differences
from wallaroo_conformance.judge.laws import laws_of
from wallaroo_conformance.judge.oracle import Meaning, Oracle
from wallaroo_conformance.judge.results import Failure
from wallaroo_conformance.search.running import Runner


@dataclass(frozen=True)
class Replayed:
    """The outcome of a replayed case.

    Args:
        case: the case, in a form that the engine can run.
        meaning: what it does on the reference.
        actual: what the engine gave; `None`: it was not run, or is not judged.
        beyond: why the engine cannot or need not run it, or may differ; else empty.
        failure: how the engine differs; `None`: it does not, or is not judged.
        options: what the engine was run with.
    """

    case: ConformanceCase
    meaning: Meaning
    actual: Result | None = None
    beyond: str = ""
    failure: Failure | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def replayed(example: Counterexample, engine: Engine) -> Replayed:
    """Run a stored case on an engine and on the reference, and return the outcome."""
    runner = Runner(engine, options=example.options if engine.name == example.engine else None)
    claims = Claims(runner.capabilities)
    case = claims.adapted(runner.adapted(example.case))
    meaning = Oracle(load_engine("reference")).ask([case])[0]
    beyond = claims.beyond(case, meaning.trace, meaning.facts) or runner.beyond(case)
    if case.isolation == "trusting" and meaning.trace.findings:
        beyond = f"trusting mode is not promised to it: {meaning.trace.findings[0].text}"
    if beyond is not None:
        return Replayed(case, meaning, beyond=beyond)
    actual = runner.run_alone(case)
    if isinstance(actual, Crash) and actual.refusal and runner.capabilities.refuses_in_run:
        return Replayed(case, meaning, beyond=actual.refusal)
    compared = claims.comparable(meaning.trace, actual)
    kinds = differences(*compared)
    options = runner.options_for(case)
    if not kinds:
        return Replayed(case, meaning, actual, options=options)
    for excusing in claims.excusing():
        if excusing.fits(meaning.facts, kinds):
            why = f"it differs, as a consequence of {excusing.rule}, which it does not claim"
            return Replayed(case, meaning, beyond=why)
    laws = laws_of(meaning.facts, kinds, {})
    failure = Failure(laws, case, meaning.trace, actual).filed(example.rule)
    return Replayed(case, meaning, actual, failure=failure, options=options)
