"""Judging: runs cases on engine and oracle, and notes the differences.

A case that an engine cannot run is *beyond* it: it is counted and not run. One for which nothing is
promised is counted so, too; it is run, and only a crash is a failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

from wallaroo.engine import Engine
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.counterexamples import Counterexample
from wallaroo_conformance.judge.claims import Claims
from wallaroo_conformance.judge.differences import Crash, Result, differences
from wallaroo_conformance.judge.laws import ANSWERS
from wallaroo_conformance.judge.oracle import (
    REFERENCE,
    Meaning,
    Oracle,
    definition_oracle,
    oracle_for,
)
from wallaroo_conformance.judge.results import Failure
from wallaroo_conformance.search.findings import Failing, Findings
from wallaroo_conformance.search.running import REFUSED, Runner


class Judge:
    """Runs cases on an engine and compares what comes out with the reference.

    Args:
        runner: runs cases on the engine.
        oracle: says what is right.
        findings: where everything is noted.
    """

    def __init__(self, runner: Runner, oracle: Oracle, findings: Findings) -> None:
        self.runner = runner
        self.oracle = oracle
        self.findings = findings
        self.claims = findings.claims

    def try_cases(self, cases: Sequence[ConformanceCase]) -> list[ConformanceCase]:
        """Run cases, note the outcomes, and return those that the engine has answered.

        Cases that it had no time for are not noted at all.
        """
        findings = self.findings
        given: list[Meaning] = []
        for meaning in self.meanings(list(map(self.claims.adapted, cases))):
            beyond = self.beyond(meaning)
            if beyond is None:
                given.append(meaning)
                continue
            findings.add_beyond(meaning, beyond)
            if beyond.startswith(REFUSED):
                findings.add_refused(meaning.case)
        own = self.runner.run([meaning.case for meaning in given])
        findings.generated += len(cases) - (len(given) - len(own))
        answered: list[ConformanceCase] = []
        for meaning, result in zip(given, own, strict=False):
            if self.refused(result):
                findings.add_beyond(meaning, f"{REFUSED}{result.refusal}")
                continue
            answered.append(meaning.case)
            if (failing := self.failing(meaning, result)) is not None:
                findings.add_failing(failing)
            elif (unpromised := self.claims.unpromised(meaning)) is not None:
                findings.add_beyond(meaning, unpromised)
            else:
                findings.add_kept(meaning)
        findings.supported += len(answered)
        return answered

    def meanings(self, cases: Sequence[ConformanceCase]) -> Iterator[Meaning]:
        """Yield what cases mean, each in a form that the engine can answer."""
        for meaning in self.oracle.ask(cases):
            if meaning.case.small and self.claims.unpromised(meaning) is not None:
                # Small thresholds may make a checkpoint, for which a state must be pickled.
                yield replace(meaning, case=replace(meaning.case, small=False))
            else:
                yield meaning

    def first_failing(self, cases: Sequence[ConformanceCase], like: Failing) -> Failing | None:
        """Return the first case that fails for a reason not yet known; note nothing.

        Args:
            cases: the cases.
            like: those which do not differ in a way in which this one does are passed over.
        """
        given = [meaning for meaning in self.meanings(cases) if self.beyond(meaning) is None]
        results = self.runner.run([meaning.case for meaning in given])
        for meaning, result in zip(given, results, strict=False):
            failing = self.failing(meaning, result)
            if failing is None or not failing.differs_like(like):
                continue
            if not self.findings.is_explained(failing):
                return failing
        return None

    def failing(self, meaning: Meaning, result: Result) -> Failing | None:
        """Return how an answer is wrong, or `None`; a rule that is not claimed cannot be broken."""
        if self.refused(result):
            return None
        if not isinstance(result, Crash) and self.claims.unpromised(meaning) is not None:
            return None
        compared = self.claims.comparable(meaning.trace, result)
        kinds = differences(*compared)
        return Failing(meaning, kinds, result) if kinds else None

    def failure(self, failing: Failing) -> Failure:
        """Return the failure that a failing case shows, as it is."""
        meaning, result = failing.meaning, failing.result
        refused = isinstance(result, Crash) and result.refusal
        return Failure(
            (ANSWERS,) if refused else self.findings.laws_of(failing),
            meaning.case,
            expected=meaning.trace,
            actual=result,
            text=_doubt(meaning),
            judged_by=meaning.judged_by,
        )

    def refused(self, result: Result) -> TypeGuard[Crash]:
        """Whether an answer is the refusal of an engine that refuses in `run`."""
        in_run = self.runner.capabilities.refuses_in_run
        return in_run and isinstance(result, Crash) and result.refusal != ""

    def beyond(self, meaning: Meaning) -> str | None:
        """Return why the engine cannot or need not run a case, or `None`."""
        return self.claims.beyond(meaning) or self.runner.refusal(meaning.case)


@dataclass(frozen=True)
class Replayed:
    """The outcome of one stored case, as it is, on an engine and on the reference.

    Args:
        meaning: what it does on the reference, in a form that the engine can run.
        actual: what the engine gave; `None`: it was not run, or is not judged.
        beyond: why the engine cannot or need not run it, or may differ; else empty.
        failure: how the engine differs; `None`: it does not, or is not judged.
        options: what the engine was run with.
    """

    meaning: Meaning
    actual: Result | None = None
    beyond: str = ""
    failure: Failure | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def replayed(example: Counterexample, engine: Engine) -> Replayed:
    """Run a stored case on an engine and on the reference, and return the outcome."""
    runner = Runner(engine, options=example.options if engine.name == example.engine else None)
    judge = Judge(runner, oracle_for(engine), Findings(Claims(runner.capabilities)))
    [meaning] = judge.meanings([judge.claims.adapted(example.case)])
    beyond = judge.beyond(meaning)
    if beyond is not None:
        return Replayed(meaning, beyond=beyond)
    actual = runner.run_alone(meaning.case)
    if judge.refused(actual):
        return Replayed(meaning, beyond=actual.refusal)
    options = runner.options_for(meaning.case)
    failing = judge.failing(meaning, actual)
    if failing is None:
        unpromised = judge.claims.unpromised(meaning) or ""
        return Replayed(meaning, actual, beyond=unpromised, options=options)
    if (excuse := judge.findings.excuse(failing)) is not None:
        return Replayed(meaning, beyond=f"it differs, as {excuse}")
    failure = judge.failure(failing).filed(example.rule)
    return Replayed(meaning, actual, failure=failure, options=options)


def _doubt(meaning: Meaning) -> str:
    """Return why what a case means may be wrong itself; empty: there is no reason to think so.

    The definition is asked where the reference judges.
    """
    if meaning.judged_by != REFERENCE:
        return ""
    [defined] = definition_oracle().ask([meaning.case])
    kinds = differences(defined.trace, meaning.trace)
    if not kinds:
        return ""
    return (
        "the reference may be the broken side: by the definition this case ends otherwise "
        f"({', '.join(sorted(kinds))}). Try: wallaroo conform --engine reference"
    )
