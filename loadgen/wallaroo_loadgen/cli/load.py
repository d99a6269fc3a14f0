"""The command `wallaroo load`."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from wallaroo_loadgen.common.config import Address, address
from wallaroo_loadgen.common.schedule import HELP as SCHEDULES
from wallaroo_loadgen.control import arguments as args
from wallaroo_loadgen.control.application import Application
from wallaroo_loadgen.control.conductor import Conductor
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search, search
from wallaroo_loadgen.control.session import Session
from wallaroo_loadgen.control.verdict import INTERRUPTED, OK, SLO_MISSED, exit_code, show, verdict
from wallaroo_loadgen.presentation.files import (
    cases_of_runs,
    cases_of_search,
    write_hdr,
    write_json,
    write_junit,
)
from wallaroo_loadgen.presentation.terminal import LiveView, console, print_result, print_search
from wallaroo_loadgen.workloads.plan import MAKERS, Plan

if TYPE_CHECKING:
    from wallaroo_loadgen.presentation.live import LiveServer

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_USAGE = 2
_LOOPBACK = "127.0.0.1"

_HELP = f"""\
workloads:
  word_count              lines of Zipf-distributed words; -o words=5 -o vocabulary=1000
  market_spread           orders and quotes, --to ORDERS,QUOTES; -o symbols=FILE -o reject=0.3
  log_status              days of log lines; -o lines=1000
  echo                    any target that returns each frame; -o size=50
  replay                  a recorded file of frames; -o file=FILE -o outputs=1
  --workload FILE.py      your own: a function workload(options), see docs/load-testing.md

schedules (numbers are multiples of --rate):
{"".join("  " + line for line in SCHEDULES.splitlines(keepends=True))}
examples:
  wallaroo load word_count --to 127.0.0.1:7010 --listen 127.0.0.1:7002 --rate 2000 --slo 'p99<5ms'
  wallaroo load word_count --to 127.0.0.1:7010 --rate 5000 --html report.html --start \\
      'wallaroo run examples/word_count.py --in 127.0.0.1:7010 --out {{listen}}'
  wallaroo load word_count --to 127.0.0.1:7010 --rate 1000 --slo 'p99<50ms' --search --live 8090

exit codes: 0 valid and every SLO met, 2 called wrongly, 3 an SLO missed (or no rate sustained),
4 the run is invalid (this machine could not send on time, outputs are missing, nobody listens),
5 the target ended (it crashed, or closed a connection), 130 interrupted (the report is partial)
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "load",
        help="measure an application's latency under load",
        description="Send messages to a running application on an open-loop schedule, take what "
        "its sink sends, and measure each output's latency from the intended time of the message "
        "that caused it.",
        epilog=_HELP,
    )
    parser.add_argument("name", metavar="WORKLOAD", nargs="?", help=", ".join(sorted(MAKERS)))
    parser.add_argument("--workload", metavar="FILE.py", help="a workload of your own instead")
    add = parser.add_argument
    args.add_arguments(add)
    add("--processes", type=int, default=1, help="sender processes (1)")
    add("--start", metavar="COMMAND", help="start the application, and stop it at the end")
    add("--repeat", type=int, default=1, metavar="N", help="make N runs, for wallaroo compare")
    add("--search", action="store_true", help="find the highest rate sustained, from --rate on")
    add("--resolution", type=float, default=0.05, help="of --search, as a part of the rate (0.05)")
    add(
        "--live",
        metavar="[HOST:]PORT",
        help="show the run in a browser while it goes on, at this address (this machine's unless "
        "HOST is another; port 0 takes a free one), and for Prometheus at /metrics",
    )
    add(
        "--metrics",
        metavar="[HOST:]PORT",
        help="ask the application, run with the same option, for its own figures, and report them "
        "beside the measured ones",
    )
    add("--json", metavar="FILE", type=Path, help="write the figures")
    add("--html", metavar="FILE", type=Path, help="write a report with plots, one page")
    add("--hdr", metavar="FILE", type=Path, help="write an HdrHistogram log")
    add("--junit", metavar="FILE", type=Path, help="write validity and SLOs as JUnit XML")
    parser.set_defaults(run=run)


def run(namespace: argparse.Namespace) -> int:
    """Make the runs, say what they found, and return the exit code."""
    try:
        return _run(namespace)
    except args.SETUP_ERRORS as error:
        print(f"wallaroo load: {error}", file=sys.stderr)
        return _USAGE


def _run(namespace: argparse.Namespace) -> int:
    if namespace.name and namespace.workload:
        raise args.ArgumentsError("name a workload or give a file with --workload, not both")
    config = args.config(
        namespace, namespace.workload or namespace.name, processes=namespace.processes
    )
    slos = args.slos(namespace)
    if namespace.repeat < 1:
        raise args.ArgumentsError("--repeat is at least 1")
    if not 0 < namespace.resolution < 1:
        raise args.ArgumentsError("--resolution is above 0 and below 1")
    Plan(config)  # errors in it are reported before anything is started
    _check_writable(namespace)
    live = _live(namespace.live)
    own_figures = None if namespace.metrics is None else _address("--metrics", namespace.metrics)
    out, err = console(), console(stderr=True)
    results: list[Result] = []
    found: Search | None = None
    application = Application(namespace.start) if namespace.start else None
    with ExitStack() as stack:
        if application is not None:
            stack.enter_context(application)
        if live is not None:
            stack.enter_context(live)
            print(f"live at {live.url}", file=sys.stderr, flush=True)
        view = stack.enter_context(LiveView(err))

        def watch(conductor: Conductor) -> None:
            view.watch(conductor)
            if live is not None:
                live.watch(conductor)

        def listening(at: tuple[str, int]) -> None:
            if not results and not err.is_terminal:
                print(f"listening on {at[0]}:{at[1]}", file=sys.stderr)

        session = Session(application, slos, watch, listening, own_figures)
        if namespace.search:

            def progress(search_so_far: Search) -> None:
                point, result = search_so_far.points[-1], search_so_far.results[-1]
                if live is not None:
                    live.show(result, search_so_far)
                word = "sustained" if point["good"] else point["why"]
                p99 = show(result.latency["p99"])
                err.print(f"{point['rate']:>12,.0f}/s  p99 {p99:>9}  {escape(word)}")

            found = search(config, session.run, resolution=namespace.resolution, progress=progress)
            results = found.results
        else:
            for _ in range(namespace.repeat):
                results.append(session.run(config))
                if live is not None:
                    live.show(results[-1])
                if session.interrupted:
                    break
    problem = None if application is None else application.problem
    if problem is not None and problem != results[-1].ended:
        results[-1].notes.append(problem)
    if found is None:
        for result in results:
            print_result(out, result)
    else:
        print_search(out, found)
    _write(namespace, results, found, out)
    return exit_code(results) if found is None else _search_code(found)


def _live(text: str | None) -> LiveServer | None:
    """Return the server of `--live`, if it was asked for."""
    if text is None:
        return None
    # Pages are made with much that other runs do not need, and that takes time to import.
    from wallaroo_loadgen.presentation.live import LiveServer

    at = _address("--live", text)
    try:
        return LiveServer(at)
    except OSError as error:
        reason = error.strerror or error
        raise args.ArgumentsError(f"--live: cannot listen at {text}: {reason}") from None


def _address(option: str, text: str) -> Address:
    """Return the address of an option; without a host it is on this machine."""
    try:
        return address(text if ":" in text else f"{_LOOPBACK}:{text}")
    except ValueError as error:
        raise args.ArgumentsError(f"{option}: {error}") from None


def _search_code(found: Search) -> int:
    """Return a search's exit code: a step that fails does not make the search fail."""
    if any(result.partial for result in found.results):
        return INTERRUPTED
    if found.best is not None:
        return OK
    return verdict(found.results[-1]) or SLO_MISSED


def _check_writable(namespace: argparse.Namespace) -> None:
    """Refuse a file that cannot be written now rather than after the run."""
    for path in (namespace.json, namespace.html, namespace.hdr, namespace.junit):
        if path is not None and not path.resolve().parent.is_dir():
            raise args.ArgumentsError(f"{path}: no such directory")


def _write(
    namespace: argparse.Namespace, results: list[Result], found: Search | None, out: Console
) -> None:
    searches = [] if found is None else [found]
    if namespace.json is not None:
        write_json(namespace.json, results, searches)
    if namespace.hdr is not None:
        write_hdr(namespace.hdr, results)
    if namespace.junit is not None:
        cases = cases_of_runs(results) if found is None else cases_of_search(found)
        write_junit(namespace.junit, "wallaroo load", cases)
    if namespace.html is not None:
        from wallaroo_loadgen.presentation.pages import write_html

        write_html(namespace.html, results, searches)
        out.print(f"report: {namespace.html}", highlight=False, soft_wrap=True)
