"""`check_engine`: does an engine mean the same as the reference? From generation to report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import cast

from wallaroo.engine import Capabilities, Case, Engine, load_engine
from wallaroo.topology import Application
from wallaroo.trace import Trace
from wallaroo_conformance.cases.counterexamples import Counterexample, stored
from wallaroo_conformance.judge.differences import Crash
from wallaroo_conformance.judge.law import LawResult, Status
from wallaroo_conformance.judge.laws import ANSWERS
from wallaroo_conformance.judge.oracle import REFERENCE, definition_oracle
from wallaroo_conformance.judge.results import Failure, Report, fits, versions
from wallaroo_conformance.language import check_language
from wallaroo_conformance.search.budget import Budget, Check, Outcome
from wallaroo_conformance.search.running import HarnessError
from wallaroo_conformance.search.search import Search, Watcher
from wallaroo_conformance.stepping import check_due

__all__ = ["Check", "check_engine"]

_REFUSED_TRIED = 8
_CANARY_CASES = 24


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
    engine = load_engine(engine) if isinstance(engine, str) else engine
    search = Search(engine, check, watcher=watcher)
    laws, failures, problems = _checked(search)
    problems = [*search.problems, *problems]
    if search.runner.given_up:
        problems.insert(0, search.runner.given_up)
    findings = search.findings
    if findings.generated and not findings.supported:
        problems.append("it has run no case: each was refused, or needs what it does not claim")
    return Report(
        engine=engine.name,
        profile=check.budget.name,
        seed=check.seed,
        cases=search.runner.cases,
        generated=findings.generated,
        seconds=time.monotonic() - begun,
        laws=tuple(laws),
        failures=tuple(_stored(failure, engine.name, check) for failure in failures),
        problems=tuple(problems),
        versions=versions(engine),
        first_failure=findings.first_failure,
        supported=findings.supported,
        stored=findings.stored,
        asked=check.budget.cases,
        date=date.today().isoformat(),
        option=getattr(engine, "option", ""),
    )


def _checked(search: Search) -> tuple[list[LawResult], list[Failure], list[str]]:
    """Return laws, failures and problems; whatever is raised is a problem."""
    check = search.check
    laws: list[LawResult] = []
    failures: list[Failure] = []
    try:
        _refuse_blindness()
        for part in _PARTS:
            if check.fail_fast and failures:
                break
            if check.stop is not None and check.stop.is_set():
                raise KeyboardInterrupt
            results, broken = part(search)
            laws += results
            earlier = bool(failures)
            failures += [
                replace(failure, may_be_same=failure.may_be_same or earlier) for failure in broken
            ]
    except KeyboardInterrupt:
        if check.stop is None:
            raise
        if not laws:
            with suppress(KeyboardInterrupt, HarnessError):  # Ctrl-C again, or the engine has gone
                search.explain_smallest(reduce=False)
            laws, failures = search.outcome()
        return laws, failures, ["interrupted: this is what was found until then"]
    except HarnessError as error:
        return laws, failures, [str(error)]
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, this was no check
        return laws, failures, [f"the check itself failed: {type(error).__name__}: {error}"]
    return laws, failures, []


class _Forgetful:
    """The definition, which loses each sink's last output: the canary."""

    name = REFERENCE  # so the definition judges it, even if it is the reference that is broken

    def capabilities(self) -> Capabilities:
        return Capabilities(isolation=frozenset({"isolated"}), live=False)

    def check(self, application: Application) -> None:
        pass

    def run(self, case: Case) -> Trace:
        trace = definition_oracle().reference.run(case)
        return replace(trace, outputs={sink: out[:-1] for sink, out in trace.outputs.items()})

    def run_many(self, cases: Iterable[Case]) -> list[Trace]:
        return [self.run(case) for case in cases]


def _refuse_blindness() -> None:
    """Make sure that a plainly broken engine is found to be broken, before any is called right.

    Raises:
        HarnessError: it is not found.
    """
    check = Check(Budget(_CANARY_CASES), fail_fast=True)
    canary = Search(cast("Engine", _Forgetful()), check)
    canary.search()
    if not canary.findings.failing:
        raise HarnessError("an engine that loses outputs was called right: nothing can be trusted")


def _check_cases(search: Search) -> Outcome:
    check = search.check
    for directory in (check.counterexamples, check.store):
        if directory is not None:
            search.replay(example.case for example in stored(directory))
    try:
        search.find_failures()
    except HarnessError as error:  # what was found until then is reported
        search.problems.append(str(error))
    return search.outcome()


def _check_refusals(search: Search) -> Outcome:
    """Check build-2: `run` must not answer a case that `check` refuses."""
    if not fits(ANSWERS.rule, search.check.rules):
        return [], []
    failures: list[Failure] = []
    refused, agreed = len(search.findings.refused), search.findings.agreed
    for case in search.findings.refused[:_REFUSED_TRIED]:
        answer = search.runner.run_alone(case)
        if not (isinstance(answer, Crash) and answer.refusal):
            text = f"run() answers what check() refuses: {search.runner.refusal(case)}"
            failures.append(Failure((ANSWERS,), case, actual=answer, text=text))
            break
    broken = failures or any(failure.rule == ANSWERS.rule for failure in search.findings.failures)
    status: Status = "broken" if broken else "kept" if refused or agreed else "not exercised"
    note = f"{refused} applications refused" if refused else ""
    return [ANSWERS.result(status, refused + agreed, note=note)], failures


def _check_live(search: Search) -> Outcome:
    check = search.check
    if check.live is None:
        return [], []
    return check.live(search.runner.engine, check.rules, check.seed)


_PARTS: tuple[Callable[[Search], Outcome], ...] = (
    _check_cases,
    lambda search: check_due(search.runner.engine, search.check.rules, search.check.seed),
    lambda search: check_language(search.check.rules),
    _check_refusals,
    _check_live,
)


def _stored(failure: Failure, engine: str, check: Check) -> Failure:
    if check.store is None or failure.case is None:
        return failure
    example = Counterexample(failure.case, failure.rule, failure.law, engine, check.options)
    return replace(failure, stored=str(example.store(check.store)))
