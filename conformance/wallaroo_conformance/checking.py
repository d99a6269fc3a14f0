"""`check_engine`: does an engine mean the same as the reference? From generation to report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

from wallaroo.engine import Case, Engine, load_engine
from wallaroo.trace import Trace
from wallaroo_conformance.cases.counterexamples import STORED, Counterexample, stored
from wallaroo_conformance.judge.differences import Crash
from wallaroo_conformance.judge.laws import ANSWERS, LAWS
from wallaroo_conformance.judge.oracle import Oracle, reference_oracle
from wallaroo_conformance.judge.results import Failure, LawResult, Report, fits, versions
from wallaroo_conformance.language.refusals import check_language
from wallaroo_conformance.search.running import MOST_CASES_A_JOB, HarnessError
from wallaroo_conformance.search.search import MOST_FAILURES, PROFILES, Profile, Search, Watcher

LiveCheck: TypeAlias = Callable[[Engine, str, int], tuple[list[LawResult], list[Failure]]]
"""Checks an engine's live server: (engine, pattern of rules, seed) -> laws and failures."""

_REFUSED_TRIED = 8
_CANARY_CASES = 24


def check_engine(
    engine: Engine | str,
    *,
    reference: Engine | None = None,
    profile: Profile | str = "dev",
    cases: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    rules: str = "*",
    job: int = MOST_CASES_A_JOB,
    options: Mapping[str, Any] | None = None,
    counterexamples: Path | None = STORED,
    store: Path | None = None,
    live: LiveCheck | None = None,
    today: date | None = None,
    watcher: Watcher | None = None,
    fail_fast: bool = False,
) -> Report:
    """Check `engine` and return what was found; needs no test runner.

    Args:
        engine: the engine, or the name it is installed under.
        reference: who is right; the reference engine unless told otherwise.
        profile: the budget: ``dev``, ``ci``, ``nightly`` or one of your own.
        cases: generate so many cases instead of what the profile says.
        seconds: generate for so long instead of what the profile says.
        seed: of the generation; equal seeds give equal cases.
        rules: shell patterns of rule ids, separated by commas; others are not reported.
        job: most cases in one engine job.
        options: the engine's own thresholds, such as batch or segment size, for every case.
        counterexamples: directory of stored cases that are replayed first.
        store: directory that gets a file for each failure.
        live: checks the live server; `None` leaves those rules out.
        today: the day, for known divergences that expire.
        watcher: is told how far things are.
        fail_fast: stop at the first failure, reduce that one, and check nothing else.

    Returns:
        The report. What kept the check from being complete is among its `problems`; nothing that
        the engine does is raised.

    Raises:
        EngineNotFoundError: there is no engine of that name.
    """
    begun = time.monotonic()
    engine = load_engine(engine) if isinstance(engine, str) else engine
    budget = _budget(profile, cases, seconds)
    problems: list[str] = []
    laws: list[LawResult] = []
    failures: list[Failure] = []
    oracle = Oracle(reference) if reference else reference_oracle()
    search = Search(
        engine,
        oracle,
        seed=seed,
        job=job,
        options=options,
        today=today,
        watcher=watcher,
        give_up_early=fail_fast,
    )
    try:
        _refuse_blindness(search)
        if counterexamples is not None:
            search.replay(example.case for example in stored(counterexamples))
        search.search(budget)
        search.top_up(budget, frozenset(law.id for law in LAWS if fits(law.rule, rules)))
        search.explain(1 if fail_fast else MOST_FAILURES)
        laws += search.law_results(rules)
        failures += [failure for failure in search.failures if fits(failure.rule, rules)]
        rest: list[Callable[[], tuple[list[LawResult], list[Failure]]]] = [
            lambda: check_language(rules),
            lambda: _check_refusals(search, rules),
            lambda: ([], []) if live is None else live(engine, rules, seed),
        ]
        for check in rest:
            if fail_fast and failures:
                break
            found_laws, found_failures = check()
            laws += found_laws
            failures += [replace(one, may_be_same=bool(failures)) for one in found_failures]
    except HarnessError as error:
        problems.append(str(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, this was no check
        problems.append(f"the check itself failed: {type(error).__name__}: {error}")
    if store is not None:
        failures = [_stored(failure, engine.name, options or {}, store) for failure in failures]
    return Report(
        engine=engine.name,
        profile=budget.name,
        seed=seed,
        cases=search.runner.cases,
        generated=search.generated,
        seconds=time.monotonic() - begun,
        laws=tuple(laws),
        failures=tuple(failures),
        problems=tuple(problems),
        versions=versions(),
        first_failure=search.first_failure,
        supported=search.supported,
    )


def _budget(profile: Profile | str, cases: int | None, seconds: float | None) -> Profile:
    budget = PROFILES[profile] if isinstance(profile, str) else profile
    if cases is not None:
        return replace(budget, name=f"{cases} cases", cases=cases, seconds=None)
    if seconds is not None:
        return replace(budget, name=f"{seconds:g} seconds", cases=None, seconds=seconds)
    return budget


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
    """See that a plainly broken engine is seen to be broken, before anything is called right.

    Raises:
        HarnessError: it is not.
    """
    canary = Search(_Forgetful(search.oracle.reference), search.oracle, give_up_early=True)
    canary.search(Profile("canary", _CANARY_CASES, variant_every=0))
    if not canary.failing:
        raise HarnessError("an engine that loses outputs was not found out: nothing can be trusted")


def _check_refusals(search: Search, rules: str) -> tuple[list[LawResult], list[Failure]]:
    """Check build-2: what `check` refuses, `run` must not answer."""
    if not fits(ANSWERS.rule, rules):
        return [], []
    failures: list[Failure] = []
    for case in search.refused[:_REFUSED_TRIED]:
        answer = search.runner.run_alone(case)
        if not (isinstance(answer, Crash) and answer.refusal):
            failures.append(
                Failure(
                    rule=ANSWERS.rule,
                    law=ANSWERS.name,
                    says=ANSWERS.says,
                    cause="run() answers what check() refuses",
                    case=case,
                    actual=answer,
                    text=f"check() said: {search.runner.refusal(case)}",
                )
            )
            break
    broken = failures or any(failure.rule == ANSWERS.rule for failure in search.failures)
    law = LawResult(
        ANSWERS.rule,
        ANSWERS.name,
        ANSWERS.says,
        "broken" if broken else "kept",
        search.generated,
        note=f"{len(search.refused)} applications refused" if search.refused else "",
    )
    return [law], failures


def _stored(failure: Failure, engine: str, options: Mapping[str, Any], directory: Path) -> Failure:
    if failure.case is None:
        return failure
    example = Counterexample(failure.case, failure.rule, failure.law, engine, options)
    return replace(failure, stored=str(example.store(directory)))
