"""Asks an engine that can step when it is due, and looks what happens then (time-1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wallaroo.engine import Engine
from wallaroo.errors import UnsupportedTopology
from wallaroo.records import Tick
from wallaroo.times import TIME_END
from wallaroo.trace import Trace
from wallaroo.user_code.failure import describe_error
from wallaroo_conformance.cases.building import assemble, engine_case
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.cases.reducing import reductions
from wallaroo_conformance.judge.laws import DUE
from wallaroo_conformance.judge.results import Failure, fits
from wallaroo_conformance.search.budget import Outcome

_CASES = 1_000  # a third of them have no windows, and are not asked about


def check_due(engine: Engine, rules: str, random_seed: int) -> Outcome:
    """Check that what time alone makes due happens when the engine says, and not before (time-1).

    What a tick does is judged by cases. An engine without `stepper` is not asked.
    """
    if not hasattr(engine, "stepper") or not fits(DUE.rule, rules):
        return [], []
    asked, mode = 0, min(engine.capabilities().isolation)
    for drawn in generate(_CASES, random_seed, "tame", simple=0.0):
        case = replace(drawn, ended=False, isolation=mode)
        wrong = _wrong(engine, case)
        asked += wrong is not None
        if wrong:
            return [DUE.result("broken", asked)], [_reduced(engine, case, wrong)]
    return [DUE.result("kept" if asked else "not exercised", asked)], []


def _reduced(engine: Engine, case: ConformanceCase, wrong: str) -> Failure:
    for simpler in reductions(case):
        if still := _wrong(engine, simpler):
            return _reduced(engine, simpler, still)
    return Failure((DUE,), case, text=wrong)


def _wrong(engine: Any, case: ConformanceCase) -> str | None:
    """Return what an engine does wrong behind a case's input; `None`: it was not asked."""
    try:
        return _stepped(engine, case)
    except Exception as error:  # noqa: BLE001 - an engine may raise anything
        return f"the engine raised {type(error).__name__}: {describe_error(error)}"


def _stepped(engine: Any, case: ConformanceCase) -> str | None:
    run = engine_case(case, assemble(case))
    if case.ended or not run.application.window_steps:
        return None
    try:
        engine.check(run.application)
    except UnsupportedTopology:
        return None
    stepper = engine.stepper(run.application, isolation=case.isolation, on_error=case.on_error)
    for record in run.records:
        stepper.take(record)
    before = stepper.trace()
    if before.ended:
        return None
    due, now = stepper.due(), max([record.at for record in run.records], default=0)
    if due is None:
        stepper.take(Tick(TIME_END))
        late = _fired(before, stepper.trace())
        return "by its own account nothing is due, and something happens" if late else ""
    if due - 1 > now:
        stepper.take(Tick(due - 1))
        if _fired(before, stepper.trace()):
            return f"by its own account nothing is due before {due}, and something happens"
    stepper.take(Tick(due))
    if not _fired(before, stepper.trace()):
        return f"by its own account something is due at {due}, and nothing happens"
    return ""


def _fired(before: Trace, after: Trace) -> bool:
    """Whether more has happened than that an entity expired, for which no engine wakes up."""
    return replace(before, entities=()).comparable() != replace(after, entities=()).comparable()
