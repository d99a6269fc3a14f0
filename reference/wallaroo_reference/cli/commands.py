"""The commands' arguments, apart from what they do: help must not wait for the interpreter."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from wallaroo.cli.arguments import (
    APP_HELP,
    KEY_HELP,
    add_on_error,
    add_progress,
    count,
    index,
)
from wallaroo.cli.own_options import RecoveryOptions, add_options

if TYPE_CHECKING:
    from wallaroo.cli.main import Subparsers

_RERUN_EXAMPLES = """\
DIR is the directory of `wallaroo run --record` or --checkpoint, of any engine; the log of a
checkpoint must still be whole. It is not changed, and a run may be using it.

examples:
  wallaroo rerun DIR app.py                       what came out, in numbers
  wallaroo rerun DIR app.py --stdout              the outputs
  wallaroo rerun DIR app.py --outputs out         a file for each sink, with what its peer would get
  wallaroo rerun DIR app.py --json                everything, a JSON object a line
  wallaroo rerun DIR app.py --until 1000          the records 0 to 999
  wallaroo rerun DIR app.py --against changed.py  where two versions first differ, and why
  wallaroo rerun DIR app.py --against changed.py --all --comparable tools.py:without_time
                                                  all differences but those in the time
  wallaroo rerun DIR app.py --against changed.py --all --from CHECKPOINT --last 10000
                                                  for the last records, from the stored state on

exit code: 0 it ran; 1 user code or the first dead letter ended it, or the log is damaged, or with
--against the two differ; 2 it was called wrongly
"""

_EXPLAIN_EXAMPLES = f"""\
Outputs and dead letters are numbered from 0, as `wallaroo rerun --json` prints them.
{KEY_HELP}

examples:
  wallaroo explain DIR app.py --sink votes/0 --output 17  where that output comes from
  wallaroo explain DIR app.py --dead-letter 0             where that dead letter comes from
  wallaroo explain DIR app.py --record 1234               all that is done with that record
  wallaroo explain DIR app.py --entity totals ann         the last messages that met that entity
"""


def register_rerun(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "rerun",
        help="run recorded input again, and compare two versions of an application on it",
        description="Run an application on recorded input, without a network, in isolated mode on "
        "the reference engine.",
        usage="wallaroo rerun DIR APP [options] [application arguments]",
        epilog=_RERUN_EXAMPLES,
    )
    _add_common(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--json", action="store_true", help="print everything, a JSON object a line")
    what.add_argument(
        "--stdout", action="store_true", help="print the outputs as lines, as wallaroo run does"
    )
    what.add_argument(
        "--against",
        metavar="OTHER_APP",
        help="run this application too, and tell where the two first differ",
    )
    parser.add_argument(
        "--all", action="store_true", help="with --against: all differences, and no explanation"
    )
    parser.add_argument(
        "--comparable",
        metavar="MODULE:FUNCTION",
        help="with --against: compare what this function returns for the bytes of an output; an "
        "output for which it returns None is not compared",
    )
    parser.add_argument(
        "--sink", metavar="PIPELINE/N", help="with --stdout: the outputs of this sink only"
    )
    parser.add_argument(
        "--outputs",
        metavar="FOLDER",
        type=Path,
        help="write the outputs of each sink to a file PIPELINE.N in this folder",
    )
    parser.add_argument(
        "--dead-letters",
        metavar="FILE",
        type=Path,
        help="write a JSON line for each dead letter; the file is replaced",
    )
    parser.set_defaults(run=_rerun, passes_arguments=True)


def register_explain(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "explain",
        help="tell where an output of recorded input comes from",
        description="Tell where an output comes from: its frame, the steps on its way, and each "
        "state entity before and after.",
        usage="wallaroo explain DIR APP (--sink PIPELINE/N --output N | --dead-letter N | "
        "--record N | --entity PARTITION [KEY]) [options] [application arguments]",
        epilog=_EXPLAIN_EXAMPLES,
    )
    _add_common(parser)
    parser.add_argument("--sink", metavar="PIPELINE/N", help="the output's sink (the only one)")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--output", metavar="N", type=index, help="the output's number, from 0")
    what.add_argument(
        "--dead-letter", metavar="N", type=index, help="the dead letter's number, from 0"
    )
    what.add_argument("--record", metavar="N", type=index, help="a record's number, from 0")
    what.add_argument(
        "--entity",
        nargs="+",
        metavar="PARTITION [KEY]",
        help="a state entity; without a KEY the only one of a step without keys",
    )
    parser.add_argument("--literal", action="store_true", help="KEY is a Python literal")
    parser.add_argument(
        "--visits",
        metavar="N",
        type=index,
        default=5,
        help="show N earlier messages that met each entity on the way (5)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.set_defaults(run=_explain, passes_arguments=True)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", type=Path, help="the recording")
    parser.add_argument("app", metavar="APP", help=APP_HELP)
    parser.add_argument(
        "--from",
        metavar="CHECKPOINT",
        dest="state",
        type=Path,
        help="begin with the stored state of this checkpoint of the run, at its record",
    )
    parser.add_argument(
        "--last",
        metavar="N",
        type=count,
        help="with --from: run the last N records, also those that the state has met already",
    )
    add_options(parser, RecoveryOptions, "skip_record")
    parser.add_argument(
        "--until", metavar="SEQUENCE", type=count, help="stop before the record of this number"
    )
    add_on_error(parser)
    add_progress(parser)


def _rerun(options: argparse.Namespace) -> int:
    from wallaroo_reference.cli.rerun import rerun

    return rerun(options)


def _explain(options: argparse.Namespace) -> int:
    from wallaroo_reference.cli.explain import explain

    return explain(options)
