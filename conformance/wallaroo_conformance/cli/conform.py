"""``wallaroo conform``: does an engine keep the rules?"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wallaroo.engine import load_engine
from wallaroo_conformance.checking import check_engine
from wallaroo_conformance.cli.app import check_app
from wallaroo_conformance.cli.mutants import kill_matrix
from wallaroo_conformance.cli.table import Table
from wallaroo_conformance.html import html
from wallaroo_conformance.junit import junit
from wallaroo_conformance.live import check_live
from wallaroo_conformance.report import INCOMPLETE, Report, reports_to_json, worst
from wallaroo_conformance.search import PROFILES
from wallaroo_conformance.showing import failure_text

if TYPE_CHECKING:
    from wallaroo.cli.main import Subparsers

_EXAMPLES = """\
examples:
  wallaroo conform --engine spark                       a thousand cases, rule by rule
  wallaroo conform --engine spark --engine compiled --html report.html
  wallaroo conform --engine mine --rules 'state-*'      only what is said of state
  wallaroo conform --profile nightly --time 3600        for an hour
  wallaroo conform --mutants                            can the suite fail? the kill matrix
  wallaroo conform --app word_count.py --lines words.txt --engine spark

exit code: 0 all rules kept and exercised, 1 a rule is broken, 2 the check failed or is incomplete
"""

_STORE = Path("wallaroo-counterexamples")


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "conform",
        help="check an engine, rule by rule, against the reference; or an application",
        description="Check an engine, rule by rule, against the reference engine: generated "
        "applications and input, whole traces compared, failures reduced to the smallest.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "--engine",
        action="append",
        metavar="NAME",
        help="the engine; may be given several times (compiled)",
    )
    parser.add_argument(
        "--rules", default="*", metavar="PATTERN", help="rules to report, as 'state-*,route-1' (*)"
    )
    parser.add_argument("--cases", type=_count, metavar="N", help="generate so many cases")
    parser.add_argument("--time", type=float, metavar="S", help="generate for so many seconds")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the generation (0)")
    parser.add_argument(
        "--profile", choices=sorted(PROFILES), default="dev", help="how much to do (dev)"
    )
    parser.add_argument("--job", type=_count, default=256, metavar="N", help="cases in a job (256)")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=_option,
        metavar="K=V",
        help="an engine's threshold, such as a segment size, for every case",
    )
    parser.add_argument("--no-live", action="store_true", help="leave the live server out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the report as JUnit XML")
    parser.add_argument(
        "--store",
        type=Path,
        default=_STORE,
        metavar="DIR",
        help=f"where counterexamples go ({_STORE}/)",
    )
    parser.add_argument(
        "--mutants",
        nargs="?",
        const="*",
        metavar="PATTERN",
        help="check broken engines instead, and print which were found out",
    )
    app = parser.add_argument_group("an application instead of an engine")
    app.add_argument("--app", metavar="APP", help="is this application the same everywhere?")
    app.add_argument("--frames", type=Path, metavar="FILE", help="its input, framed")
    app.add_argument("--lines", type=Path, metavar="FILE", help="its input, a line a message")
    parser.set_defaults(run=conform, passes_arguments=True)


def conform(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.app is None and options.app_arguments:
        print(f"wallaroo conform: unknown: {' '.join(options.app_arguments)}", file=sys.stderr)
        return INCOMPLETE
    if options.app is not None:
        return check_app(options)
    if options.mutants is not None:
        return kill_matrix(options)
    names = list(dict.fromkeys(options.engine or ["compiled"]))
    engines = [load_engine(name) for name in names]
    reports: list[Report] = []
    for engine in engines:
        with Table(engine.name, sys.stderr) as table:
            report = check_engine(
                engine,
                profile=options.profile,
                cases=options.cases,
                seconds=options.time,
                seed=options.seed,
                rules=options.rules,
                job=options.job,
                options=dict(options.option),
                store=options.store,
                live=None if options.no_live else check_live,
                watcher=table.show,
            )
        reports.append(report)
        _print(report)
    for path, text in (
        (options.json, reports_to_json),
        (options.html, html),
        (options.junit, junit),
    ):
        if path is not None:
            path.write_text(text(reports), encoding="utf-8")
            print(f"wrote {path}")
    return worst(reports)


def _print(report: Report) -> None:
    width = shutil.get_terminal_size().columns
    for failure in report.failures:
        print(failure_text(failure, report.engine, width=width))
        print()
    for rule, status in report.rules.items():
        notes = sorted({law.note for law in report.laws if law.rule == rule and law.note})
        note = f"  {notes[0]}" if notes and status != "kept" else ""
        print(f"{rule:10} {status:14} {report.exercised(rule):7} cases{note}")
    for problem in report.problems:
        print(f"{report.engine}: incomplete: {problem}", file=sys.stderr)
    print(f"{report.engine}: {_verdict(report)}")


def _verdict(report: Report) -> str:
    statuses = list(report.rules.values())
    counts = [f"{statuses.count(status)} {status}" for status in dict.fromkeys(sorted(statuses))]
    ran = f"{report.cases} cases in {report.seconds:.1f} s, seed {report.seed}"
    verdict = "INCOMPLETE" if report.exit_code == INCOMPLETE else "kept"
    if report.failures:
        verdict = "BROKEN"
    return f"{verdict}: {', '.join(counts) or 'no rule looked at'}; {ran}"


def _count(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number, 1 or more, not {text!r}")
    return number


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
