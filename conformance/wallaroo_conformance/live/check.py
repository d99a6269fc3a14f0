"""Checks the rules that only a live server can keep or break: scenarios, then random steps."""

from __future__ import annotations

import contextlib
import io
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from wallaroo.cli.logs import logging_to
from wallaroo.engine import Engine, Isolation
from wallaroo_conformance.judge.differences import Crash
from wallaroo_conformance.judge.law import Law, LawResult, Status
from wallaroo_conformance.judge.results import Failure, fits
from wallaroo_conformance.live.checkpoints import moving_scenario
from wallaroo_conformance.live.kafka import KAFKA_LAWS, SCENARIOS
from wallaroo_conformance.live.kafka_run import KafkaRun, KafkaScenario
from wallaroo_conformance.live.random_steps import random_scenario
from wallaroo_conformance.live.run import LiveRun, Scenario
from wallaroo_conformance.live.scenarios import SPECIAL
from wallaroo_conformance.live.served import OTHER, BrokenRuleError
from wallaroo_conformance.search.budget import Outcome

_LAWS: Mapping[str, str] = {
    "frame-1": "the frames depend on the bytes alone, never on how TCP divided them",
    "frame-2": "over TCP too, a frame of length 0 is a frame like any other",
    "frame-3": "a header that claims too much closes that connection; others go on",
    "frame-4": "a frame that a connection's end leaves incomplete is dropped and counted; an "
    "engine that dies closes nothing in order",
    "frame-5": "frames of several connections are sequenced in the order received",
    "order-2": "each sink gets one exact byte string, live as well",
    "sink-2": "two sinks at one address have a connection each",
    "sink-3": "a sink that went away gets every output, from an output's first byte",
    "sink-9": "a peer that says how many bytes it has kept has each byte once, whoever is killed",
    "dead-1": "dead letters of a live run are counted, and are added at the end of the file",
    "dead-2": "live too, a dead letter harms no output of other messages",
    "dead-3": "live too, SystemExit ends the run with exit 1, names the step, and delivers the "
    "outputs before it",
    "dead-4": "live too, --on-error stop delivers exactly the outputs before the first dead "
    "letter; exit 1",
    "time-1": "a window that time alone makes due fires, though nothing comes any more",
    "time-5": "a stop ends no source: windows that are open do not fire, and are counted",
    "stop-1": "a stop processes what was received, delivers, counts; exits with 0, or 1 if it "
    "gave up",
    "recover-1": "after a kill and a restart each frame has had its effect on state once",
    "recover-2": "after a kill and a restart sinks have every output; what comes again are the "
    "last ones, in their order",
    "recover-3": "a part of a copy that went on apart is refused by name before a source listens, "
    "and nothing on the disk is changed",
    "recover-4": "a stored state or accumulator that lacks what its class has today is refused, "
    "unless the class or the user takes care of it",
    "scale-1": "cut anywhere, with another number of partitions and another engine behind the cut, "
    "a run gives what it gives without a change",
    "scale-2": "the checkpoint that was written anew stays as it was",
}

LIVE_LAWS: Mapping[str, Law] = {rule: Law(rule, "live", says) for rule, says in _LAWS.items()}
"""What must hold for a live server: one law for each rule."""

PATIENCE = 120.0
"""Seconds for which each thing is waited for, at most."""

_SECONDS = 20.0  # for random steps
_MOST_RUNS = 24
_MOVES = 4  # of so many random runs one changes the number of partitions, or the engine
_LAST_LINES = 12  # of the server's messages that are shown


def check_live(
    engine: Engine,
    rules: str,
    random_seed: int,
    *,
    patience: float = PATIENCE,
    log: Path | None = None,
    brokers: str | None = None,
) -> Outcome:
    """Check the rules that fit the pattern `rules` on the engine's live server.

    Recovery is checked only if the engine claims it, windows if it does not refuse them. No single
    thing may take longer than `patience` seconds. What the servers print goes to the file `log`, if
    there is one. With the address of `brokers` it is also served from topic to topic, if it claims
    Kafka.
    """
    can, printed = engine.capabilities(), io.StringIO()
    runs = (
        (scenario, partial(LiveRun, scenario, engine, mode, patience))
        for scenario, mode in _scenarios(engine, random_seed)
    )
    why = "" if can.live else "it does not claim to serve"
    laws, failures = _checked(LIVE_LAWS, runs, engine, rules, printed, why)
    if brokers is not None and can.live and can.kafka:
        more, others = check_kafka(engine, rules, brokers, patience, printed=printed)
        laws, failures = [*laws, *more], [*failures, *others]
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(printed.getvalue(), encoding="utf-8")
    return laws, failures


def check_kafka(
    engine: Engine,
    rules: str,
    brokers: str,
    patience: float,
    *,
    other: str = OTHER,
    printed: io.StringIO | None = None,
) -> Outcome:
    """Check the rules that fit the pattern `rules` against brokers.

    Args:
        engine: the engine.
        rules: the pattern.
        brokers: addresses of Kafka's.
        patience: seconds that any one thing may take.
        other: name of the engine that goes on with its checkpoints.
        printed: gets what its servers print.

    Raises:
        MissingExtraError: Kafka's client is not installed.
    """
    runs = (
        (scenario, partial(KafkaRun, scenario, engine, brokers, patience, other=other))
        for scenario in SCENARIOS
    )
    return _checked(KAFKA_LAWS, runs, engine, rules, printed or io.StringIO())


def _checked(
    laws: Mapping[str, Law],
    runs: Iterable[tuple[Scenario | KafkaScenario, Callable[[], Any]]],
    engine: Engine,
    rules: str,
    printed: io.StringIO,
    left_out: str = "",
) -> Outcome:
    """Run what is about some rules, and what chance decides, until something breaks.

    Args:
        laws: the law of each rule.
        runs: what is done, each with what begins the run.
        engine: the engine.
        rules: a pattern of rules.
        printed: gets what servers print.
        left_out: why nothing is run; empty: there is no reason.
    """
    count: Counter[str] = Counter()
    unsupported = dict.fromkeys(laws, left_out) if left_out else {}
    failure: Failure | None = None
    if not left_out and any(fits(rule, rules) for rule in laws):
        with _captured(printed):
            for scenario, begin in runs:
                if scenario.rules and not any(fits(rule, rules) for rule in scenario.rules):
                    continue
                if why := scenario.refusal(engine):
                    unsupported |= dict.fromkeys(scenario.rules, why)
                elif (failure := _failure(laws, scenario, begin, printed)) is not None:
                    failure = failure.filed(rules)
                    break
                else:
                    count.update(scenario.rules)
    unsupported = {rule: why for rule, why in unsupported.items() if not count[rule]}
    own = laws.keys() & engine.capabilities().unsupported_rules
    unsupported |= dict.fromkeys(own, "by its own account")
    results = [
        _result(law, count[law.rule], unsupported.get(law.rule), failure)
        for law in laws.values()
        if fits(law.rule, rules)
    ]
    if failure is None or failure.rule in unsupported or not fits(failure.rule, rules):
        return results, []
    return results, [failure]


def _failure(
    laws: Mapping[str, Law],
    scenario: Scenario | KafkaScenario,
    begin: Callable[[], Any],
    printed: io.StringIO,
) -> Failure | None:
    """Do what a scenario says, and return what broke."""
    try:
        with begin() as run:
            scenario.script(run)
    except BrokenRuleError as broken:
        named, text = broken.rules, broken.text
    except Exception as error:  # noqa: BLE001 - what an engine's server raises is its answer
        named, text = scenario.rules or ("stop-1",), Crash.of(error).error
    else:
        return None
    last = [f"  {line}" for line in printed.getvalue().splitlines()[-_LAST_LINES:]]
    text = "\n".join([text, "the server said:", *last])
    return Failure(tuple([laws[rule] for rule in named]), None, text=text)


def _scenarios(engine: Engine, random_seed: int) -> Iterator[tuple[Scenario, Isolation]]:
    """Yield what is run, each with its mode; at last, for some time, what chance decides."""
    capabilities = engine.capabilities()
    modes = sorted(capabilities.isolation)  # trusting last: `wallaroo run` mostly uses that
    yield from [(scenario, modes[-1]) for scenario in SPECIAL]
    rng, number = Random(random_seed), 0  # noqa: S311 - no secret
    end = time.monotonic() + _SECONDS
    while number < _MOST_RUNS and (number < 2 or time.monotonic() < end):
        moves = number % _MOVES == 1
        made = (
            moving_scenario(rng)
            if moves
            else random_scenario(rng, may_recover=capabilities.recovery)
        )
        yield made, rng.choice(modes)
        number += 1


@contextlib.contextmanager
def _captured(printed: io.StringIO) -> Iterator[None]:
    """Keep what servers print and log in this process while the block runs.

    They are attacked on purpose, so their messages about it are of no interest in a check's output.
    """
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, [logging.StreamHandler(printed)]
    try:
        with logging_to(printed, "info", as_json=False), contextlib.redirect_stderr(printed):
            yield
    finally:
        root.handlers = handlers


def _result(law: Law, count: int, beyond: str | None, failure: Failure | None) -> LawResult:
    if beyond is not None:
        return law.result("unsupported", 0, 1, beyond)
    if failure is not None and failure.rule == law.rule:
        return law.result("broken", count)
    note = f"hidden by {failure.rule}" if failure is not None and not count else ""
    status: Status = "kept" if count else "not exercised"
    return law.result(status, count, note=note)
