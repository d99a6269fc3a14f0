"""What a search has found so far: counts by law, failing cases, and the failures they led to."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.reducing import size
from wallaroo_conformance.judge.coverage import Coverage
from wallaroo_conformance.judge.differences import Kind, Result, says_something
from wallaroo_conformance.judge.law import Law
from wallaroo_conformance.judge.laws import LAWS, OF_TIMED_CASES, exercised, laws_of
from wallaroo_conformance.judge.oracle import Meaning
from wallaroo_conformance.judge.relations import RELATIONS
from wallaroo_conformance.judge.results import Failure, LawResult, fits

_MOST_FAILING = 64  # failing cases that are kept, the smallest
_MOST_REFUSED = 64
_ENOUGH_BEYOND = 4  # if this many cases of a law are beyond an engine, all of that law are


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
    """What a search has found so far."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self.first_failure: float | None = None
        """Seconds from the search's beginning to the first case that failed."""
        self.coverage = Coverage()
        """The facts that the cases answered by the engine have met."""
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
        self.timed_beyond = ""
        """Why the last timed case that it was not given, or has refused, is beyond the engine."""
        self.excusing: tuple[Law, ...] = ()
        """Laws of rules that the engine does not claim; differences they explain are not faults."""
        self.spared = ""
        """Why nearly all timed cases are beyond the engine; empty: they are not."""
        self.unasked: dict[str, str] = {}
        """By their ids, relations that the engine does not claim to keep, and why not."""
        self.refused: list[ConformanceCase] = []
        """Cases whose application the engine's `check` refuses; not all of them."""
        self.failing: list[Failing] = []
        """Failing cases that no failure explains; not all of them."""
        self.failures: list[Failure] = []

    def add_refused_relation(self, relation: str, why: str) -> None:
        """Note that a case, or its variant for a relation, is beyond the engine."""
        self.beyond[relation] += 1
        self.why_beyond.setdefault(relation, why)

    def add_beyond(self, meaning: Meaning, why: str, *, refused: bool) -> None:
        """Note a case that the engine is not given, and why not."""
        if refused and len(self.refused) < _MOST_REFUSED:
            self.refused.append(meaning.case)
        if meaning.case.timed:
            self.timed_beyond = why
        for law in exercised(meaning.facts):
            self.beyond[law.id] += 1
            self.why_beyond.setdefault(law.id, why)

    def add_kept(self, meaning: Meaning) -> None:
        """Note a case on which the engine agrees with the reference.

        It shows that a law is kept only if something came of it that could be compared.
        """
        if says_something(meaning.trace):
            self.agreed += 1
            self.kept.update(law.id for law in exercised(meaning.facts))

    def add_failing(self, failing: Failing) -> None:
        """Note a case on which the engine differs; keep it if no failure explains it."""
        excuse = self.excuse(failing)
        if excuse is not None:
            self.add_beyond(failing.meaning, excuse, refused=False)
            return
        self.differed.update(law.id for law in exercised(failing.meaning.facts))
        if self.is_explained(failing):
            return
        if self.first_failure is None:
            self.first_failure = time.monotonic() - self._begun
        self.failing.append(failing)
        if len(self.failing) > 2 * _MOST_FAILING:
            self.failing.sort(key=lambda each: each.size)
            del self.failing[_MOST_FAILING:]

    def take_smallest(self) -> Failing | None:
        """Take out the failing case that is explained first: plain ones before timed ones.

        A fault that shows without windows and keys is seen more easily in a case without them.
        """
        if not self.failing:
            return None
        smallest = min(self.failing, key=lambda failing: (failing.case.timed, failing.size))
        self.failing.remove(smallest)
        return smallest

    def excuse(self, failing: Failing) -> str | None:
        """Return why a difference is no fault: a law that the engine does not claim explains it."""
        for law in self.excusing:
            if law.fits(failing.meaning.facts, failing.kinds):
                return f"a consequence of {law.rule}, which it does not claim"
        return None

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
        laws = (*[failure.laws[0] for failure in self.failures], *self.excusing)
        return any(law.fits(failing.meaning.facts, failing.kinds) for law in laws)

    def laws_of(self, failing: Failing) -> tuple[Law, ...]:
        """Return the laws that a failing case may have broken, the most particular first."""
        return laws_of(failing.meaning.facts, failing.kinds, self.kept + self.differed)

    def unmet(self, law: str) -> bool:
        """Whether no case has shown a law or relation yet, and some may: not all are beyond it."""
        return not self.kept[law] and self.beyond[law] < _ENOUGH_BEYOND

    def law_results(self, rules: str, unsupported: Mapping[str, str]) -> list[LawResult]:
        """Return the result of each law.

        Args:
            rules: pattern of the rules that are asked for.
            unsupported: ids of the rules that the engine does not claim, and why.
        """
        stated = [(law.rule, law.name, law.says) for law in LAWS]
        stated += [(relation.rule, relation.name, relation.says) for relation in RELATIONS]
        broken = {failure.laws[0].id for failure in self.failures_of(rules)}
        results = [
            self._law_result(*law, unsupported, broken) for law in stated if fits(law[0], rules)
        ]
        return self._without_refused_rules(results)

    def _without_refused_rules(self, results: list[LawResult]) -> list[LawResult]:
        """Return results in which no law waits to be met whose rule the engine refuses.

        All cases that met the rule were refused, so no other law of it can be missing.
        """
        begun = {result.rule for result in results if result.status in ("kept", "broken")}
        refused = {
            result.rule: result.note for result in results if result.note.startswith("refused:")
        }
        return [
            replace(result, status="unsupported", note=refused[result.rule])
            if result.status == "not exercised"
            and result.rule in refused.keys() - begun
            and not self.differed[f"{result.rule}/{result.name}"]
            else result
            for result in results
        ]

    def _law_result(
        self, rule: str, name: str, says: str, unsupported: Mapping[str, str], broken: Set[str]
    ) -> LawResult:
        law_id = f"{rule}/{name}"
        kept, beyond = self.kept[law_id], self.beyond[law_id]
        if law_id in broken:
            return LawResult(rule, name, says, "broken", kept, beyond)
        if rule in unsupported:
            return LawResult(rule, name, says, "unsupported", kept, beyond, unsupported[rule])
        if law_id in self.unasked:
            return LawResult(rule, name, says, "unsupported", 0, 0, self.unasked[law_id])
        if kept:
            return LawResult(rule, name, says, "kept", kept, beyond)
        if self.spared and law_id in OF_TIMED_CASES and not self.differed[law_id]:
            return LawResult(rule, name, says, "unsupported", 0, beyond, self.spared)
        if beyond and not self.differed[law_id]:
            why = self.why_beyond.get(law_id, "")
            return LawResult(rule, name, says, "unsupported", 0, beyond, why)
        hidden = ", ".join(sorted(broken))
        note = f"hidden by {hidden}" if hidden else ""
        return LawResult(rule, name, says, "not exercised", 0, beyond, note)
