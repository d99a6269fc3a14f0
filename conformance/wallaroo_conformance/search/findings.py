"""What a search has found so far: counts by law, failing cases, and the failures they led to."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Set
from dataclasses import dataclass

from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.reducing import size
from wallaroo_conformance.judge.claims import Claims
from wallaroo_conformance.judge.differences import Kind, Result, says_something
from wallaroo_conformance.judge.law import Law, LawResult
from wallaroo_conformance.judge.laws import LAWS, laws_of
from wallaroo_conformance.judge.oracle import Meaning
from wallaroo_conformance.judge.results import Failure, fits
from wallaroo_conformance.search.running import REFUSED

_MOST_FAILING = 64  # failing cases that are kept, the smallest
_MOST_REFUSED = 64


@dataclass(frozen=True)
class Failing:
    """A case on which the engine differs from the reference."""

    meaning: Meaning
    kinds: frozenset[Kind]
    result: Result

    @property
    def case(self) -> ConformanceCase:
        """The case."""
        return self.meaning.case

    def differs_like(self, other: Failing) -> bool:
        """Whether it differs in a way in which another case differs too."""
        return bool(self.kinds & other.kinds)

    @property
    def size(self) -> tuple[int, ...]:
        """How complicated the case is."""
        return size(self.case)


class Findings:
    """What a search has found so far.

    Args:
        claims: of the engine.
    """

    def __init__(self, claims: Claims) -> None:
        self.claims = claims
        self._begun = time.monotonic()
        self.first_failure: float | None = None
        """Seconds from the search's beginning to the first case that failed."""
        self.generated = 0
        self.agreed = 0
        """Cases of which something came, on which the engine agrees with the reference."""
        self.stored = 0
        """Of these, cases that were given: they come from a store, and no budget counts them."""
        self.supported = 0
        """Of the generated cases, those that the engine was given."""
        self.kept: Counter[str] = Counter()
        """Cases that exercised a law and held, by the law's id."""
        self.differed: Counter[str] = Counter()
        """Cases that exercised a law and failed, by the law's id."""
        self.beyond: Counter[str] = Counter()
        """Cases that would exercise a law and that the engine was not given, by the law's id."""
        self.why_beyond: dict[str, str] = {}
        self.refused: list[ConformanceCase] = []
        """Cases whose application the engine's `check` refuses; not all of them."""
        self.failing: list[Failing] = []
        """Failing cases that no failure explains; not all of them."""
        self.failures: list[Failure] = []

    def add_beyond(self, meaning: Meaning, why: str) -> None:
        """Note that a case is beyond the engine, and why."""
        for law in meaning.exercised:
            self.beyond[law] += 1
            before = self.why_beyond.setdefault(law, why)
            # A refusal says more than what else a case needs that the engine does not claim.
            if why.startswith(REFUSED) and not before.startswith(REFUSED):
                self.why_beyond[law] = why

    def add_refused(self, case: ConformanceCase) -> None:
        """Note a case whose application the engine's `check` refuses."""
        if len(self.refused) < _MOST_REFUSED:
            self.refused.append(case)

    def add_kept(self, meaning: Meaning) -> None:
        """Note a case on which the engine agrees with the reference.

        It shows that a law is kept only if something came of it that could be compared.
        """
        if says_something(meaning.trace):
            self.agreed += 1
            self.kept.update(meaning.exercised)

    def add_failing(self, failing: Failing) -> None:
        """Note a case on which the engine differs; keep it if no failure explains it."""
        if (excuse := self.excuse(failing)) is not None:
            self.add_beyond(failing.meaning, excuse)
            return
        self.differed.update(failing.meaning.exercised)
        if self.is_explained(failing):
            return
        if self.first_failure is None:
            self.first_failure = time.monotonic() - self._begun
        self.failing.append(failing)
        if len(self.failing) > 2 * _MOST_FAILING:
            self.failing.sort(key=lambda each: each.size)
            del self.failing[_MOST_FAILING:]

    def take_smallest(self) -> Failing | None:
        """Take out the failing case that is explained first: rows before graphs.

        A fault that shows without windows and keys is seen more easily in a case without them.
        """
        if not self.failing:
            return None
        smallest = min(self.failing, key=lambda one: (one.case.form == "pipelines", one.size))
        self.failing.remove(smallest)
        return smallest

    def excuse(self, failing: Failing) -> str | None:
        """Return why a difference is no fault: a law that the engine does not claim explains it."""
        law = self.claims.excuse(failing.meaning.exercised, failing.kinds)
        return None if law is None else f"a consequence of {law.rule}, which it does not claim"

    def add_failure(self, failure: Failure) -> None:
        """Note the failure of a failing case, and drop the failing cases that it explains."""
        self.failures.append(failure)
        self.failing = [failing for failing in self.failing if not self.is_explained(failing)]

    def failures_of(self, rules: str) -> list[Failure]:
        """Return the failures that name a rule which fits a pattern, filed under the first."""
        filed = [failure.filed(rules) for failure in self.failures]
        return [failure for failure in filed if fits(failure.rule, rules)]

    def is_explained(self, failing: Failing) -> bool:
        """Whether a case fails in the same way as one that is a failure already.

        It does if it exercises the law that the failure is filed under, and differs in something
        that this law speaks of. Then one fault may be behind both, and it is not shown again.
        """
        exercised, kinds = failing.meaning.exercised, failing.kinds
        by_failure = any(failure.laws[0].fits(exercised, kinds) for failure in self.failures)
        return by_failure or self.excuse(failing) is not None

    def laws_of(self, failing: Failing) -> tuple[Law, ...]:
        """Return the laws that a failing case may have broken, the most particular first."""
        return laws_of(failing.meaning.exercised, failing.kinds, self.kept + self.differed)

    def law_results(self, rules: str) -> list[LawResult]:
        """Return the result of each law of the rules that fit a pattern."""
        broken = {failure.laws[0].id for failure in self.failures_of(rules)}
        laws = [law for law in LAWS if fits(law.rule, rules)]
        return [self._law_result(law, broken) for law in laws]

    def _law_result(self, law: Law, broken: Set[str]) -> LawResult:
        kept, beyond = self.kept[law.id], self.beyond[law.id]
        if law.id in broken:
            return law.result("broken", kept, beyond)
        if (why := self.claims.unclaimed(law)) is not None:
            return law.result("unsupported", kept, beyond, why)
        if kept:
            return law.result("kept", kept, beyond)
        if beyond and not self.differed[law.id]:
            return law.result("unsupported", 0, beyond, self.why_beyond[law.id])
        hidden = ", ".join(sorted(broken))
        return law.result("not exercised", 0, beyond, f"hidden by {hidden}" if hidden else "")
