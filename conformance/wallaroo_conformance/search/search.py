"""The search: generation, judging and explaining, put together for one engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from wallaroo.engine import Engine
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.deadline import Deadline
from wallaroo_conformance.judge.claims import Claims
from wallaroo_conformance.judge.oracle import oracle_for
from wallaroo_conformance.search.budget import Budget, Check, Outcome
from wallaroo_conformance.search.explaining import failure_of
from wallaroo_conformance.search.findings import Findings
from wallaroo_conformance.search.generation import Generation
from wallaroo_conformance.search.judging import Judge
from wallaroo_conformance.search.running import Runner

MOST_FAILURES = 16
"""Failures that a report holds at most."""

_AFTERWARDS = 1 / 4
"""The share of a budget's time that is kept for reducing cases that fail. If none does, the search
goes on."""
_MOSTLY_REFUSED = 4  # an engine that takes less than one in so many graphs gets no more of them
_FEW = 16  # graphs


@dataclass(frozen=True)
class Progress:
    """Where a check stands, for those who watch it.

    Args:
        stage: what is being done.
        cases: those that were run.
        seconds: seconds since the check's time began.
        budget: how much is to be done.
        failing: cases that failed and are still to be explained.
    """

    stage: str
    cases: int
    seconds: float
    budget: Budget
    failing: int

    @property
    def share(self) -> float:
        """How much of the budget is spent: of its cases or its seconds, whichever is more."""
        planned = (self.cases, self.budget.cases), (self.seconds, self.budget.seconds)
        return min(max([done / most for done, most in planned if most], default=0.0), 1.0)

    def __str__(self) -> str:
        parts = [self.stage, f"{self.cases} cases"]
        if self.budget.cases is not None:
            parts[1] = f"{self.cases} of {max(self.budget.cases, self.cases)} cases"
        if (most := self.budget.seconds) is not None:
            parts.append(f"{min(self.seconds, most):.0f} of {most:g} s")
        return ", ".join([*parts, f"{self.failing} failing"])


Watcher = Callable[[Progress], None]


class Search:
    """One check of one engine against the reference.

    Args:
        engine: the engine under check.
        check: what is asked for; its time begins now.
        watcher: is called with the progress.
        clock: of the check's time, in seconds.
    """

    def __init__(
        self,
        engine: Engine,
        check: Check = Check(),  # noqa: B008 - it cannot be changed
        *,
        watcher: Watcher | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.check = check
        self.oracle = oracle_for(engine)
        self._deadline = Deadline(check.budget.seconds, clock)
        self.runner = Runner(engine, check.job, check.options, self._deadline)
        can = self.runner.capabilities
        self.findings = Findings(Claims(can))
        self._generation = Generation(
            check.seed, can.isolation, check.job, few=check.fail_fast, kafka=can.kafka
        )
        self._judge = Judge(self.runner, self.oracle, self.findings)
        self.problems: list[str] = []
        """Why a check's search ended early."""
        self._watcher = watcher or (lambda progress: None)
        self._drawn = self._taken = 0  # graphs so far

    def replay(self, cases: Iterable[ConformanceCase]) -> None:
        """Run cases that are given, such as stored counterexamples."""
        if self.runner.given_up:
            return
        self._tell("stored cases")
        before, given = self.findings.generated, list(cases)
        with self._deadline.keeping_back(_AFTERWARDS):
            self._judge.try_cases(given)
            run = self.findings.generated - before
            if run < len(given) and self._deadline.over:
                self.problems.append(
                    f"the time was over when {run} of {len(given)} stored cases had been run"
                )
        self.findings.stored += run

    def search(self) -> None:
        """Generate cases and run them until the budget is spent, or the engine is given up.

        Called again, it goes on where it gave up early.
        """
        begun = self._deadline.spent
        with self._deadline.keeping_back(_AFTERWARDS):
            self._search(begun)
        if not self.findings.failing:
            self._search(begun)

    def _search(self, begun: float) -> None:
        budget = self.check.budget
        while not (self._deadline.over or self.runner.given_up):
            if self.check.fail_fast and self.findings.failing:
                break
            spent = self._deadline.spent - begun
            generated = self.findings.generated - self.findings.stored
            left = budget.left(generated, spent, self._deadline.left)
            if left is not None and left <= 0:
                break
            self._tell("searching")
            refused = self._drawn >= _FEW and _MOSTLY_REFUSED * self._taken < self._drawn
            chunk = self._generation.next_chunk(left, simple=refused)
            before = self.findings.generated
            answered = self._judge.try_cases(chunk)
            if self.findings.generated - before == len(chunk):
                self._drawn += _graphs(chunk)
                self._taken += _graphs(answered)

    def find_failures(self) -> None:
        """Look for failures; with `fail_fast` for one of the rules that are asked for.

        Which rules a case exercises is known only when it has been reduced. If they are others, the
        search goes on.
        """
        fail_fast, before = self.check.fail_fast, -1
        while before < len(self.findings.failures):
            before = len(self.findings.failures)
            self.search()
            self.explain(1 if fail_fast else MOST_FAILURES)
            if not fail_fast or self.findings.failures_of(self.check.rules):
                break
            self.findings.first_failure = None  # it was another rule's

    def explain(self, most: int = MOST_FAILURES) -> None:
        """Make failures of failing cases until none is left unexplained, or there are `most`.

        If no case can be run any more, one is shown as it is.

        Args:
            most: failures of the rules that are asked for. What breaks others has to be explained
                too, to be known as theirs.
        """
        failures = self.findings.failures
        while self.findings.failing and len(self.findings.failures_of(self.check.rules)) < most:
            why = "" if len(failures) < MOST_FAILURES else f"{len(failures)} failures are enough"
            if self.runner.ended and failures:
                why = "the time was over" if self._deadline.over else "the engine had gone"
            if why:
                self.problems.append(
                    f"{len(self.findings.failing)} more cases that failed were not looked at: {why}"
                )
                break
            self._tell("reducing")
            self.explain_smallest()

    def explain_smallest(self, *, reduce: bool = True) -> None:
        """Make a failure of the smallest failing case, if there is one.

        Args:
            reduce: reduce it first; else it is shown as it is.
        """
        if failing := self.findings.take_smallest():
            self.findings.add_failure(failure_of(self._judge, failing, reduce=reduce))

    def outcome(self) -> Outcome:
        """Return the results of the laws, and the failures, of the rules that are asked for."""
        rules = self.check.rules
        return self.findings.law_results(rules), self.findings.failures_of(rules)

    def _tell(self, stage: str) -> None:
        """Tell the watcher what comes next, unless the user has asked to stop."""
        if self.check.stop is not None and self.check.stop.is_set():
            raise KeyboardInterrupt
        cases, failing = self.runner.cases, len(self.findings.failing)
        self._watcher(Progress(stage, cases, self._deadline.spent, self.check.budget, failing))


def _graphs(cases: Iterable[ConformanceCase]) -> int:
    return sum(case.form == "pipelines" for case in cases)
