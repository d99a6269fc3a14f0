"""The commands' arguments, apart from what they do: help must not wait for Hypothesis."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from wallaroo.cli.arguments import count, duration
from wallaroo.errors import WallarooError
from wallaroo.text import escaped

if TYPE_CHECKING:
    from wallaroo.cli.main import Subparsers

_CONFORM_EXAMPLES = """\
examples:
  wallaroo conform --engine spark                       8,500 cases, rule by rule
  wallaroo conform --engine spark --engine compiled --html report.html
  wallaroo conform --engine-command 'node engine.mjs'    an engine in a process of its own
  wallaroo conform --adapter bytewax --adapter quix --no-live --matrix matrix
  wallaroo conform --engine mine --rules 'state-*'      only the rules about state
  wallaroo conform --budget 2m --no-live                for two minutes
  wallaroo conform --mutants                            can the suite fail? the kill matrix
  wallaroo conform --show state-4-secret-1f2e3d4c5b.json -o case.html
  wallaroo conform --app word_count.py --lines words.txt --engine spark
  wallaroo conform --app word_count.py --samples words.txt --budget 1m

exit code: 0 all rules kept and exercised, 1 a rule is broken, 2 the check failed or is incomplete
Ctrl-C ends the search and reports what was found until then: 1 if a rule is broken, else 2
"""

_REPLAY_EXAMPLES = """\
examples:
  wallaroo replay state-4-secret-1f2e3d4c5b.json
  wallaroo replay state-4-secret-1f2e3d4c5b.json --engine spark
  wallaroo replay state-4-secret-1f2e3d4c5b.json --engine-command 'node engine.mjs'
  wallaroo replay state-4-secret-1f2e3d4c5b.json --python > case.py    as a user would write it

exit code: 0 it does what the reference does, 1 it does not, 2 it could not be run
"""

_NOT_RUN = 2

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600}

_STORE = Path("wallaroo-counterexamples")


def register_conform(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "conform",
        help="check an engine, rule by rule, against the reference; or an application",
        description="Check an engine, rule by rule, against the reference engine: generated "
        "applications and input, whole traces compared, failures reduced to the smallest.",
        epilog=_CONFORM_EXAMPLES,
    )
    add = parser.add_argument
    add(
        "--engine",
        action="append",
        metavar="NAME",
        help="the engine; may be given several times (compiled)",
    )
    _add_command_options(parser)
    add("--rules", default="*", metavar="PATTERN", help="rules to report, as 'state-*,route-1' (*)")
    add("--cases", type=count, metavar="N", help="generate this many cases")
    add(
        "--budget",
        type=_budget,
        metavar="TIME",
        help="run cases for so long, as 90s, 2m or 1h; with --cases whichever ends first "
        "(with --app, --cases inputs are tried again and again until then)",
    )
    add("--seed", type=int, default=0, metavar="S", help="of the generation (0)")
    add("--profile", choices=["ci", "dev", "nightly"], default="dev", help="how much to do (dev)")
    add("--job", type=count, default=4096, metavar="N", help="most cases in a job (4096)")
    add(
        "--option",
        action="append",
        default=[],
        type=_option,
        metavar="K=V",
        help="an engine's threshold, such as a segment size, for every case",
    )
    add(
        "--fail-fast",
        action="store_true",
        help="stop at the first failure of the rules asked for, and report that one",
    )
    add("--no-live", action="store_true", help="leave the live server out")
    add(
        "--brokers",
        metavar="HOST:PORT",
        help="Kafka, for live runs from topic to topic; their topics are deleted at the end",
    )
    add("--json", type=Path, metavar="FILE", help="write the report as JSON")
    add("--html", type=Path, metavar="FILE", help="write the report as a page")
    add(
        "--spec",
        metavar="URL",
        help="where the specification's chapters are published, for links (this checkout)",
    )
    add(
        "--matrix",
        type=Path,
        metavar="DIR",
        help="write a page, JSON and a badge of each engine into this folder",
    )
    add("--junit", type=Path, metavar="FILE", help="write the report as JUnit XML")
    add(
        "--markdown",
        type=Path,
        metavar="FILE",
        help="write the report as Markdown, for the summary page of a CI run",
    )
    add(
        "--store",
        type=Path,
        metavar="DIR",
        help=f"where counterexamples go ({_STORE}/; those of mutants nowhere)",
    )
    add(
        "--mutants",
        nargs="?",
        const="*",
        metavar="PATTERN",
        help="check broken engines instead, and print which were found",
    )
    add(
        "--catalogue",
        action="store_true",
        help="print the operators of generated applications as JSON, with examples of each "
        "operator, for an engine in another language",
    )
    add(
        "--show",
        type=Path,
        metavar="FILE",
        help="write a page about a stored case: the application drawn, and where the engine (the "
        "one it failed on) and the reference part",
    )
    add("--output", "-o", type=Path, metavar="FILE", help="where --show writes (FILE.html)")
    add_app = parser.add_argument_group("an application instead of an engine").add_argument
    add_app("--app", metavar="APP", help="is this application the same everywhere?")
    for option, said in (("--frames", "framed"), ("--lines", "a line a message")):
        add_app(
            option,
            type=Path,
            action="append",
            metavar="FILE",
            help=f"its input, {said}; one file for all sources, or one for each in their order",
        )
    add_app(
        "--samples",
        type=Path,
        action="append",
        metavar="FILE",
        help="samples of its input, frames or lines: input like them is tried; files as above",
    )
    parser.set_defaults(run=_conform, passes_arguments=True)


def register_replay(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "replay",
        help="run a stored case on an engine and show how it differs from the reference",
        description="Run a stored case on an engine and show how it differs from the reference.",
        epilog=_REPLAY_EXAMPLES,
    )
    add = parser.add_argument
    add("case", type=Path, metavar="CASE.json", help="a case that conform stored")
    add("--engine", metavar="NAME", help="the engine (the one it failed on)")
    _add_command_options(parser)
    add(
        "--python", action="store_true", help="print the case as a Python module, and do not run it"
    )
    parser.set_defaults(run=_replay)


def _add_command_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--engine-command",
        action="append",
        default=[],
        metavar="CMD",
        help="an engine in a process of its own, in any language: what to run",
    )
    add(
        "--adapter",
        action="append",
        default=[],
        metavar="NAME",
        help="an adapter for another engine: a script, or the name of one of ours (beam, bytewax, "
        "flink, naive, quix); its environment is made the first time",
    )
    add(
        "--engine-timeout",
        type=duration,
        default=10.0,
        metavar="S",
        help="seconds that such an engine has for a case (10)",
    )


def _conform(options: argparse.Namespace) -> int:
    def start() -> int:
        from wallaroo_conformance.cli.conform import conform

        if options.store is None and options.mutants is None:
            options.store = _STORE
        return conform(options)

    return _could_be_run("wallaroo conform", start)


def _replay(options: argparse.Namespace) -> int:
    def start() -> int:
        from wallaroo_conformance.cli.stored_case import replay

        return replay(options)

    return _could_be_run("wallaroo replay", start)


def _could_be_run(program: str, command: Callable[[], int]) -> int:
    """Run a command; 2 if it could not be run, since 1 means that a rule is broken."""
    from wallaroo.cli.main import explained  # it imports this module

    try:
        return command()
    except BrokenPipeError:
        raise
    except (WallarooError, OSError) as error:
        problem = explained(error)
    print(f"{program}: {escaped(problem)}", file=sys.stderr)
    return _NOT_RUN


def _budget(text: str) -> float:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smh]?)", text)
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"expected a time, as 90s, 2m or 1h, not {text!r}")
    return seconds


def _option(text: str) -> tuple[str, int | float | str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, not {text!r}")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value
