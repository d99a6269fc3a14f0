"""Explaining: a failing case is reduced, and the law that its engine breaks is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wallaroo_conformance.cases.either import (
    AnyCase,
    exchanged,
    projections,
    reductions,
    with_a_message,
)
from wallaroo_conformance.cases.timed.case import TimedCase
from wallaroo_conformance.judge.blaming import Seen, blame
from wallaroo_conformance.judge.differences import Crash, end_of, readable_result
from wallaroo_conformance.judge.law import Law
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
_MOST_ASKED = 2  # further failing cases that are reduced to learn the law of one
_MOST_CANDIDATES = 192  # of a reduction's step, the simplest


def _says_less(failing: Failing) -> tuple[object, ...]:
    """Return what orders failing cases: the one that says most about its cause comes first."""
    timed = isinstance(failing.case, TimedCase)
    return timed, not failing.evidence.of_content, failing.size


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
        """Take out the smallest failing case, if possible of those that say most.

        A case without graphs, keys and time shows that a rule of the first part is broken. A timed
        case that fails for the same reason does not, and may be smaller. Where content differs, the
        cause is nearer than where only what dead letters tell does.
        """
        smallest = min(self._findings.failing, key=_says_less)
        self._findings.failing.remove(smallest)
        return smallest

    def as_it_is(self, case: AnyCase) -> Failure | None:
        """Return the failure that one case shows without being reduced, or `None`; note nothing."""
        failing = self._judge.first_failing([self._judge.adapted(case)])
        return (
            None if failing is None else self._explained(failing, self._runner.jobs, ask=False)[0]
        )

    def _explained(
        self, reduced: Failing, jobs: int, *, cut_short: bool = False, ask: bool = True
    ) -> tuple[Failure, Law]:
        # Once more, if there is time: the first time there may have been others in its job.
        alone = next(iter(self._runner.run([reduced.case])), reduced.result)
        isolated = self._judge.failing(reduced.meaning, alone) is not None
        law = self._law(reduced, ask=not cut_short and ask)
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

    def _simplest_failing(self, failing: Failing, candidates: Sequence[AnyCase]) -> Failing | None:
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

    def _law(self, reduced: Failing, *, ask: bool = False) -> Law:
        """Return the law that a reduced case breaks.

        Args:
            reduced: the case.
            ask: reduce some of the failing cases too that the law does not explain.
        """
        result = reduced.result
        if isinstance(result, Crash) and (result.refusal or self._cannot_run(reduced)):
            return ANSWERS
        ended = end_of(reduced.meaning.trace, result)
        findings = self._findings
        others = [failing.evidence for failing in findings.failing]
        exchanged = [failing.evidence for failing in self._exchanged(reduced)]
        seen = Seen(others, findings.kept, findings.differed, exchanged=exchanged)
        law = blame(reduced.evidence, ended, seen)
        apart: list[Law] = []
        most = 1 if self._jobs_are_slow() else _MOST_ASKED
        while ask and len(seen.reduced) < most:
            failing = self._unexplained(reduced, [law, *apart])
            if failing is None:
                break
            other = self._reduced(failing)
            if self._runner.ended:
                break
            seen = replace(seen, reduced=[*seen.reduced, other.evidence])
            law = blame(reduced.evidence, ended, seen)
            apart.append(blame(other.evidence, end_of(other.meaning.trace, other.result)))
        return law

    def _cannot_run(self, reduced: Failing) -> bool:
        """Whether a case fails without any record, and with one: whatever the input."""
        if reduced.case.input_log or self._runner.ended:
            return False
        return self._judge.first_failing([with_a_message(reduced.case)]) is not None

    def _exchanged(self, reduced: Failing) -> list[Failing]:
        """Return the cases about as plain as a reduced one that fail too."""
        if self._runner.ended or (isinstance(reduced.result, Crash) and self._jobs_are_slow()):
            return []
        return self._judge.all_failing(exchanged(reduced.case), reduced)

    def _unexplained(self, reduced: Failing, laws: Sequence[Law]) -> Failing | None:
        """Return the failing case that says most of those which no law explains; `None`: none."""
        if isinstance(reduced.result, Crash):
            return None
        found = [
            one
            for one in self._findings.failing
            if isinstance(one.case, TimedCase) == isinstance(reduced.case, TimedCase)
            and one.evidence.of_content >= reduced.evidence.of_content
            and not isinstance(one.result, Crash)
            and not any(law.explains(one.evidence) for law in laws)
        ]
        return min(found, key=_says_less, default=None)
