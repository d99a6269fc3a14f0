"""``wallaroo top``: the figures of a running application, live in a terminal."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from wallaroo.cli.arguments import count, own_address, seconds
from wallaroo.cli.main import Subparsers
from wallaroo.monitor.client import NoFiguresError, figures_at
from wallaroo.monitor.text import as_lines

_EXAMPLES = """\
On a terminal it goes on until Ctrl-C, also while the application is restarted. In a pipe it prints
the figures once.

examples:
  wallaroo top 127.0.0.1:9090
  wallaroo top 9090 --json | python3 -m json.tool
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "top",
        help="show what a running application does",
        description="Show the figures of an application that runs with --metrics HOST:PORT.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "address",
        metavar="HOST:PORT",
        type=own_address,
        help="the address that --metrics of the run names",
    )
    parser.add_argument(
        "--interval", metavar="SECONDS", type=seconds, default=1.0, help="between two updates (1)"
    )
    parser.add_argument(
        "--times", metavar="N", type=count, help="show the figures N times, then end"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, an object for each update")
    parser.set_defaults(run=top)


def top(options: argparse.Namespace) -> int:
    """Run the command."""
    times = options.times or (None if sys.stdout.isatty() else 1)
    if options.json or not sys.stdout.isatty():
        _print(options, times or 1)
        return 0
    try:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text
    except ImportError:
        _print(options, times)
        return 0
    figures = figures_at(*options.address)  # an address where nobody answers ends it at once
    with Live(console=Console(), screen=True, auto_refresh=False) as live:
        warning = ""
        while True:
            live.update(Text("\n".join([*as_lines(figures), warning]), no_wrap=True), refresh=True)
            if times is not None:
                times -= 1
                if not times:
                    return 0
            time.sleep(options.interval)
            try:
                figures, warning = figures_at(*options.address), ""
            except NoFiguresError as error:
                warning = f"these figures are old: {error}"


def _print(options: argparse.Namespace, times: int | None) -> None:
    """Print the figures this many times; `None`: until it is ended."""
    while True:
        figures = figures_at(*options.address)
        print(_as_text(figures, as_json=options.json), flush=True)
        if times is not None:
            times -= 1
            if not times:
                return
        time.sleep(options.interval)


def _as_text(figures: dict[str, Any], *, as_json: bool) -> str:
    return json.dumps(figures) if as_json else "\n".join(as_lines(figures))
