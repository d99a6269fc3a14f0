"""Latency against rate, and the highest rate sustained: both engines, two applications.

    python benchmarks/latency.py                      10 to 20 minutes
    python benchmarks/latency.py --engines compiled --applications word_count

Each search is the command ``wallaroo load APPLICATION --search``, which is printed; its report is
``latency-APPLICATION-ENGINE.html``. A rate is sustained when p99 stays under the engine's bound,
nothing is lost, and the backlog does not grow.
"""

from __future__ import annotations

import argparse
import itertools
import shlex
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from facts import Figures, add_json_option, machine_facts
from wallaroo_loadgen.control.search import Search, why_not_sustained
from wallaroo_loadgen.presentation.files import read_runs

EXAMPLES = Path(__file__).parents[1] / "examples"
WALLAROO = [sys.executable, "-m", "wallaroo"]
ENGINES = {
    "compiled": "--slo p99<50ms --rate 2000 --warmup 1",
    "spark": "--slo p99<2s --rate 200 --warmup 5 --wait 180",  # a JVM is slow in its first seconds
}
"""The engines, with options of `wallaroo load`."""

APPLICATIONS = {
    "word_count": (1, "words=1"),
    "market_spread": (2, f"symbols={EXAMPLES / 'data' / 'symbols.txt'}"),
}
"""The applications, with their number of sources and an option of the workload."""


def main() -> None:
    """Measure what the arguments name, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument(
        "--applications", nargs="+", choices=APPLICATIONS, default=list(APPLICATIONS)
    )
    parser.add_argument("--duration", default="5", help="seconds measured at each rate (5)")
    parser.add_argument("--resolution", default="0.15", help="of the search (0.15)")
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts(), flush=True)
    figures = Figures(__file__)
    for application, engine in itertools.product(options.applications, options.engines):
        keep(figures, f"{application}/{engine}", measured(application, engine, options))
    figures.write(options.json)


def measured(application: str, engine: str, options: argparse.Namespace) -> Search:
    """Return the runs that the command makes for one application on one engine."""
    sources, own = APPLICATIONS[application]
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(sources)]
    run = [*WALLAROO, "run", str(EXAMPLES / f"{application}.py"), "--engine", engine]
    run += ["--in", ",".join(addresses), "--out", "{listen}"]
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "runs.json"
        command = ["load", application, "--search", "--start", shlex.join(run), "-o", own]
        command += ["--connections", str(sources), "--listen", "127.0.0.1:0"]
        command += ["--duration", options.duration, "--resolution", options.resolution]
        command += [*itertools.chain(*[("--to", one) for one in addresses])]
        command += [*ENGINES[engine].split(), "--json", str(kept)]
        command += ["--html", f"latency-{application}-{engine}.html"]
        print(f"\n$ wallaroo {shlex.join(command)}", flush=True)
        if code := subprocess.run([*WALLAROO, *command], check=False).returncode:
            raise SystemExit(code)
        return Search(application, read_runs(kept))


def keep(figures: Figures, name: str, found: Search) -> None:
    """Keep the highest rate sustained, and latencies there and at about a tenth of it."""
    assert found.best is not None
    figures.add(f"{name}/sustained", found.best, "messages/s")
    good = [result for result in found.results if why_not_sustained(result) is None]
    for place, rate in (("there", found.best), ("tenth", found.best / 10)):
        result = min(good, key=lambda result: abs(float(result.config["rate"]) - rate))
        for percentile in ("p50", "p99"):
            figures.add(f"{name}/{place}/{percentile}", result.latency[percentile] / 1000, "ms")


def free_port() -> int:
    """Return a port that is free at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


if __name__ == "__main__":
    main()
