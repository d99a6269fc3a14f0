"""Rules that only a live server can keep or break: framing, sinks that go away, stops, recovery.

First a tour that touches each of them once, in each mode that the engine has; then special runs
(`coming_in`, `going_out`, `endings`, `passing_time`, `coming_back`), in the mode in which most
applications run; then steps in any order, in any mode.
"""

from __future__ import annotations

import contextlib
import io
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from wallaroo.cli.logs import logging_to
from wallaroo.engine import Engine, Isolation, load_engine
from wallaroo_conformance.judge.law import Law
from wallaroo_conformance.judge.results import Failure, LawResult, Status, fits
from wallaroo_conformance.live.coming_back import what_outlives_a_kill
from wallaroo_conformance.live.coming_in import what_comes_in
from wallaroo_conformance.live.endings import (
    dead_letters_and_a_sink_that_never_comes,
    on_error_stop,
    user_code_that_exits,
)
from wallaroo_conformance.live.going_out import what_sinks_do
from wallaroo_conformance.live.machine import LiveMachine
from wallaroo_conformance.live.passing_time import refusal, what_time_does
from wallaroo_conformance.live.scenario import BrokenRuleError, Scenario, modes_of
from wallaroo_conformance.search.running import crash


def _law(rule: str, says: str) -> Law:
    return Law(rule, "live", says)


_LAWS: tuple[Law, ...] = (
    _law(
        "frame-1",
        "the frames depend on the bytes alone, never on how TCP divided them",
    ),
    _law(
        "frame-2",
        "over TCP too, a frame of length 0 is a frame like any other",
    ),
    _law(
        "frame-3",
        "a header that claims too much closes that connection; others go on",
    ),
    _law(
        "frame-4",
        "a frame that a connection's end leaves incomplete is dropped and counted; an engine "
        "that dies closes nothing in order",
    ),
    _law(
        "frame-5",
        "frames of several connections are sequenced in the order received",
    ),
    _law(
        "order-2",
        "each sink gets one exact byte string, live as well",
    ),
    _law(
        "sink-2",
        "two sinks at one address have a connection each",
    ),
    _law(
        "sink-3",
        "a sink that went away gets every output, from an output's first byte",
    ),
    _law(
        "dead-1",
        "dead letters of a live run are counted, and are added at the end of the file",
    ),
    _law(
        "dead-2",
        "live too, a dead letter harms no output of other messages",
    ),
    _law(
        "dead-3",
        "live too, SystemExit ends the run with exit 1, names the step, and delivers the "
        "outputs before it",
    ),
    _law(
        "dead-4",
        "live too, --on-error stop delivers exactly the outputs before the first dead "
        "letter; exit 1",
    ),
    _law(
        "time-1",
        "a window that time alone makes due fires, though nothing comes any more",
    ),
    _law(
        "time-5",
        "a stop ends no source: windows that are open do not fire, and are counted",
    ),
    _law(
        "stop-1",
        "a stop processes what was received, delivers, counts; exits with 0, or 1 if it gave up",
    ),
    _law(
        "recover-1",
        "after a kill and a restart each frame has had its effect on state once",
    ),
    _law(
        "recover-2",
        "after a kill and a restart sinks have every output; repeats are a stretch",
    ),
)

LIVE_LAWS: Mapping[str, Law] = {law.rule: law for law in _LAWS}
"""What must hold for a live server: one law for each rule."""

_SPECIAL = (
    what_comes_in,
    what_sinks_do,
    dead_letters_and_a_sink_that_never_comes,
    on_error_stop,
    user_code_that_exits,
    what_time_does,
    what_outlives_a_kill,
)

_SECONDS = 20.0  # for steps in any order
PATIENCE = 120.0
"""Seconds for which each thing is waited for, at most."""
_STEPS = 10
_MOST_RUNS = 24
_SAID = 12  # lines of the server's messages that are shown, the last ones


def check_live(
    engine: Engine,
    rules: str,
    random_seed: int,
    *,
    patience: float = PATIENCE,
    log: Path | None = None,
) -> tuple[list[LawResult], list[Failure]]:
    """Check the rules that fit the pattern `rules` on the engine's live server.

    `live` and `recovery` are checked only if the engine claims them. No single thing may take
    longer than `patience` seconds. What the servers print goes to the file `log`, if there is one.
    """
    capabilities = engine.capabilities()
    beyond = {
        rule: "it does not claim to recover" if capabilities.live else "it does not claim to serve"
        for rule in LIVE_LAWS
        if not capabilities.live or (rule.startswith("recover") and not capabilities.recovery)
    }
    beyond |= dict.fromkeys(LIVE_LAWS.keys() & capabilities.unsupported_rules, "by its own account")
    if capabilities.live and (why := refusal(engine)):
        beyond |= dict.fromkeys(("time-1", "time-5"), why)

    touched: Counter[str] = Counter()
    failure: Failure | None = None
    if capabilities.live and any(fits(rule, rules) for rule in LIVE_LAWS):
        said = io.StringIO()
        failure = _run(engine, random_seed, touched, patience, said)
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(said.getvalue(), encoding="utf-8")
    results = [
        _result(law, touched[law.rule], beyond.get(law.rule), failure)
        for law in LIVE_LAWS.values()
        if fits(law.rule, rules)
    ]
    if failure is None or failure.rule in beyond or not fits(failure.rule, rules):
        return results, []
    return results, [failure]


def tour(scenario: Scenario) -> None:
    """Touch each rule once; those of recovery, if it is served with a checkpoint."""
    # One connection first, so that a parser's fault is not blamed on several connections.
    first = scenario.connect(0)
    scenario.send(first, [b"a", b"b"])
    scenario.settle("order-2")
    scenario.send(first, [b"ab", b"a"], chunks=[1])
    scenario.send(first, [b"", b"a"])
    scenario.begin(first, b"b", 1)
    scenario.complete(first, b"b")
    scenario.begin(first, b"cab", 0)
    scenario.complete(first, b"cab")
    second = scenario.connect(0)
    scenario.send(second, [b"ab", b"a"], chunks=[1])
    scenario.begin(second, b"ba", 1)
    scenario.send(first, [b"c"])
    scenario.complete(second, b"ba")
    scenario.settle("frame-5")
    scenario.claim_too_much(second)
    scenario.begin(first, b"abc", 1)
    scenario.complete(first, b"abc")
    if scenario.recovers:
        # Once with everything delivered, so that wrong state is not mistaken for lost outputs.
        scenario.settle("frame-3")
        scenario.kill_and_restart()
        first = scenario.connect(0)
        scenario.send(first, [b"c", b"a"])
        scenario.settle("recover-1")
    scenario.sink_goes(0)
    scenario.send(first, [b"b", b"a"], chunks=[3, 2])
    scenario.sink_returns(0)
    if scenario.recovers:
        scenario.sink_goes(1)
        scenario.send(first, [b"c", b"a"])
        scenario.let_it_store()  # so that outputs that wait are not all made again
        scenario.kill_and_restart()
        scenario.sink_returns(1)
        scenario.connect(0)
        scenario.send(0, [b"a", b"c"])
    scenario.begin(0, b"lost", 2)
    scenario.finish(0)
    scenario.stop()


def death(scenario: Scenario) -> None:
    """Kill a server that has received something."""
    scenario.connect(0)
    scenario.send(0, [b"a", b"b"])
    scenario.kill()


def _run(
    engine: Engine,
    random_seed: int,
    touched: Counter[str],
    patience: float,
    said: io.StringIO,
) -> Failure | None:
    reference = load_engine("reference")
    modes = modes_of(engine)
    tours = _tours(engine)
    begun = time.monotonic()
    try:
        with _overheard(said):
            for mode, recovers in tours:
                with Scenario(engine, reference, 0, mode, patience, recovers=recovers) as scenario:
                    tour(scenario)
                    touched.update(scenario.touched)
            took = (time.monotonic() - begun) / len(tours)
            for special in _SPECIAL:
                touched.update(special(engine, reference, modes[-1], patience))
            if (modes[0], False) in tours:  # else a tour has a kill
                with Scenario(engine, reference, 0, modes[0], patience, recovers=False) as scenario:
                    death(scenario)
            _any_order(engine, reference, random_seed, touched, took, patience)
    except Exception as error:  # noqa: BLE001 - what an engine's server raises is its answer
        first = _first(error)
        if isinstance(first, BrokenRuleError):
            return _failure(first.rule, f"{first.text}\nthe server said:\n{_tail(said)}")
        return _failure("stop-1", f"{crash(first).error}\nthe server said:\n{_tail(said)}")
    return None


def _tours(engine: Engine) -> list[tuple[Isolation, bool]]:
    """Return each tour's mode, and whether it is served with a checkpoint.

    What is on disk does not depend on the mode, so kills are tried in one mode. For an engine that
    always logs, a checkpoint makes no difference to the rest.
    """
    tours = [(mode, False) for mode in modes_of(engine)]
    capabilities = engine.capabilities()
    if capabilities.recovery:
        tours = [*tours[capabilities.always_logs :], (tours[0][0], True)]
    return tours


def _first(error: BaseException) -> BaseException:
    """Return what broke, also if Hypothesis cannot repeat it: timing differs from run to run."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@contextlib.contextmanager
def _overheard(said: io.StringIO) -> Iterator[None]:
    """Keep what servers print and log in this process while the block runs.

    They are attacked on purpose, so their messages about it are of no interest in a check's output.
    """
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, [logging.StreamHandler(said)]
    try:
        with logging_to(said, "info", as_json=False), contextlib.redirect_stderr(said):
            yield
    finally:
        root.handlers = handlers


def _tail(said: io.StringIO) -> str:
    return "\n".join(f"  {line}" for line in said.getvalue().splitlines()[-_SAID:])


def _any_order(
    engine: Engine,
    reference: Engine,
    random_seed: int,
    touched: Counter[str],
    took: float,
    patience: float,
) -> None:
    class OfThisEngine(LiveMachine):
        pass

    OfThisEngine.engine = engine
    OfThisEngine.reference = reference
    OfThisEngine.patience = patience
    OfThisEngine.recovery = engine.capabilities().recovery
    OfThisEngine.touched = touched
    runs = max(1, min(_MOST_RUNS, int(_SECONDS / max(took, 0.01))))
    run_state_machine_as_test(
        seed(random_seed)(OfThisEngine),
        settings=settings(
            max_examples=runs,
            stateful_step_count=_STEPS,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def _failure(rule: str, text: str) -> Failure:
    return Failure((LIVE_LAWS[rule],), None, text=text)


def _result(law: Law, count: int, beyond: str | None, failure: Failure | None) -> LawResult:
    if beyond is not None:
        return LawResult(law.rule, law.name, law.says, "unsupported", 0, 1, beyond)
    if failure is not None and failure.rule == law.rule:
        return LawResult(law.rule, law.name, law.says, "broken", count)
    note = f"hidden by {failure.rule}" if failure is not None and not count else ""
    status: Status = "kept" if count else "not exercised"
    return LawResult(law.rule, law.name, law.says, status, count, note=note)
