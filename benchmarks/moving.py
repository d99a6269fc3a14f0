"""How long `wallaroo checkpoint` takes for a million entities: other partitions, another engine.

    python benchmarks/moving.py [--entities N] [--partitions N]

A run of the reference engine makes the entities. Its checkpoint gets other partitions, goes to
Spark, gets other partitions there, and comes back; at the end it has the entities of the beginning
(scale-1). Goal: a minute for each direction.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from facts import Figures, add_json_option, machine_facts

from wallaroo.transport.stored import open_stored
from wallaroo.transport.stored_state import StoredEntity

FIGURES = Figures(__file__)
_APPLICATION = str(Path(__file__).with_name("spark_counting.py"))
_WALLAROO = (sys.executable, "-m", "wallaroo")


def seconds_of(*arguments: str) -> float:
    """Run a command; return how many seconds it took."""
    began = time.monotonic()
    subprocess.run(
        [*_WALLAROO, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return time.monotonic() - began


def fill(directory: Path, entities: int) -> None:
    """Make a checkpoint with so many entities."""
    words = directory.with_name("words")
    words.write_text("".join([f"word{number}\n" for number in range(entities)]))
    run = ["run", _APPLICATION, "--stdin", "--stdout", "--checkpoint", str(directory)]
    run += ["--stop-timeout", "300"]  # the last checkpoint has all entities
    with words.open("rb") as lines:
        subprocess.run([*_WALLAROO, *run], check=True, stdin=lines, stdout=subprocess.DEVNULL)


def entities_of(directory: Path) -> list[StoredEntity]:
    """Return all entities of a checkpoint of the reference engine, sorted."""
    return sorted(open_stored(directory, "reference").state().entities)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entities", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=8)
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts())
    with tempfile.TemporaryDirectory(prefix="wallaroo-moving-") as name:
        begin = old = Path(name, "0")
        fill(begin, options.entities)
        moves = (
            ("reference", options.partitions),
            ("spark", options.partitions),
            ("spark", options.partitions + 1),
            ("reference", 1),
        )
        engine = "reference"
        for number, (to, partitions) in enumerate(moves, 1):
            new = Path(name, str(number))
            move = [str(old), "--to", to, "--partitions", str(partitions), "-o", str(new)]
            took = seconds_of("checkpoint", *move, "--app", _APPLICATION)
            print(f"  {engine:9} to {to:9}, {partitions} partitions: {took:6.1f} s", flush=True)
            FIGURES.add(f"{engine}/{to}", took, "s")
            engine, old = to, new
        there = entities_of(old)
        assert there == entities_of(begin), "they are not the same entities"
        assert len(there) == options.entities, f"there are {len(there):,} entities"
    print(f"  the {len(there):,} entities are those of the beginning")
    FIGURES.write(options.json)


if __name__ == "__main__":
    main()
