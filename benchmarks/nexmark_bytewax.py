"""Nexmark's queries on Bytewax beside the reference engine, in turns, by processor time.

``python benchmarks/nexmark_bytewax.py``: Bytewax runs in an environment of its own, which is made
the first time. The functions that read events and write rows are the same; so must the rows be, in
any order. `nexmark_by_bytewax.py` has the dataflows.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from facts import Figures, add_json_option, machine_facts, ratios
from nexmark import RATE, fed, generator, machine
from wallaroo_conformance.cli.engines import OURS, adapter_command

FIGURES = Figures(__file__)
QUERIES = ("q0", "q1", "q2", "q11", "q17")


def measure(options: argparse.Namespace) -> None:
    """Print what queries cost on Bytewax, and how that compares."""
    (python, _), environment = adapter_command(OURS / "bytewax_adapter.py")
    lines = generator.lines(generator.Events(rate=RATE), options.events)
    with tempfile.NamedTemporaryFile() as file:
        file.writelines([line + b"\n" for line in lines])
        file.flush()
        for query in QUERIES:
            seconds: dict[str, list[float]] = {"compiled": [], "bytewax": []}
            for _ in range(options.rounds):
                compiled = machine(query)
                began = time.process_time()
                outputs = fed(compiled, lines)
                seconds["compiled"].append(time.process_time() - began)
                taken, digest = subprocess.run(
                    [python, Path(__file__).with_name("nexmark_by_bytewax.py"), query, file.name],
                    env=environment,
                    stdout=subprocess.PIPE,
                    check=True,
                    text=True,
                ).stdout.split()
                seconds["bytewax"].append(float(taken))
                ours = hashlib.sha256(b"".join(sorted(outputs))).hexdigest()
                assert digest == ours, f"{query}: they disagree"
            rate = len(lines) / statistics.median(seconds["bytewax"])
            ratio = ratios(seconds, "compiled")["bytewax"]
            print(f"  {query:4} {rate:9,.0f} events/s   {ratio:5.2f} x our time", flush=True)
            FIGURES.add(f"{query}/bytewax", rate, "events/s", ratio=ratio, baseline="compiled")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--events", type=int, default=30_000)
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts(), flush=True)
    measure(options)
    FIGURES.write(options.json)


if __name__ == "__main__":
    main()
