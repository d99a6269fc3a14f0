"""Judging: runs cases on engine and reference, and notes the differences.

A case whose engine cannot or need not run it is *beyond* the engine: it is counted and not run.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import date
from typing import TypeGuard

from wallaroo.trace import Trace
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.judge.claims import Claims
from wallaroo_conformance.judge.differences import Crash, Result, differences
from wallaroo_conformance.judge.divergences import Divergence, known
from wallaroo_conformance.judge.law import Law
from wallaroo_conformance.judge.metamorphic import RELATIONS, Variant
from wallaroo_conformance.judge.oracle import Meaning, Oracle
from wallaroo_conformance.judge.results import Failure
from wallaroo_conformance.judge.timed_observing import TimedObservation
from wallaroo_conformance.judge.timed_relations import TIMED_RELATIONS
from wallaroo_conformance.search.findings import Failing, Findings
from wallaroo_conformance.search.running import REFUSED, Runner


class Judge:
    """Runs cases on an engine and compares what comes out with the reference.

    Args:
        runner: runs cases on the engine.
        oracle: says what is right.
        findings: where everything is noted.
        divergences: differences that are known and accepted.
        today: the day, for those.
    """

    def __init__(
        self,
        runner: Runner,
        oracle: Oracle,
        findings: Findings,
        divergences: tuple[Divergence, ...],
        today: date,
    ) -> None:
        self.runner = runner
        self.oracle = oracle
        self.findings = findings
        self.claims = Claims(runner.capabilities)
        self._divergences = divergences
        self._today = today

    def adapted(self, case: ConformanceCase) -> ConformanceCase:
        """Return the case in a form that the engine can run."""
        return self.claims.adapted(self.runner.adapted(case))

    def try_cases(
        self, cases: Sequence[ConformanceCase], *, vary: int = 0, rng: random.Random | None = None
    ) -> list[tuple[Meaning, Result]]:
        """Run cases, note the outcomes, and return those that were run, with their results.

        Cases that the engine had no time for are not noted at all.

        Args:
            cases: the cases.
            vary: of one case in so many a variant is run too, for a relation between the two; of
                timed cases twice as often, since they have more relations. 0: of none. Both are
                given to the engine at once: some engines take seconds for each job.
            rng: chooses the variants; needed if there are some.
        """
        adapted = [self.adapted(case) for case in cases]
        given: list[Meaning] = []
        for meaning in self.oracle.ask(adapted):
            beyond = self._beyond(meaning)
            if beyond is None:
                given.append(meaning)
            else:
                refused = beyond.startswith(REFUSED)
                self.findings.add_beyond(meaning, beyond, refused=refused)
        pairs = self._pairs(_some(given, vary), rng) if rng is not None and vary else []
        varied = self.oracle.ask([variant.case for _, variant in pairs])
        results = self.runner.run([meaning.case for meaning in (*given, *varied)])
        own, others = results[: len(given)], results[len(given) :]
        self.findings.generated += len(adapted) - (len(given) - len(own))
        answered: list[tuple[Meaning, Result]] = []
        for meaning, result in zip(given, own, strict=False):
            if self._refused(result):
                why = f"{REFUSED}{result.refusal}"
                self.findings.add_beyond(meaning, why, refused=False)
            else:
                answered.append((meaning, result))
        self.findings.supported += len(answered)
        for meaning, result in answered:
            self._note(meaning, result)
        answers = {meaning.case: result for meaning, result in answered}
        for (first, variant), second, result in zip(pairs, varied, others, strict=False):
            answer = answers.get(first.case)
            if isinstance(answer, Trace):
                self._compare(first, answer, variant, second, result)
        return answered

    def offering(
        self, cases: Sequence[ConformanceCase], relations: Collection[str]
    ) -> list[ConformanceCase]:
        """Return the cases with a variant for one of the relations, which are given by their ids.

        Args:
            cases: the cases.
            relations: the relations' ids.
        """
        rng = random.Random(0)  # noqa: S311 - no secret
        return [
            meaning.case
            for meaning in self.oracle.ask([self.adapted(case) for case in cases])
            if self._beyond(meaning) is None
            and any(one.relation.id in relations for one in self._variants(meaning, rng))
        ]

    def _pairs(
        self, meanings: Sequence[Meaning], rng: random.Random
    ) -> list[tuple[Meaning, Variant]]:
        """Return cases, each with a variant for the relation that was compared least often."""
        planned = Counter(self.findings.kept)
        pairs: list[tuple[Meaning, Variant]] = []
        for meaning in meanings:
            variants = self._variants(meaning, rng)
            if variants:
                rng.shuffle(variants)
                variant = min(variants, key=lambda one: planned[one.relation.id])
                planned[variant.relation.id] += 1
                pairs.append((meaning, variant))
        return pairs

    def _variants(self, meaning: Meaning, rng: random.Random) -> list[Variant]:
        """Return the variants of a case that the engine can run, one for each relation."""
        timed = isinstance(meaning.observation, TimedObservation)
        offered = [
            relation.variant(meaning.observation, rng)
            for relation in (TIMED_RELATIONS if timed else RELATIONS)
        ]
        return [one for one in offered if one and self._may_vary(one)]

    def first_failing(
        self, cases: Sequence[ConformanceCase], like: Failing | None = None
    ) -> Failing | None:
        """Return the first case that fails for a reason not yet known; note nothing.

        Args:
            cases: the cases.
            like: pass over those which do not differ in a way in which this one does.
        """
        given = [meaning for meaning in self.oracle.ask(cases) if self._beyond(meaning) is None]
        results = self.runner.run([meaning.case for meaning in given])
        for meaning, result in zip(given, results, strict=False):
            failing = self.failing(meaning, result)
            if failing is None or (like is not None and not failing.differs_like(like)):
                continue
            if not self.findings.is_explained(failing):
                return failing
        return None

    def failing(self, meaning: Meaning, result: Result) -> Failing | None:
        """Return how an answer is wrong, or `None`; a rule that is not claimed cannot be broken."""
        if self._refused(result):
            return None
        compared = self.claims.comparable(meaning.trace, result)
        kinds = differences(*compared)
        return Failing(meaning, kinds, result) if kinds else None

    def _refused(self, result: Result) -> TypeGuard[Crash]:
        """Whether an answer is the refusal of an engine that refuses in `run`."""
        known = self.runner.capabilities.refuses_in_run
        return known and isinstance(result, Crash) and result.refusal != ""

    def _may_vary(self, variant: Variant) -> bool:
        """Whether the engine can run a variant, and claims what the relation says."""
        if self.claims.unasked(variant.relation) is not None:
            return False
        return self.runner.beyond(variant.case) is None

    def _beyond(self, meaning: Meaning) -> str | None:
        """Return why the engine cannot or need not run a case, or `None`."""
        if meaning.case.isolation == "trusting" and meaning.trace.findings:
            kind = meaning.trace.findings[0].kind.value
            return f"trusting mode is not promised to an application with findings ({kind})"
        case = meaning.case
        if case.isolation == "trusting" and case.timed and case.changed_by_codec:
            return (
                "trusting mode copies as often as it likes, which a codec that changes values shows"
            )
        beyond = self.claims.beyond(meaning.case, meaning.trace, meaning.facts)
        beyond = beyond or self.runner.beyond(meaning.case)
        if beyond is None:
            engine = self.runner.engine.name
            return known(self._divergences, engine, meaning.case, meaning.facts, self._today)
        return beyond

    def _note(self, meaning: Meaning, result: Result) -> None:
        failing = self.failing(meaning, result)
        if self._refused(result):
            return
        if failing is None:
            self.findings.add_kept(meaning)
        else:
            self.findings.add_failing(failing)

    def _compare(
        self, first: Meaning, answer: Trace, variant: Variant, second: Meaning, result: Result
    ) -> None:
        before = len(self.findings.failing)
        if self._beyond(second) is None:
            self._note(second, result)
        if not isinstance(result, Trace):
            return
        relation = variant.relation
        one, other = self.claims.comparable(answer, result)
        if isinstance(other, Trace) and variant.agree(one, other):
            self.findings.kept[relation.id] += 1
        elif len(self.findings.failing) == before and self.failing(first, answer) is None:
            # Both answers are the reference's, and still they disagree: the reference is wrong.
            self.findings.failures.append(
                Failure(
                    (Law(relation.rule, relation.name, relation.says),),
                    variant.case,
                    expected=answer,
                    actual=result,
                    text="both traces are those of the reference, which breaks it too",
                    may_be_same=bool(self.findings.failures),
                )
            )


def _some(meanings: Sequence[Meaning], every: int) -> list[Meaning]:
    """Return one case in `every`; of timed cases one in half as many."""
    timed = [one for one in meanings if one.case.timed]
    plain = [one for one in meanings if not one.case.timed]
    return [*plain[::every], *timed[:: max(every // 2, 1)]]
