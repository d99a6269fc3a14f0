"""Explaining: a failing case is reduced, and the law that its engine breaks is named."""

from __future__ import annotations

from collections.abc import Sequence

from wallaroo_conformance.cases.either import AnyCase, projections, reductions
from wallaroo_conformance.judge.differences import Crash, end_of, readable_result
from wallaroo_conformance.judge.law import Law
from wallaroo_conformance.judge.laws import ANSWERS, blame
from wallaroo_conformance.judge.results import Failure
from wallaroo_conformance.search.findings import Failing, Findings
from wallaroo_conformance.search.judging import Judge
from wallaroo_conformance.search.running import Runner

_SLOW_JOB = 0.25  # seconds
_FEW = 16
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

    def explain_smallest(self) -> None:
        """Make a failure of the smallest failing case; those that it explains are dropped."""
        jobs = self._runner.jobs
        with self._runner.reducing():
            reduced = self._reduced(self._smallest())
            failure, law = self._explained(reduced, jobs, cut_short=self._runner.ended)
        self._findings.add_failure(failure, law)

    def show_smallest(self) -> None:
        """Make a failure of the smallest failing case without reducing it."""
        smallest, jobs = self._smallest(), self._runner.jobs
        with self._runner.reducing():
            failure, law = self._explained(smallest, jobs, cut_short=True)
        self._findings.add_failure(failure, law)

    def _smallest(self) -> Failing:
        """Take out the smallest failing case, if possible of those in which content differs."""
        smallest = min(
            self._findings.failing, key=lambda one: (not one.evidence.of_content, one.size)
        )
        self._findings.failing.remove(smallest)
        return smallest

    def as_it_is(self, case: AnyCase) -> Failure | None:
        """Return the failure that one case shows without being reduced, or `None`; note nothing."""
        failing = self._judge.first_failing([self._judge.adapted(case)])
        return None if failing is None else self._explained(failing, self._runner.jobs)[0]

    def _explained(
        self, reduced: Failing, jobs: int, *, cut_short: bool = False
    ) -> tuple[Failure, Law]:
        # Once more, if there is time: the first time there may have been others in its job.
        alone = next(iter(self._runner.run([reduced.case])), reduced.result)
        isolated = self._judge.failing(reduced.meaning, alone) is not None
        law = self._law(reduced)
        failure = Failure(
            *(law.rule, law.name, law.says, law.cause, reduced.case),
            expected=reduced.meaning.trace,
            actual=readable_result(alone if isolated else reduced.result),
            alone=isolated,
            cut_short=cut_short,
            jobs=self._runner.jobs - jobs,
            may_be_same=bool(self._findings.failures),
        )
        return failure, law

    def _reduced(self, failing: Failing) -> Failing:
        """Reduce a case; if content differs in it, it must not come down to what letters tell."""
        content = failing.evidence.of_content
        if self._jobs_are_slow():
            parts = projections(failing.case)[:_MOST_PROJECTIONS]
            failing = self._simplest_failing(failing, parts, content=content) or failing
        for _ in range(_MOST_STEPS):
            candidates = reductions(failing.case)[:_MOST_CANDIDATES]
            simpler = self._simplest_failing(failing, candidates, content=content)
            if simpler is None:
                break
            failing = simpler
        return failing

    def _simplest_failing(
        self, failing: Failing, candidates: Sequence[AnyCase], *, content: bool
    ) -> Failing | None:
        """Return the first candidate that fails too, and not for a reason known already."""
        # On a fast engine try few at a time: usually one of the first fails. Where an engine
        # raises or dies, each failing case takes long, so begin with one.
        crashes = isinstance(failing.result, Crash)
        step = 1 if crashes else self._runner.job if self._jobs_are_slow() else _FEW
        start = 0
        while start < len(candidates):
            found = self._judge.first_failing(candidates[start : start + step], content=content)
            if found is not None or self._runner.ended:
                return found
            start += step
            step *= 2 if crashes else 1
        return None

    def _jobs_are_slow(self) -> bool:
        return self._runner.seconds_a_job > _SLOW_JOB

    def _law(self, reduced: Failing) -> Law:
        """Return the law that a reduced case breaks."""
        result = reduced.result
        if isinstance(result, Crash) and (result.refusal or not reduced.case.input_log):
            return ANSWERS
        ended = end_of(reduced.meaning.trace, reduced.result)
        others = [failing.evidence for failing in self._findings.failing]
        return blame(reduced.evidence, ended, others)
