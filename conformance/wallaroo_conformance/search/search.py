"""The search: generation, judging and explaining, put together for one engine."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from threading import Event
from typing import Any

from wallaroo.engine import Engine
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.deadline import Deadline
from wallaroo_conformance.judge.claims import DIVERGENCES, Divergence
from wallaroo_conformance.judge.differences import Result
from wallaroo_conformance.judge.law import Law
from wallaroo_conformance.judge.laws import LAWS, OF_TIMED_CASES
from wallaroo_conformance.judge.oracle import Meaning, Oracle, reference_oracle
from wallaroo_conformance.judge.relations import RELATIONS
from wallaroo_conformance.judge.results import Failure, LawResult, fits
from wallaroo_conformance.search.budget import Budget
from wallaroo_conformance.search.explaining import Explainer
from wallaroo_conformance.search.findings import Findings
from wallaroo_conformance.search.generation import Chunk, Generation
from wallaroo_conformance.search.judging import Judge
from wallaroo_conformance.search.running import MOST_CASES_A_JOB, Runner

MOST_FAILURES = 16
"""Failures that a report holds at most."""

_AFTERWARDS = 1 / 4
"""The share of a budget's time that is kept for what comes after the search: reducing cases that
fail, and looking for laws that no case has exercised. If there is neither, the search goes on."""
_OWN_CASES = 3 / 4
"""The share of a job's cases that are generated; the others are variants of some of them."""
_MOSTLY_REFUSED = 4  # an engine that takes less than one in this many timed cases gets few of them
_MOST_COMPARED = 16  # steps of the top-up for relations
_FEW = 16  # cases
_LOOKED_AT = 64  # cases, in such a step: they cost time even if none of them is of use
_MOST_USEFUL = 32  # of the cases looked through in one step of the top-up, those that are run


@dataclass(frozen=True)
class Progress:
    """Where a check stands, for those who watch it.

    Args:
        stage: what is being done.
        done: cases run.
        planned: cases to run, `None` if time decides.
        seconds: seconds since the check's time began.
        planned_seconds: how long they are at most; `None` if their number decides.
        kept: cases that exercised each law and held, by law id.
        broken: ids of the laws found broken so far.
        failing: cases that failed and are still to be explained.
    """

    stage: str
    done: int
    planned: int | None
    seconds: float
    planned_seconds: float | None
    kept: Mapping[str, int]
    broken: Sequence[str]
    failing: int


Watcher = Callable[[Progress], None]


class Search:
    """One check of one engine against the reference.

    Args:
        engine: the engine under check.
        oracle: says what is right; the reference engine's by default.
        seed: of the generation.
        job: most cases in one engine job.
        options: the engine's own thresholds.
        divergences: differences that are known and accepted.
        today: the day, for those.
        watcher: is called with the progress.
        wrong: operators of which the engine has others: no case with them is run.
        give_up_early: stop generating after the first cases that fail.
        stop: set from outside: raise `KeyboardInterrupt` before the next cases are run.
        clock: of a budget's time, in seconds.
    """

    def __init__(
        self,
        engine: Engine,
        oracle: Oracle | None = None,
        *,
        seed: int = 0,
        job: int = MOST_CASES_A_JOB,
        options: Mapping[str, Any] | None = None,
        divergences: tuple[Divergence, ...] = DIVERGENCES,
        today: date | None = None,
        watcher: Watcher | None = None,
        wrong: Collection[str] = (),
        give_up_early: bool = False,
        stop: Event | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.oracle = oracle or reference_oracle()
        self._deadline = Deadline(clock)
        self.runner = Runner(engine, job=job, options=options, deadline=self._deadline)
        self.findings = Findings()
        modes = self.runner.capabilities.isolation
        most = max(int(job * _OWN_CASES), 1)
        self._generation = Generation(seed, modes, most, few=give_up_early)
        self._judge = Judge(
            self.runner, self.oracle, self.findings, divergences, today or date.today(), wrong
        )
        for relation in RELATIONS:
            if (why := self._judge.claims.unasked(relation)) is not None:
                self.findings.unasked[relation.id] = why
        self.problems: list[str] = []
        """Why a check's search ended early."""
        self._explainer = Explainer(self._judge)
        self._seed = seed
        self._watcher = watcher or (lambda progress: None)
        self._early = give_up_early
        self._stop = stop or Event()
        self._budget: Budget | None = None

    def begin(self, budget: Budget) -> None:
        """Let the budget's time begin; else it begins with the search."""
        self._budget = budget
        self._deadline.set(budget.seconds)

    def replay(self, cases: Iterable[ConformanceCase]) -> None:
        """Run cases that are given, such as stored counterexamples."""
        if self.runner.given_up:
            return
        self._tell("stored cases")
        before, given = self.findings.generated, list(cases)
        with self._deadline.keeping_back(_AFTERWARDS):
            answered = self._judge.try_cases(given)
            run = self.findings.generated - before
            if run < len(given) and self._deadline.over:
                self.problems.append(
                    f"the time was over when {run} of {len(given)} stored cases had been run"
                )
        self.findings.stored += run
        self._cover(answered, dict.fromkeys([meaning.case for meaning, _ in answered], False))

    def failure_of(self, case: ConformanceCase) -> Failure | None:
        """Return the failure of one case as it is; the case is neither counted nor reduced."""
        return self._explainer.as_it_is(case)

    def search(self, budget: Budget) -> None:
        """Generate cases and run them until the budget is spent, or the engine is given up.

        Called again, it goes on where it gave up early.
        """
        if self._budget is None:
            self.begin(budget)
        begun = self._deadline.spent
        with self._deadline.keeping_back(_AFTERWARDS):
            self._search(budget, begun)
        if not self.findings.failing and not self._missing("*"):
            self._search(budget, begun)

    def _search(self, budget: Budget, begun: float) -> None:
        while not (self._early and self.findings.failing) and not self._ended:
            spent = self._deadline.spent - begun
            generated = self.findings.generated - self.findings.stored
            left = budget.left(generated, spent, self._deadline.left)
            if left is not None and left <= 0:
                break
            self._tell("searching")
            chunk = self._generation.next_chunk(left)
            before = self.findings.generated
            rng = random.Random(self._seed + before)  # noqa: S311 - no secret
            answered = self._judge.try_cases(list(chunk), vary=budget.variant_every, rng=rng)
            self._cover(answered, chunk)
            if self.findings.generated - before == len(chunk):
                self._spare_refused(list(chunk), answered)

    @property
    def _ended(self) -> bool:
        """Whether no more cases are looked for: the time is over, or the engine was given up."""
        return self._deadline.over or self.runner.given_up != ""

    def _cover(self, answered: Sequence[tuple[Meaning, Result]], chunk: Chunk) -> None:
        """Note which facts the cases answered by the engine have met."""
        drawn = {self._judge.adapted(case): by_chance for case, by_chance in chunk.items()}
        for meaning, _ in answered:
            self.findings.coverage.add(meaning.case, meaning.facts, drawn=drawn[meaning.case])

    def _spare_refused(
        self, cases: Sequence[ConformanceCase], answered: Sequence[tuple[Meaning, Result]]
    ) -> None:
        """Draw no more timed cases for an engine that refuses nearly all of them."""
        timed = sum(case.timed for case in cases)
        taken = sum(meaning.case.timed for meaning, _ in answered)
        if timed >= _FEW and _MOSTLY_REFUSED * taken < timed:
            self._generation.spare_timed = True
            self.findings.spared = self.findings.timed_beyond

    def top_up(self, budget: Budget, rules: str = "*") -> None:
        """Look for cases that exercise laws which no case has exercised yet.

        Args:
            budget: says how many cases are looked through.
            rules: pattern of the rules whose laws are wanted.
        """
        looked = 0
        while not self.findings.failing and looked < budget.top_up and not self._ended:
            missing = self._missing(rules)
            if not missing:
                break
            self._tell("topping up")
            cases = self._generation.more()
            looked += len(cases)
            useful = [
                meaning.case
                for meaning in self.oracle.ask(cases)
                if any(law.needs <= meaning.facts for law in missing)
            ]
            self._try_chosen(useful[:_MOST_USEFUL])
        for _ in range(_MOST_COMPARED):
            relations = self._uncompared(rules)
            if not relations or self._ended:
                break
            self._tell("comparing")
            cases = self._judge.offering(self._generation.more(_LOOKED_AT), relations)
            self._try_chosen(cases[:_MOST_USEFUL], vary=1)

    def _missing(self, rules: str) -> list[Law]:
        """Return the laws that no case has exercised yet, and that some case may exercise."""
        return [
            law
            for law in LAWS
            if fits(law.rule, rules)
            and law.rule not in self._judge.claims.unclaimed()
            and self.findings.unmet(law)
            and not (self.findings.spared and law.id in OF_TIMED_CASES)
        ]

    def _try_chosen(self, chosen: Sequence[ConformanceCase], *, vary: int = 0) -> None:
        rng = random.Random(self._seed)  # noqa: S311 - no secret
        answered = self._judge.try_cases(chosen, vary=vary, rng=rng)
        self._cover(answered, dict.fromkeys(chosen, False))

    def _uncompared(self, rules: str) -> set[str]:
        """Return the ids of the relations that have not been seen to hold yet."""
        if self.findings.failing or self.findings.failures_of(rules):
            return set()
        return {
            relation.id
            for relation in RELATIONS
            if relation.id not in self.findings.unasked
            and fits(relation.rule, rules)
            and not self.findings.kept[relation.id]
        }

    def explain(self, most: int = MOST_FAILURES, rules: str = "*") -> None:
        """Make failures of failing cases until none is left unexplained, or there are `most`.

        If no case can be run any more, one is shown as it is.

        Args:
            most: failures of the rules that are asked for.
            rules: pattern of these rules. What breaks others has to be explained too, to be known
                as theirs.
        """
        failures = self.findings.failures
        while self.findings.failing and len(self.findings.failures_of(rules)) < most:
            why = "" if len(failures) < MOST_FAILURES else f"{len(failures)} failures are enough"
            if self.runner.ended and failures:
                why = "the time was over" if self._deadline.over else "the engine had gone"
            if why:
                self.problems.append(
                    f"{len(self.findings.failing)} more cases that failed were not looked at: {why}"
                )
                break
            self._tell("reducing")
            self._explainer.explain_smallest()

    def show_unreduced(self) -> None:
        """Make a failure of the smallest failing case as it is: there is no time to reduce it."""
        if self.findings.failing:
            self._explainer.explain_smallest(reduce=False)

    def law_results(self, rules: str = "*") -> list[LawResult]:
        """Return the result of each law whose rule fits the pattern."""
        return self.findings.law_results(rules, self._judge.claims.unclaimed())

    def _tell(self, stage: str) -> None:
        """Tell the watcher what comes next, unless the user has asked to stop."""
        if self._stop.is_set():
            raise KeyboardInterrupt
        budget = self._budget
        self._watcher(
            Progress(
                stage,
                self.runner.cases,
                None if budget is None else budget.cases,
                0.0 if budget is None else self._deadline.spent,
                None if budget is None else budget.seconds,
                self.findings.kept,
                [failure.laws[0].id for failure in self.findings.failures],
                len(self.findings.failing),
            )
        )
