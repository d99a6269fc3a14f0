"""``wallaroo graph``: an application's topology, drawn."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from wallaroo.cli.application import load_named_application
from wallaroo.cli.arguments import APP_HELP
from wallaroo.cli.logs import application_output
from wallaroo.cli.main import Subparsers
from wallaroo.drawing.mermaid import mermaid
from wallaroo.drawing.svg import svg
from wallaroo.engine import load_engine
from wallaroo.errors import WallarooError

_EXAMPLES = """\
--in and --out may be left out: no port is opened.

examples:
  wallaroo graph word_count.py                    Mermaid text, for Markdown
  wallaroo graph word_count.py --svg words.svg    a picture
  wallaroo graph word_count.py --svg - | …        the picture into a pipe
  wallaroo graph word_count.py --compiled         the function the reference engine generates
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "graph",
        help="draw an application's topology",
        description="Print an application's topology as Mermaid text, or draw it.",
        usage="wallaroo graph APP [--svg FILE | --compiled [--engine NAME]] "
        "[application arguments]",
        epilog=_EXAMPLES,
    )
    parser.add_argument("app", metavar="APP", help=APP_HELP)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--svg", metavar="FILE", help="draw it into FILE (- for stdout)")
    form.add_argument("--compiled", action="store_true", help="print the source generated for it")
    parser.add_argument(
        "--engine",
        metavar="NAME",
        default="reference",
        help="engine that generates the source (reference)",
    )
    parser.set_defaults(run=graph, passes_arguments=True)


def graph(options: argparse.Namespace) -> int:
    """Run the command."""
    with application_output():
        application = load_named_application(options, placeholders=True)
    if options.compiled:
        compiled_source = getattr(load_engine(options.engine), "compiled_source", None)
        if compiled_source is None:
            raise WallarooError(f"engine {options.engine!r} generates no source to print")
        print(compiled_source(application))
    elif options.svg is None:
        print(mermaid(application))
    elif options.svg == "-":
        sys.stdout.write(svg(application))
    else:
        Path(options.svg).write_text(svg(application), encoding="utf-8")
    return 0
