"""`check_engine`: does an engine mean the same as the reference? From generation to report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias

from wallaroo.engine import Case, Engine, load_engine
from wallaroo.trace import Trace
from wallaroo_conformance.cases.corpus import (
    read_corpus,
    readable_counterexamples,
    write_corpus,
)
from wallaroo_conformance.cases.counterexamples import STORED, Counterexample, stored
from wallaroo_conformance.judge.differences import Crash
from wallaroo_conformance.judge.laws import ANSWERS
from wallaroo_conformance.judge.oracle import Oracle, reference_oracle
from wallaroo_conformance.judge.results import Failure, LawResult, Report, fits, versions
from wallaroo_conformance.language import check_language
from wallaroo_conformance.search.budget import PROFILES, Budget
from wallaroo_conformance.search.running import MOST_CASES_A_JOB, HarnessError
from wallaroo_conformance.search.search import MOST_FAILURES, Search, Watcher

Found: TypeAlias = tuple[list[LawResult], list[Failure]]

LiveCheck: TypeAlias = Callable[[Engine, str, int], Found]
"""Checks an engine's live server: (engine, pattern of rules, seed) -> laws and failures."""

_REFUSED_TRIED = 8
_CANARY_CASES = 24


@dataclass(frozen=True)
class Check:
    """What is checked, for how long, and where results go; the defaults suit most engines.

    Args:
        budget: how much is to be done; `PROFILES` holds the usual ones.
        seed: of the generation; equal seeds give equal cases.
        rules: shell patterns of rule ids, separated by commas; others are not reported.
        fail_fast: stop at the first failure of these rules, reduce that one, and check nothing
            else.
        job: most cases in one engine job.
        options: the engine's own thresholds, such as batch or segment size, for every case.
        counterexamples: directory of stored cases, which are replayed first; `None`: none.
        live: checks the live server; `None` leaves those rules out.
        store: directory that gets a file for each failure, and a corpus of the cases that met rare
            pairs of facts; what is there already is run first. `None`: nothing is stored.
        reference: says what is right; `None`: the reference engine.
        wrong_operators: those that are not what the catalogue says (`search.operators`): cases
            with them are not run, and the check is incomplete.
        stop: set from outside, it ends the check before the next cases. Then, and at Ctrl-C, the
            report has what was found so far. `None`: Ctrl-C is raised.
    """

    budget: Budget = PROFILES["dev"]
    seed: int = 0
    rules: str = "*"
    fail_fast: bool = False
    job: int = MOST_CASES_A_JOB
    options: Mapping[str, Any] = field(default_factory=dict)
    counterexamples: Path | None = STORED
    live: LiveCheck | None = None
    store: Path | None = None
    reference: Engine | None = None
    wrong_operators: tuple[str, ...] = ()
    stop: Event | None = None


def check_engine(
    engine: Engine | str, check: Check | None = None, *, watcher: Watcher | None = None
) -> Report:
    """Check `engine` and return what was found; needs no test runner.

    Args:
        engine: the engine, or the name it is installed under.
        check: what is checked, and how long; `None`: `Check()`.
        watcher: is called with the progress.

    Returns:
        The report. Its `problems` say why the check is not complete; what the engine raises is not
        raised here.

    Raises:
        EngineNotFoundError: there is no engine of that name.
    """
    begun = time.monotonic()
    check = check or Check()
    search = Search(
        load_engine(engine) if isinstance(engine, str) else engine,
        Oracle(check.reference) if check.reference else reference_oracle(),
        seed=check.seed,
        job=check.job,
        options=check.options,
        watcher=watcher,
        wrong=check.wrong_operators,
        give_up_early=check.fail_fast,
        stop=check.stop,
    )
    search.begin(check.budget)
    laws: list[LawResult] = []
    failures: list[Failure] = []
    problems: list[str] = []
    try:
        _refuse_blindness(search)
        for part in (_check_cases, _check_language, _check_refusals, _check_live):
            if check.fail_fast and failures:
                break
            if check.stop is not None and check.stop.is_set():
                raise KeyboardInterrupt
            found_laws, found_failures = part(search, check)
            laws += found_laws
            earlier = bool(failures)
            failures += [
                replace(one, may_be_same=one.may_be_same or earlier) for one in found_failures
            ]
    except KeyboardInterrupt:
        if check.stop is None:
            raise
        problems.append("interrupted: this is what was found until then")
        if not laws:
            found_laws, found_failures = _found_so_far(search, check)
            laws += found_laws
            failures += found_failures
    except HarnessError as error:
        problems.append(str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, this was no check
        problems.append(f"the check itself failed: {type(error).__name__}: {error}")
    problems = [*search.problems, *problems]
    if wrong := check.wrong_operators:
        problems.append(f"cases with wrong operators were not run: {', '.join(wrong)}")
    if search.runner.given_up:
        problems.insert(0, search.runner.given_up)
    name = search.runner.engine.name
    findings = search.findings
    if findings.generated and not findings.supported:
        problems.append("it has run no case: each was refused, or needs what it does not claim")
    return Report(
        engine=name,
        profile=check.budget.name,
        seed=check.seed,
        cases=search.runner.cases,
        generated=findings.generated,
        seconds=time.monotonic() - begun,
        laws=tuple(laws),
        failures=tuple(_stored(failure, name, check) for failure in failures),
        problems=tuple(problems),
        versions=versions(search.runner.engine),
        first_failure=findings.first_failure,
        supported=findings.supported,
        stored=findings.stored,
        asked=check.budget.cases,
        date=date.today().isoformat(),
        coverage=findings.coverage.result(),
        option=getattr(search.runner.engine, "option", ""),
    )


class _Forgetful:
    """An engine that loses each sink's last output: the canary."""

    def __init__(self, reference: Engine) -> None:
        self.name = "canary"
        self._reference = reference

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reference, name)

    def run(self, case: Case) -> Trace:
        trace = self._reference.run(case)
        return replace(trace, outputs={sink: out[:-1] for sink, out in trace.outputs.items()})

    def run_many(self, cases: Iterable[Case]) -> list[Trace]:
        return [self.run(case) for case in cases]


def _refuse_blindness(search: Search) -> None:
    """Make sure that a plainly broken engine is found to be broken, before any is called right.

    Raises:
        HarnessError: it is not found.
    """
    canary = Search(_Forgetful(search.oracle.reference), search.oracle, give_up_early=True)
    canary.search(Budget(_CANARY_CASES, variant_every=0))
    if not canary.findings.failing:
        raise HarnessError("an engine that loses outputs was called right: nothing can be trusted")


def _check_cases(search: Search, check: Check) -> Found:
    if check.counterexamples is not None:
        search.replay(example.case for example in stored(check.counterexamples))
    if check.store is not None:
        search.replay(example.case for example in readable_counterexamples(check.store))
        search.replay(read_corpus(check.store))
    try:
        _search(search, check)
    except HarnessError as error:  # what was found until then is reported
        search.problems.append(str(error))
    finally:  # only if the corpus itself was run: else it would be replaced by a smaller one
        if check.store is not None and (rarest := search.findings.coverage.rarest()):
            write_corpus(check.store, rarest)
    return search.law_results(check.rules), search.findings.failures_of(check.rules)


def _search(search: Search, check: Check) -> None:
    """Look for failures; with `fail_fast` for one of the rules that are asked for.

    Which rules a case exercises is known only when it has been reduced. If they are others, the
    search goes on.
    """
    findings = search.findings
    before = -1
    while before < len(findings.failures):
        before = len(findings.failures)
        search.search(check.budget)
        search.top_up(check.budget, check.rules)
        search.explain(1 if check.fail_fast else MOST_FAILURES, check.rules)
        if not check.fail_fast or findings.failures_of(check.rules):
            break
        findings.first_failure = None  # it was another rule's


def _found_so_far(search: Search, check: Check) -> Found:
    """Return what an interrupted search has found; its smallest failing case is not reduced."""
    with suppress(KeyboardInterrupt, HarnessError):  # Ctrl-C again, or the engine has gone
        search.show_unreduced()
    return search.law_results(check.rules), search.findings.failures_of(check.rules)


def _check_language(_search: Search, check: Check) -> Found:
    return check_language(check.rules)


def _check_refusals(search: Search, check: Check) -> Found:
    """Check build-2: `run` must not answer a case that `check` refuses."""
    if not fits(ANSWERS.rule, check.rules):
        return [], []
    failures: list[Failure] = []
    refused, agreed = len(search.findings.refused), search.findings.agreed
    for case in search.findings.refused[:_REFUSED_TRIED]:
        answer = search.runner.run_alone(case)
        if not (isinstance(answer, Crash) and answer.refusal):
            failures.append(
                Failure(
                    (ANSWERS,),
                    case,
                    actual=answer,
                    text=f"run() answers what check() refuses: {search.runner.refusal(case)}",
                )
            )
            break
    broken = failures or any(failure.rule == ANSWERS.rule for failure in search.findings.failures)
    law = LawResult(
        ANSWERS.rule,
        ANSWERS.name,
        ANSWERS.says,
        "broken" if broken else "kept" if refused or agreed else "not exercised",
        refused + agreed,
        note=f"{refused} applications refused" if refused else "",
    )
    return [law], failures


def _check_live(search: Search, check: Check) -> Found:
    return (
        ([], [])
        if check.live is None
        else check.live(search.runner.engine, check.rules, check.seed)
    )


def _stored(failure: Failure, engine: str, check: Check) -> Failure:
    if check.store is None or failure.case is None:
        return failure
    example = Counterexample(failure.case, failure.rule, failure.law, engine, check.options)
    return replace(failure, stored=str(example.store(check.store)))
