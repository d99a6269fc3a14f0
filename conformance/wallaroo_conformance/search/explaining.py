"""Explaining: a failing case is reduced, and the rules that the small case exercises are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.reducing import reductions
from wallaroo_conformance.judge.differences import Crash
from wallaroo_conformance.judge.results import Failure
from wallaroo_conformance.search.findings import Failing
from wallaroo_conformance.search.judging import Judge

_SLOW_JOB = 0.25  # seconds
_FEW = 16
_LONG = 200  # frames
_MOST_OF_LONG = 32
_MOST_STEPS = 60  # of a reduction; none has needed half as many so far
_MOST_CANDIDATES = 192  # of a reduction's step, the simplest


def failure_of(judge: Judge, failing: Failing, *, reduce: bool) -> Failure:
    """Return the failure that a failing case shows.

    Args:
        judge: runs the simpler cases.
        failing: the case.
        reduce: reduce it first; else it is shown as it is.
    """
    runner = judge.runner
    with runner.reducing():
        reduced = _reduced(judge, failing) if reduce else failing
        cut_short = runner.ended or not reduce
        # Once more, if there is time: the first time there may have been others in its job.
        alone = next(iter(runner.run([reduced.case])), reduced.result)
    isolated = judge.failing(reduced.meaning, alone) is not None
    return replace(
        judge.failure(reduced),
        actual=alone if isolated else reduced.result,
        alone=isolated,
        cut_short=cut_short,
        may_be_same=bool(judge.findings.failures),
    )


def _reduced(judge: Judge, failing: Failing) -> Failing:
    """Reduce a case to a smaller one that still fails in one of the ways in which it fails."""
    whole = failing
    for _ in range(_MOST_STEPS):
        most = _MOST_CANDIDATES if failing.case.messages <= _LONG else _MOST_OF_LONG
        simpler = _simplest_failing(judge, whole, reductions(failing.case)[:most])
        if simpler is None:
            break
        failing = simpler
    return failing


def _simplest_failing(
    judge: Judge, failing: Failing, candidates: Sequence[ConformanceCase]
) -> Failing | None:
    """Return the first candidate that fails too, and for a reason that no failure explains."""
    # On a fast engine try few at a time: usually one of the first fails. Where an engine raises or
    # dies, each failing case takes long, so begin with one; and where there are hundreds of
    # frames, so does each case.
    crashes = isinstance(failing.result, Crash)
    long = failing.case.messages > _LONG
    slow = judge.runner.seconds_a_job > _SLOW_JOB and not crashes
    step = judge.runner.job if slow else 1 if crashes or long else _FEW
    start = 0
    while start < len(candidates):
        simpler = judge.first_failing(candidates[start : start + step], failing)
        if simpler is not None or judge.runner.ended:
            return simpler
        start += step
        step *= 2 if crashes or long else 1
    return None
