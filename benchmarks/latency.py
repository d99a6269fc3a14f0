"""Latency against rate, and the highest rate sustained: both engines, two applications, one report.

    python benchmarks/latency.py                      10 to 20 minutes, writes latency.html
    python benchmarks/latency.py --short              two rates each, no search
    python benchmarks/latency.py --engines compiled --applications word_count

A rate is sustained when p99 stays under the engine's bound (50 ms compiled, 2 s on Spark), nothing
is lost, and the backlog does not grow. Each step is measured against one application that keeps
running; what a JVM does in its first seconds is sent and thrown away.
"""

from __future__ import annotations

import argparse
import itertools
import shlex
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from facts import Figures, add_json_option, machine_facts
from wallaroo_loadgen.common.config import RunConfig
from wallaroo_loadgen.control.application import Application
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search, run_search, why_not_sustained
from wallaroo_loadgen.control.session import Session
from wallaroo_loadgen.control.verdict import INTERRUPTED, SLO, show
from wallaroo_loadgen.presentation.files import write_json
from wallaroo_loadgen.presentation.pages import write_html

EXAMPLES = Path(__file__).parents[1] / "examples"
SYMBOLS = EXAMPLES / "data" / "symbols.txt"

Run = Callable[[RunConfig], Result]


@dataclass(frozen=True)
class Engine:
    """How to measure an engine.

    Args:
        name: the engine's.
        slo: the bound that a sustained rate must meet.
        first: the first rate, in messages a second.
        more: the second rate of a short run.
        warming: seconds of load at the first rate that do not count.
    """

    name: str
    slo: str
    first: float
    more: float
    warming: float


ENGINES = {
    "compiled": Engine("compiled", "p99<50ms", 2000, 20_000, 1.0),
    "spark": Engine("spark", "p99<2s", 200, 1000, 15.0),
}
APPLICATIONS = {"word_count": 1, "market_spread": 2}  # and how many sources


def main() -> int:
    """Measure what the arguments name, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument(
        "--applications", nargs="+", choices=APPLICATIONS, default=list(APPLICATIONS)
    )
    parser.add_argument("--short", action="store_true", help="two rates each, no search")
    parser.add_argument(
        "--duration", type=float, help="seconds measured at each rate (5; short: 3)"
    )
    parser.add_argument("--resolution", type=float, default=0.15, help="of the search (0.15)")
    parser.add_argument("--html", type=Path, default=Path("latency.html"))
    parser.add_argument("--results", type=Path, metavar="FILE", help="all runs, as `load` has them")
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts(), flush=True)
    results: list[Result] = []
    searches: list[Search] = []
    for application, name in itertools.product(options.applications, options.engines):
        print(f"\n{application} on {name}", flush=True)
        found = measure(ENGINES[name], application, options)
        results += found.results
        searches.append(found)
        if interrupted(results):
            break
    write_html(options.html, results, searches)
    if options.results is not None:
        write_json(options.results, results, searches)
    figures = Figures(__file__)
    for found in searches:
        keep(figures, found)
    figures.write(options.json)
    print(f"\nreport: {options.html}")
    return INTERRUPTED if interrupted(results) else 0


def keep(figures: Figures, found: Search) -> None:
    """Keep the highest rate sustained, and latencies there and at about a tenth of it."""
    if found.best is None:
        return
    name = found.label.replace(" on ", "/")
    figures.add(f"{name}/sustained", found.best, "messages/s")
    good = [result for result in found.results if why_not_sustained(result) is None]
    for place, rate in (("there", found.best), ("tenth", found.best / 10)):
        result = min(good, key=lambda result: abs(float(result.config["rate"]) - rate))
        for percentile in ("p50", "p99"):
            figures.add(f"{name}/{place}/{percentile}", result.latency[percentile] / 1000, "ms")


def interrupted(results: list[Result]) -> bool:
    """Return whether Ctrl-C has ended the last run early."""
    return bool(results) and results[-1].partial


def measure(engine: Engine, application: str, options: argparse.Namespace) -> Search:
    """Return the runs against one application on one engine."""
    ports = [free_port() for _ in range(APPLICATIONS[application])]
    to = tuple(("127.0.0.1", port) for port in ports)
    command = [sys.executable, "-m", "wallaroo", "run", str(EXAMPLES / f"{application}.py")]
    command += ["--engine", engine.name, "--in", ",".join([f"{host}:{port}" for host, port in to])]
    config = RunConfig(
        workload=application,
        to=to,
        rate=engine.first,
        duration=options.duration or (3.0 if options.short else 5.0),
        warmup=0.5 if options.short else 1.0,
        values={"symbols": str(SYMBOLS)} if application == "market_spread" else {"words": "1"},
        connections=APPLICATIONS[application],
        wait=180.0,  # a JVM with its workers, on a machine that has other things to do
    )
    with Application(f"{shlex.join(command)} --out {{listen}}") as under_test:
        session = Session(under_test, [SLO.parse(engine.slo)])

        def run(step: RunConfig) -> Result:
            result = session.run(step)
            result.label = f"{application} on {engine.name} at {step.rate:,.0f}/s"
            verdict = why_not_sustained(result) or "sustained"
            latency = ", ".join([f"{name} {show(result.latency[name])}" for name in SHOWN])
            print(f"{step.rate:>10,.0f}/s  {latency}  {verdict}", flush=True)
            return result

        print("warming up", flush=True)
        run(replace(config, duration=engine.warming / 3 if options.short else engine.warming))
        if options.short:
            found = Search(label=application)
            for rate in (engine.first, engine.more):
                if not interrupted(found.results):
                    found.results.append(run(replace(config, rate=rate)))
        else:
            found = run_search(config, run, resolution=options.resolution)
    found.label = f"{application} on {engine.name}"
    best = "none" if found.best is None else f"{found.best:,.0f} messages/s"
    print(f"highest rate seen sustained ({engine.slo}): {best}", flush=True)
    return found


SHOWN = ("p50", "p99", "p99.9")


def free_port() -> int:
    """Return a port that is free at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
