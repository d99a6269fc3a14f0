"""``wallaroo check``: builds an application, and prints its topology or what is wrong."""

from __future__ import annotations

import argparse

from wallaroo.cli.application import load_named_application
from wallaroo.cli.arguments import APP_HELP
from wallaroo.cli.logs import application_output
from wallaroo.cli.main import Subparsers
from wallaroo.drawing.tree import tree
from wallaroo.engine import load_engine

_EXAMPLES = """\
--in and --out may be left out: no port is opened.

examples:
  wallaroo check word_count.py
  wallaroo check word_count.py --engine spark     can that engine run it?
  wallaroo check market_spread.py --symbols symbols.txt
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "check",
        help="build an application; print its topology or what is wrong with it",
        description="Build an application and print its topology, or what is wrong with it.",
        usage="wallaroo check APP [--engine NAME] [application arguments]",
        epilog=_EXAMPLES,
    )
    parser.add_argument("app", metavar="APP", help=APP_HELP)
    parser.add_argument("--engine", metavar="NAME", help="ask this engine whether it can run it")
    parser.set_defaults(run=check, passes_arguments=True)


def check(options: argparse.Namespace) -> int:
    """Run the command."""
    with application_output():
        application = load_named_application(options, placeholders=True)
    if options.engine is not None:
        load_engine(options.engine).check(application)
    print(tree(application))
    return 0
