"""Explaining: a failing case is reduced, and the rules that the small case exercises are named."""

from __future__ import annotations

from collections.abc import Sequence

from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.reducing import projections, reductions
from wallaroo_conformance.judge.differences import Crash
from wallaroo_conformance.judge.laws import ANSWERS
from wallaroo_conformance.judge.results import Failure
from wallaroo_conformance.search.findings import Failing, Findings
from wallaroo_conformance.search.judging import Judge
from wallaroo_conformance.search.running import Runner

_SLOW_JOB = 0.25  # seconds
_FEW = 16
_LONG = 200  # frames
_MOST_OF_LONG = 32
_MOST_STEPS = 60  # of a reduction; none has needed half as many so far
_MOST_PROJECTIONS = 512
_MOST_CANDIDATES = 192  # of a reduction's step, the simplest


class Explainer:
    """Makes failures of failing cases.

    Args:
        judge: runs the simpler cases.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._runner: Runner = judge.runner
        self._findings: Findings = judge.findings

    def explain_smallest(self, *, reduce: bool = True) -> None:
        """Make a failure of the smallest failing case; those that it explains are dropped.

        Args:
            reduce: reduce it first; else it is shown as it is.
        """
        jobs = self._runner.jobs
        # A fault that shows without windows and keys is seen more easily in a case without them.
        smallest = min(self._findings.failing, key=lambda one: (one.case.timed, one.size))
        self._findings.failing.remove(smallest)
        with self._runner.reducing():
            failing = self._reduced(smallest) if reduce else smallest
            cut_short = self._runner.ended or not reduce
            failure = self._explained(failing, jobs, cut_short=cut_short)
        self._findings.add_failure(failure)

    def as_it_is(self, case: ConformanceCase) -> Failure | None:
        """Return the failure that one case shows without being reduced, or `None`; note nothing."""
        failing = self._judge.first_failing([self._judge.adapted(case)])
        return None if failing is None else self._explained(failing, self._runner.jobs)

    def _explained(self, reduced: Failing, jobs: int, *, cut_short: bool = False) -> Failure:
        # Once more, if there is time: the first time there may have been others in its job.
        alone = next(iter(self._runner.run([reduced.case])), reduced.result)
        isolated = self._judge.failing(reduced.meaning, alone) is not None
        refused = isinstance(reduced.result, Crash) and reduced.result.refusal
        return Failure(
            (ANSWERS,) if refused else self._findings.laws_of(reduced),
            reduced.case,
            expected=reduced.meaning.trace,
            actual=alone if isolated else reduced.result,
            alone=isolated,
            cut_short=cut_short,
            jobs=self._runner.jobs - jobs,
            may_be_same=bool(self._findings.failures),
        )

    def _reduced(self, failing: Failing) -> Failing:
        """Reduce a case; whatever it comes down to differs in a way in which it differs too."""
        whole = failing
        if self._jobs_are_slow():
            parts = projections(failing.case)[:_MOST_PROJECTIONS]
            failing = self._simplest_failing(whole, parts) or failing
        for _ in range(_MOST_STEPS):
            most = _MOST_CANDIDATES if failing.case.messages <= _LONG else _MOST_OF_LONG
            candidates = reductions(failing.case)[:most]
            simpler = self._simplest_failing(whole, candidates)
            if simpler is None:
                break
            failing = simpler
        return failing

    def _simplest_failing(
        self, failing: Failing, candidates: Sequence[ConformanceCase]
    ) -> Failing | None:
        """Return the first candidate that fails too, and not for a reason known already."""
        # On a fast engine try few at a time: usually one of the first fails. Where an engine
        # raises or dies, each failing case takes long, so begin with one; and where there are
        # hundreds of frames, so does each case.
        crashes = isinstance(failing.result, Crash)
        long = failing.case.messages > _LONG
        slow = self._jobs_are_slow() and not crashes
        step = self._runner.job if slow else 1 if crashes or long else _FEW
        start = 0
        while start < len(candidates):
            found = self._judge.first_failing(candidates[start : start + step], failing)
            if found is not None or self._runner.ended:
                return found
            start += step
            step *= 2 if crashes or long else 1
        return None

    def _jobs_are_slow(self) -> bool:
        return self._runner.seconds_a_job > _SLOW_JOB
