"""``wallaroo conform``: does an engine keep the rules?"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from threading import Event
from types import FrameType
from typing import Any

from wallaroo.cli.arguments import did_you_mean
from wallaroo.engine import Engine
from wallaroo.errors import UsageError
from wallaroo.text import escaped
from wallaroo_conformance.cases.catalogue import catalogue
from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.cli.app import check_app
from wallaroo_conformance.cli.engines import chosen_engines
from wallaroo_conformance.cli.mutants import kill_matrix
from wallaroo_conformance.cli.output import progress_shown, write_reports
from wallaroo_conformance.cli.stored_case import show_case
from wallaroo_conformance.judge.results import (
    INCOMPLETE,
    KEPT,
    Report,
    fits,
    reports_to_json,
    worst,
)
from wallaroo_conformance.judge.rules import RULES
from wallaroo_conformance.live import check_live
from wallaroo_conformance.pipe.engine import PipeEngine
from wallaroo_conformance.report.pages import (
    chapters_for,
    html,
    markdown,
    reports_junit,
    write_matrix,
)
from wallaroo_conformance.report.showing import (
    cases_text,
    failure_text,
    rule_note,
)
from wallaroo_conformance.search.budget import chosen_budget


def conform(options: argparse.Namespace) -> int:
    """Run the command."""
    # Thousands of cases stay in memory with what they mean, and more come all the time. To look
    # through them for garbage as often as Python does by default takes an eighth of the time.
    gc.set_threshold(20_000, 50, 100)
    if options.app is None and options.app_arguments:
        arguments = options.app_arguments
        hint = did_you_mean(arguments[0], options.own_options)
        unknown = " ".join(arguments)
        raise UsageError(f"unknown arguments: {unknown}{hint} (see wallaroo conform --help)")
    _check(options)
    if options.catalogue:
        sys.stdout.writelines(_lines_of(catalogue()))
        return KEPT
    if options.show is not None:
        return show_case(options)
    for pattern in [rule.strip() for rule in options.rules.split(",") if rule.strip()]:
        if not any(fits(rule, pattern) for rule in RULES):  # found out now, not after a search
            hint = did_you_mean(pattern, RULES)
            raise UsageError(f"--rules: no rule is called {pattern!r}{hint}")
    if options.app is not None:
        return check_app(options)
    if options.mutants is not None:
        return kill_matrix(options)
    with (
        stopped_by_ctrl_c() as stop,
        chosen_engines(options, store=options.store, default="compiled") as engines,
    ):
        # After Ctrl-C the others are reported too, as interrupted: no report, no pass.
        reports = [_checked(engine, options, stop) for engine in engines]
    write_reports(
        {
            options.json: partial(reports_to_json, reports),
            options.html: lambda: html(reports, spec=chapters_for(options.html, options.spec)),
            options.junit: partial(reports_junit, reports),
            options.markdown: partial(markdown, reports),
        }
    )
    if options.matrix is not None:
        for path in write_matrix(reports, options.matrix, options.spec):
            print(escaped(f"wrote {path}"))
    return worst(reports)


def _lines_of(catalogue: Mapping[str, Any]) -> Iterator[str]:
    """Yield the catalogue as JSON text, a line for each operator."""
    rest = json.dumps({name: it for name, it in catalogue.items() if name != "operators"})
    yield f'{rest[:-1]}, "operators": [\n'
    operators = [json.dumps(operator, separators=(",", ":")) for operator in catalogue["operators"]]
    yield ",\n".join(operators)
    yield "\n]}\n"


def _check(options: argparse.Namespace) -> None:
    """Refuse, before a long search, options that nothing would read or that cannot be kept.

    Raises:
        UsageError: There is such an option.
    """
    for name in ("frames", "lines", "samples"):
        if options.app is None and getattr(options, name):
            raise UsageError(f"--{name} is the input of an application; add: --app APP")
    if options.brokers is not None and find_spec("confluent_kafka") is None:
        raise UsageError("--brokers needs Kafka's client: pip install 'wallaroo-streams[kafka]'")
    if options.show is None and options.output is not None:
        raise UsageError("--output says where --show writes; for a report write: --html FILE")
    for name in ("json", "html", "junit", "markdown"):
        path = getattr(options, name)
        if path is not None and path.is_dir():
            raise UsageError(f"--{name}: {path} is a directory; give the name of a file")
        if path is not None and not path.parent.is_dir():
            raise UsageError(f"--{name}: there is no directory {path.parent}")
    for name in ("matrix", "store"):
        path = getattr(options, name)
        if path is not None and path.exists() and not path.is_dir():
            raise UsageError(f"--{name}: {path} is a file; give the name of a directory")


@contextmanager
def stopped_by_ctrl_c() -> Iterator[Event]:
    """Yield an event that Ctrl-C sets, for the time of the block.

    Python would raise `KeyboardInterrupt` in the code that is running, which often is user code: an
    engine would think that the application ended itself. So the first Ctrl-C only asks to stop, and
    a second one is raised.
    """
    stop = Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread gets signals
        return
    before = signal.getsignal(signal.SIGINT)

    def ask(_number: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print(
            "stopping as soon as the cases that are running are done; Ctrl-C again: at once",
            file=sys.stderr,
            flush=True,
        )

    if before == signal.default_int_handler:  # else it is ignored, or somebody else's
        signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def _checked(engine: Engine, options: argparse.Namespace, stop: Event) -> Report:
    log = options.store / f"live-{engine.name}.log"
    with progress_shown(engine.name, sys.stderr) as watcher:
        check = Check(
            budget=chosen_budget(options.profile, options.cases, options.budget),
            seed=options.seed,
            rules=options.rules,
            fail_fast=options.fail_fast,
            job=options.job,
            options=dict(options.option),
            live=None if options.no_live else partial(check_live, log=log, brokers=options.brokers),
            store=options.store,
            stop=stop,
        )
        report = check_engine(engine, check, watcher=watcher)
    _print(report)
    can = engine.capabilities()
    if not options.no_live and can.live:
        print(f"messages of its servers: {log}")
        if can.kafka and options.brokers is None:
            print("left out: live runs from topic to topic; for these add --brokers HOST:PORT")
    if isinstance(engine, PipeEngine):
        print(f"what it wrote to its standard error: {engine.log}")
    return report


def _print(report: Report) -> None:
    width = shutil.get_terminal_size().columns
    for failure in report.failures:
        print(failure_text(failure, report.engine, option=report.option, width=width))
        print()
    for rule, status in report.rules.items():
        title = ": ".join(filter(None, [RULES[rule].title, rule_note(report, rule)]))
        print(f"{rule:10} {status:14} {report.exercised(rule):7} cases  {title}")
    print(f"{report.engine}: {cases_text(report)}")
    for problem in report.problems:
        print(f"{report.engine}: incomplete: {problem}", file=sys.stderr)
    print(f"{report.engine}: {_verdict(report)}")


def _verdict(report: Report) -> str:
    statuses = list(report.rules.values())
    counts = [f"{statuses.count(status)} {status}" for status in dict.fromkeys(sorted(statuses))]
    ran = f"{report.cases} cases in {report.seconds:.1f} s, seed {report.seed}"
    if report.first_failure is not None:
        ran += f", the first failure after {report.first_failure:.1f} s"
    verdict = "INCOMPLETE" if report.exit_code == INCOMPLETE else "kept"
    if report.failures:
        verdict = "BROKEN"
    return f"{verdict}: {', '.join(counts) or 'no rule looked at'}; {ran}"
