"""``wallaroo engines``: the installed engines, what they can do, and which packages are missing."""

from __future__ import annotations

import argparse
from importlib.metadata import entry_points

from wallaroo.cli.main import Subparsers
from wallaroo.cli.terminal import print_table
from wallaroo.engine import ENTRY_POINTS, Capabilities, load_engine
from wallaroo.errors import EngineNotFoundError
from wallaroo.extras import install_command, missing_packages

_HEADINGS = ("engine", "modes", "partitions", "batches", "live", "recovery", "faults", "not kept")

_EXPLANATION = """\
columns:
  modes       isolated: every rule holds for every application; trusting: fast
  partitions  runs on more than one partition
  batches     can be told where one batch of input ends and the next begins
  live        runs under `wallaroo run`
  recovery    goes on after a crash without losing state
  faults      kinds of fault it can inject, for conformance
  not kept    rules it does not keep
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "engines",
        help="list the engines, what they can do and what is missing",
        description="List the installed engines, what they can do, and which packages others lack.",
        epilog=_EXPLANATION,
    )
    parser.set_defaults(run=engines)


def engines(_options: argparse.Namespace) -> int:
    """Run the command."""
    rows: list[list[str]] = []
    unusable: list[str] = []
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        missing = missing_packages(point)
        if missing:
            unusable.append(
                f"engine {point.name!r} cannot be used: not installed: {', '.join(missing)}; "
                f"try: {install_command(point)}"
            )
            continue
        try:
            rows.append(_row(point.name, load_engine(point.name).capabilities()))
        except EngineNotFoundError as error:
            unusable.append(str(error))
    if rows:
        print_table(_HEADINGS, rows)
    for line in unusable:
        print(line)
    if not rows and not unusable:
        print("no engine is installed")
    return 0 if rows else 1


def _row(name: str, capabilities: Capabilities) -> list[str]:
    flags = (capabilities.partitions, capabilities.batches, capabilities.live)
    return [
        name,
        ", ".join(sorted(capabilities.isolation)),
        *["yes" if flag else "no" for flag in (*flags, capabilities.recovery)],
        ", ".join(sorted(capabilities.faults)) or "none",
        ", ".join(sorted(capabilities.unsupported_rules)) or "none",
    ]
