"""The search: generate, run in jobs, compare; then reduce what failed and find whom to blame."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from wallaroo.engine import Engine, Isolation
from wallaroo.trace import Trace
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.cases.reducing import projections, reductions, size
from wallaroo_conformance.cases.strategies import Tone
from wallaroo_conformance.cases.tour import tour
from wallaroo_conformance.judge.differences import (
    Crash,
    Kind,
    Result,
    differences,
    end_of,
    readable_result,
)
from wallaroo_conformance.judge.divergences import DIVERGENCES, Divergence, known
from wallaroo_conformance.judge.law import Law
from wallaroo_conformance.judge.laws import ANSWERS, LAWS, blame, exercised
from wallaroo_conformance.judge.metamorphic import RELATIONS, Variant
from wallaroo_conformance.judge.oracle import Meaning, Oracle, reference_oracle
from wallaroo_conformance.judge.results import Failure, LawResult, fits
from wallaroo_conformance.search.running import MOST_CASES_A_JOB, REFUSED, Runner

MOST_FAILURES = 12
"""Failures that a report holds at most."""

_MOST_FAILING = 64  # failing cases that are kept, the smallest
_ENOUGH_BEYOND = 4  # cases beyond an engine to believe that all of that kind are
_DEAR_JOB = 0.25  # seconds
_FEW = 16
_FIRST_JOB = 256
_FIRST_JOB_OF_FEW = 32
_MOST_STEPS = 60  # of a reduction; none has been seen to need half as many
_MOST_PROJECTIONS = 512
_MOST_CANDIDATES = 192  # of a reduction's step, the simplest

_BOTH: frozenset[Isolation] = frozenset({"isolated", "trusting"})
_ISOLATED: frozenset[Isolation] = frozenset({"isolated"})
_TRUSTING: frozenset[Isolation] = frozenset({"trusting"})
_TAME = {_BOTH: 1 / 4, _ISOLATED: 0.0, _TRUSTING: 7 / 8}
"""The share of cases in `trusting` mode with applications that it is promised to, by the modes an
engine has. One that has no other mode gets some that it may be promised to, as it happens."""
_TOURS: Mapping[frozenset[Isolation], tuple[Tone, ...]] = {
    _BOTH: ("any", "tame"),
    _ISOLATED: ("any",),
    _TRUSTING: ("tame",),
}


@dataclass(frozen=True)
class Profile:
    """How much is to be done.

    Args:
        name: of the profile.
        cases: cases to generate; `None`: until the time is over.
        seconds: time to generate for; `None`: until the cases are done.
        variant_every: one case in so many gets a second run for a metamorphic relation.
        top_up: most cases that are looked through for laws which none has exercised yet.
    """

    name: str
    cases: int | None
    seconds: float | None = None
    variant_every: int = 4
    top_up: int = 20_000


PROFILES: Mapping[str, Profile] = {
    "dev": Profile("dev", 1_000),
    "ci": Profile("ci", 5_000),
    "nightly": Profile("nightly", None, 3_600.0),
}


@dataclass(frozen=True)
class Progress:
    """Where a check stands, for those who watch it.

    Args:
        stage: what is being done.
        done: cases run.
        planned: cases to run, `None` if time decides.
        kept: cases that exercised each law and held, by law id.
        broken: ids of the laws found broken so far.
        failing: cases that failed and are still to be explained.
    """

    stage: str
    done: int
    planned: int | None
    kept: Mapping[str, int]
    broken: Sequence[str]
    failing: int


Watcher = Callable[[Progress], None]


@dataclass
class _Failing:
    """A case on which the engine differs from the reference."""

    meaning: Meaning
    kinds: frozenset[Kind]
    result: Result

    @property
    def case(self) -> ConformanceCase:
        return self.meaning.case


class Search:
    """One check of one engine against the reference.

    Args:
        engine: who is checked.
        oracle: says what is right; the reference engine's unless told otherwise.
        seed: of the generation.
        job: most cases in one engine job.
        options: the engine's own thresholds.
        divergences: differences that are known and accepted.
        today: the day, for those.
        watcher: is told how far things are.
        give_up_early: stop generating after the first cases that fail.
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
        give_up_early: bool = False,
    ) -> None:
        self.runner = Runner(engine, job=job, options=options)
        self.oracle = oracle or reference_oracle()
        self.seed = seed
        self.kept: Counter[str] = Counter()
        self.differed: Counter[str] = Counter()
        self.unsupported: Counter[str] = Counter()
        self.why_unsupported: dict[str, str] = {}
        self.generated = 0
        self.supported = 0  # of these, cases that are not beyond the engine
        self.failing: list[_Failing] = []
        self.failures: list[Failure] = []
        self.blamed: list[Law] = []
        self._divergences = divergences
        self._today = today or date.today()
        self.refused: list[ConformanceCase] = []
        self._watcher = watcher or (lambda progress: None)
        self._early = give_up_early
        self._begun = time.monotonic()
        self.first_failure: float | None = None
        """Seconds from the search's beginning to the first case that failed."""
        self._chunks = 0  # of cases generated
        self._planned: int | None = None

    def replay(self, cases: Iterable[ConformanceCase]) -> None:
        """Run cases that are given, such as stored counterexamples."""
        self._tell("stored cases")
        self._try(list(cases))

    def search(self, profile: Profile) -> None:
        """Generate cases and run them until the profile's budget is spent.

        Called again, it goes on where it gave up early.
        """
        self._planned = profile.cases
        begun = time.monotonic()
        while not (self._early and self.failing):
            # A job has a price of its own, and most faults show in few cases: jobs begin small.
            first = _FIRST_JOB_OF_FEW if self._early else _FIRST_JOB
            wanted = min(self.runner.job, first << self._chunks)
            if self._chunks == 1:
                wanted = len(self._tour())
            if profile.cases is not None:
                wanted = min(wanted, profile.cases - self.generated)
            late = profile.seconds is not None and time.monotonic() - begun > profile.seconds
            if wanted <= 0 or (late and self._chunks > 0):
                break
            self._tell("searching")
            # Most faults show in the first few cases that chance brings; then comes the tour.
            if self._chunks == 1:
                cases = self._tour()[:wanted]
            else:
                cases = self._generate(wanted, self._chunks)
            self._chunks += 1
            self._try(cases, profile.variant_every)

    def top_up(self, profile: Profile, wanted: frozenset[str]) -> None:
        """Look for cases that exercise the laws in `wanted` which none has exercised yet."""
        number = 10_000
        looked = 0
        while not self.failing and looked < profile.top_up:
            missing = [
                law
                for law in LAWS
                if law.id in wanted and not self.kept[law.id] + self._beyond(law)
            ]
            if not missing:
                return
            self._tell("topping up")
            # Laws that chance has not brought are mostly those that no tame case exercises.
            cases = generate(min(self.runner.job, _FIRST_JOB), self._seed_of(number), "any")
            number += 1
            looked += len(cases)
            useful = [
                one.case
                for one in self.oracle.ask(cases)
                if any(law.exercised_by(one.facts) for law in missing)
            ]
            self._try(useful[:32])

    def _beyond(self, law: Law) -> bool:
        return self.unsupported[law.id] >= _ENOUGH_BEYOND

    def explain(self, most: int = MOST_FAILURES) -> None:
        """Reduce failing cases until each that is left is explained by a law already blamed."""
        self.failing.sort(key=lambda one: size(one.case))
        while self.failing and len(self.failures) < most:
            self._tell("reducing")
            failure, law = self._explained(self.failing.pop(0))
            self.failures.append(failure)
            self.blamed.append(law)
            self.failing = [
                one for one in self.failing if not self._is_explained(one.meaning, one.kinds)
            ]

    def _is_explained(self, meaning: Meaning, kinds: frozenset[Kind]) -> bool:
        return any(law.explains(meaning.facts, kinds) for law in self.blamed)

    # -- one case ----------------------------------------------------------------------------

    def _generate(self, count: int, number: int) -> list[ConformanceCase]:
        chunk_seed = self._seed_of(number)
        tame = int(count * _TAME[self._modes()])
        cases = generate(count - tame, chunk_seed, "any") if tame < count else []
        return cases + (generate(tame, chunk_seed, "tame") if tame else [])

    def _seed_of(self, number: int) -> int:
        return self.seed * 1_000_003 + number

    def _tour(self) -> list[ConformanceCase]:
        modes = self._modes()
        return [case for tone in _TOURS[modes] for case in tour(tone)]

    def _modes(self) -> frozenset[Isolation]:
        return self.runner.capabilities.isolation & _BOTH or _ISOLATED

    def _try(self, cases: Sequence[ConformanceCase], variant_every: int = 0) -> None:
        adapted = [self.runner.adapted(case) for case in cases]
        self.generated += len(adapted)
        able: list[Meaning] = []
        for meaning in self.oracle.ask(adapted):
            beyond = self._why_not(meaning)
            if beyond is None:
                able.append(meaning)
                continue
            if beyond.startswith(REFUSED) and len(self.refused) < _MOST_FAILING:
                self.refused.append(meaning.case)
            for law in exercised(meaning.facts):
                self.unsupported[law.id] += 1
                self.why_unsupported.setdefault(law.id, beyond)
        self.supported += len(able)
        results = self.runner.run([meaning.case for meaning in able])
        for meaning, result in zip(able, results, strict=True):
            self._judge(meaning, result)
        if variant_every:
            self._try_variants(able, results, variant_every)

    def _why_not(self, meaning: Meaning) -> str | None:
        """Return why the engine need not run a case, or `None`."""
        if meaning.case.isolation == "trusting" and meaning.trace.findings:
            kind = meaning.trace.findings[0].kind.value
            return f"trusting mode is not promised to an application with findings ({kind})"
        beyond = self.runner.beyond(meaning.case)
        if beyond is None:
            engine = self.runner.engine.name
            return known(self._divergences, engine, meaning.case, meaning.facts, self._today)
        return beyond

    def _judge(self, meaning: Meaning, result: Result) -> None:
        kinds = differences(meaning.trace, result)
        if not kinds:
            for law in exercised(meaning.facts):
                self.kept[law.id] += 1
            return
        for law in exercised(meaning.facts):
            self.differed[law.id] += 1
        if self._is_explained(meaning, kinds):
            return
        if self.first_failure is None:
            self.first_failure = time.monotonic() - self._begun
        self.failing.append(_Failing(meaning, kinds, result))
        if len(self.failing) > 2 * _MOST_FAILING:
            self.failing.sort(key=lambda one: size(one.case))
            del self.failing[_MOST_FAILING:]

    def _try_variants(self, able: Sequence[Meaning], results: Sequence[Result], every: int) -> None:
        rng = random.Random(self.seed + self.generated)  # noqa: S311 - to choose, not to hide
        pairs: list[tuple[Meaning, Trace, Variant]] = []
        for meaning, result in list(zip(able, results, strict=True))[::every]:
            if not isinstance(result, Trace):
                continue
            offered = [relation.variant(meaning.observation, rng) for relation in RELATIONS]
            variants = [one for one in offered if one and self.runner.beyond(one.case) is None]
            if variants:
                pairs.append((meaning, result, rng.choice(variants)))
        meanings = self.oracle.ask([variant.case for _, _, variant in pairs])
        answers = self.runner.run([variant.case for _, _, variant in pairs])
        for (first, result, variant), second, answer in zip(pairs, meanings, answers, strict=True):
            failing = len(self.failing)
            if self._why_not(second) is None:
                self._judge(second, answer)
            relation = variant.relation
            if not isinstance(answer, Trace):
                continue
            if variant.agree(result, answer):
                self.kept[f"{relation.rule}/{relation.name}"] += 1
            elif len(self.failing) == failing and not differences(first.trace, result):
                # Both are what the reference says, and still they disagree: so it does itself.
                self.failures.append(
                    Failure(
                        rule=relation.rule,
                        law=relation.name,
                        says=relation.says,
                        cause="the reference breaks it too",
                        case=variant.case,
                        expected=result,
                        actual=answer,
                        may_be_same=bool(self.failures),
                    )
                )

    # -- reduction ---------------------------------------------------------------------------

    def _explained(self, failing: _Failing) -> tuple[Failure, Law]:
        jobs = self.runner.jobs
        reduced = self._reduced(failing)
        alone = self.runner.run_alone(reduced.case)
        isolated = bool(differences(reduced.meaning.trace, alone))
        ended = end_of(reduced.meaning.trace, reduced.result)
        law = blame(reduced.meaning.facts, reduced.kinds, ended)
        result = reduced.result
        if isinstance(result, Crash) and (result.refusal or not reduced.case.inputs):
            law = ANSWERS
        failure = Failure(
            *(law.rule, law.name, law.says, law.cause, reduced.case),
            expected=reduced.meaning.trace,
            actual=readable_result(alone if isolated else reduced.result),
            alone=isolated,
            jobs=self.runner.jobs - jobs,
            may_be_same=bool(self.failures),
        )
        return failure, law

    def _reduced(self, failing: _Failing) -> _Failing:
        if self.runner.seconds_a_job > _DEAR_JOB:
            small = projections(failing.case)[:_MOST_PROJECTIONS]
            failing = self._simplest_failing(small) or failing
        for _ in range(_MOST_STEPS):
            simpler = self._simplest_failing(reductions(failing.case)[:_MOST_CANDIDATES])
            if simpler is None:
                break
            failing = simpler
        return failing

    def _simplest_failing(self, candidates: Sequence[ConformanceCase]) -> _Failing | None:
        """Return the first candidate that fails too, and not for a reason known already."""
        # Where a job costs little, look at few at a time: mostly one of the first fails.
        job = self.runner.job if self.runner.seconds_a_job > _DEAR_JOB else _FEW
        for start in range(0, len(candidates), job):
            able = [
                meaning
                for meaning in self.oracle.ask(candidates[start : start + job])
                if self._why_not(meaning) is None
            ]
            results = self.runner.run([meaning.case for meaning in able])
            for meaning, result in zip(able, results, strict=True):
                kinds = differences(meaning.trace, result)
                if kinds and not self._is_explained(meaning, kinds):
                    return _Failing(meaning, kinds, result)
        return None

    def _tell(self, stage: str) -> None:
        self._watcher(
            Progress(
                stage,
                self.runner.cases,
                self._planned,
                self.kept,
                [law.id for law in self.blamed],
                len(self.failing),
            )
        )

    # -- what was found ----------------------------------------------------------------------

    def law_results(self, rules: str = "*") -> list[LawResult]:
        """Return what is known of each law whose rule fits the pattern."""
        stated = [(law.rule, law.name, law.says) for law in LAWS]
        stated += [(relation.rule, relation.name, relation.says) for relation in RELATIONS]
        return [self._law_result(*one) for one in stated if fits(one[0], rules)]

    def _law_result(self, rule: str, name: str, says: str) -> LawResult:
        law_id = f"{rule}/{name}"
        kept, beyond = self.kept[law_id], self.unsupported[law_id]
        note = self.why_unsupported.get(law_id, "")
        if any(failure.rule == rule and failure.law == name for failure in self.failures):
            return LawResult(rule, name, says, "broken", kept, beyond)
        if rule in self.runner.capabilities.unsupported_rules:
            return LawResult(rule, name, says, "unsupported", kept, beyond, "by its own account")
        if kept:
            return LawResult(rule, name, says, "kept", kept, beyond)
        if beyond and not self.differed[law_id]:
            return LawResult(rule, name, says, "unsupported", 0, beyond, note)
        hidden = ", ".join(law.id for law in self.blamed)
        return LawResult(
            *(rule, name, says, "not exercised", 0, beyond), f"hidden by {hidden}" if hidden else ""
        )
