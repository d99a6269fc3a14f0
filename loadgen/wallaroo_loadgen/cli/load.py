"""The command `wallaroo load`."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from wallaroo.config import format_address
from wallaroo.text import escaped, reason
from wallaroo_loadgen.common.config import Address, RunConfig
from wallaroo_loadgen.common.schedule import HELP as SCHEDULES
from wallaroo_loadgen.control import arguments as args
from wallaroo_loadgen.control.application import Application
from wallaroo_loadgen.control.conductor import Conductor
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search, run_search
from wallaroo_loadgen.control.session import Session
from wallaroo_loadgen.control.verdict import INTERRUPTED, OK, SLO_MISSED, exit_code, verdict
from wallaroo_loadgen.presentation.files import write_files
from wallaroo_loadgen.presentation.terminal import (
    console,
    live_view,
    print_result,
    print_search,
    print_step,
    safe,
)
from wallaroo_loadgen.workloads.plan import MAKERS, Plan

if TYPE_CHECKING:
    from wallaroo_loadgen.presentation.live import LiveServer

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_USAGE = 2
_LOOPBACK = "127.0.0.1"


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "load",
        help="measure an application's latency under load",
        description="Send messages to a running application on an open-loop schedule, take what "
        "its sink sends, and measure each output's latency from the intended time of the message "
        "that caused it.",
        epilog=Template((files(__package__) / "load.txt").read_text("utf-8")).substitute(
            schedules="".join([f"  {line}" for line in SCHEDULES.splitlines(keepends=True)])
        ),
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
        print(f"wallaroo load: {escaped(str(error))}", file=sys.stderr)
        return _USAGE


def _run(namespace: argparse.Namespace) -> int:
    config, slos = _config(namespace), args.slos(namespace)
    own_figures = None if namespace.metrics is None else _address("--metrics", namespace.metrics)
    live = _live(namespace.live)
    out, err = console(), console(stderr=True)
    results: list[Result] = []
    search: Search | None = None
    application = Application(namespace.start) if namespace.start else None
    with ExitStack() as stack:
        if application is not None:
            stack.enter_context(application)
        if live is not None:
            live.start()
            stack.callback(live.close)
            print(f"live at {live.url}", file=sys.stderr, flush=True)
        draw = stack.enter_context(live_view(err))

        def watch(conductor: Conductor) -> None:
            draw(conductor)
            if live is not None:
                live.watch(conductor)

        def listening(at: Address) -> None:
            if not err.is_terminal:
                print(f"listening on {format_address(*at)}", file=sys.stderr)

        def ended(so_far: Search) -> None:
            print_step(err, so_far)
            if live is not None:
                live.show(so_far.results[-1], so_far)

        session = Session(application, slos, watch, listening, own_figures)
        if namespace.search:
            search = run_search(config, session.run, namespace.resolution, ended)
            results = search.results
        while not namespace.search and len(results) < namespace.repeat and not session.interrupted:
            results.append(session.run(config))
            if live is not None:
                live.show(results[-1])
    problem = None if application is None else application.problem
    if problem is not None and problem != results[-1].ended:
        results[-1].notes.append(problem)
    if search is None:
        for result in results:
            print_result(out, result)
    else:
        print_search(out, search)
    write_files(results, search, namespace.json, namespace.html, namespace.hdr, namespace.junit)
    if namespace.html is not None:
        out.print(safe(f"report: {namespace.html}"), highlight=False, soft_wrap=True)
    return exit_code(results) if search is None else _search_code(search)


def _config(namespace: argparse.Namespace) -> RunConfig:
    """Return the configuration of the runs, once everything about it has been checked."""
    if namespace.name and namespace.workload:
        raise args.ArgumentsError("name a workload or give a file with --workload, not both")
    workload = namespace.workload or namespace.name
    config = args.config(namespace, workload, processes=namespace.processes)
    if namespace.repeat < 1:
        raise args.ArgumentsError("--repeat is at least 1")
    if not 0 < namespace.resolution < 1:
        raise args.ArgumentsError("--resolution is above 0 and below 1")
    for path in (namespace.json, namespace.html, namespace.hdr, namespace.junit):
        if path is not None and not path.resolve().parent.is_dir():
            raise args.ArgumentsError(f"{path}: no such directory")
    Plan(config)  # errors in it are reported before anything is started
    return config


def _live(text: str | None) -> LiveServer | None:
    """Return the server of `--live`, if it was asked for."""
    if text is None:
        return None
    # Pages are made with much that other runs do not need, and that takes time to import.
    from wallaroo_loadgen.presentation.live import LiveServer

    try:
        return LiveServer(_address("--live", text))
    except OSError as error:
        problem = f"--live: cannot listen at {text}: {reason(error)}"
        raise args.ArgumentsError(problem) from None


def _address(option: str, text: str) -> Address:
    """Return the address of an option; without a host it is on this machine."""
    return args.address(option, text if ":" in text else f"{_LOOPBACK}:{text}")


def _search_code(search: Search) -> int:
    """Return a search's exit code: a step that fails does not make the search fail."""
    if any(result.partial for result in search.results):
        return INTERRUPTED
    if search.best is not None:
        return OK
    return verdict(search.results[-1]) or SLO_MISSED
