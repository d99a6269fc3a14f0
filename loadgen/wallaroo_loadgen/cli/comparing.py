"""The work of `wallaroo compare`: reads files, compares them, shows and writes the result."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from wallaroo.junit import JUnitCase
from wallaroo.text import escaped
from wallaroo_loadgen.comparison.baseline import Bound, Runs, compare, differences
from wallaroo_loadgen.comparison.history import histories_of
from wallaroo_loadgen.comparison.ratio import Verdict
from wallaroo_loadgen.control.result import Metric
from wallaroo_loadgen.presentation.comparison import (
    cases_of_comparison,
    cases_of_history,
    comparison_html,
    history_html,
    print_comparison,
    print_history,
)
from wallaroo_loadgen.presentation.files import read_runs, write_junit
from wallaroo_loadgen.presentation.terminal import console

Shown = tuple[Verdict, Callable[[], str], list[JUnitCase]]
"""What was printed: its verdict, its page, its test cases."""

EXIT_CODES = {Verdict.NOT_WORSE: 0, Verdict.WORSE: 1, Verdict.INCONCLUSIVE: 6}

_USAGE = 2
_DEFAULT = ("p50", "p90", "p99")


def run(namespace: argparse.Namespace) -> int:
    """Compare, print the result, write the files asked for, and return the exit code."""
    try:
        bounds = _bounds(namespace)
        _check_arguments(namespace)
        shown = _compare if namespace.history is None else _history
        verdict, page, cases = shown(namespace, bounds)
        if namespace.html is not None:
            namespace.html.write_text(page(), encoding="utf-8")
        if namespace.junit is not None:
            write_junit(namespace.junit, "wallaroo compare", cases)
        return EXIT_CODES[verdict]
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    except ValueError as error:
        problem = str(error)
    _tell(problem)
    return _USAGE


def _tell(problem: str) -> None:
    print(f"wallaroo compare: {escaped(problem)}", file=sys.stderr)


def _compare(namespace: argparse.Namespace, bounds: Sequence[Bound]) -> Shown:
    files = [_read(path) for path in namespace.files]
    comparison = compare(files[0], files[1:], bounds, increase=namespace.bound)
    print_comparison(console(), comparison)
    cases = cases_of_comparison(comparison)
    return comparison.verdict, lambda: comparison_html(comparison), cases


def _history(namespace: argparse.Namespace, bounds: Sequence[Bound]) -> Shown:
    files: list[Runs] = []
    for path in sorted(namespace.history.glob("*.json")):
        try:
            files.append(_read(path))
        except ValueError as error:
            _tell(f"left out: {error}")
    if not files:
        raise ValueError(f"{namespace.history}: no file of wallaroo load --json with a valid run")
    histories = histories_of(files, bounds)
    print_history(console(), histories)
    verdict = Verdict.of([series.verdict for series in histories])
    return verdict, lambda: history_html(histories), cases_of_history(histories)


def _bounds(namespace: argparse.Namespace) -> list[Bound]:
    """Return the bounds that arguments name.

    Raises:
        ValueError: when one cannot be read, or a metric has two.
    """
    bounds: dict[Metric, Bound] = {}
    for text in namespace.metric or _DEFAULT:
        name, equals, value = text.partition("=")
        metric = Metric.parse(name)
        try:
            increase = float(value) if equals else namespace.bound
        except ValueError:
            increase = -1.0
        if not 0 <= increase < float("inf"):
            raise ValueError(f"a bound is a number from 0 on (0.1: 10 %), not {value or increase}")
        if metric in bounds:
            raise ValueError(f"{metric.name} has more than one bound")
        bounds[metric] = Bound(metric, increase)
    return list(bounds.values())


def _check_arguments(namespace: argparse.Namespace) -> None:
    """Refuse arguments that make no sense, before anything is read.

    Raises:
        ValueError: with what is expected.
    """
    if namespace.history is not None:
        if namespace.files:
            raise ValueError("give files or --history DIR, not both")
        if not namespace.history.is_dir():
            raise ValueError(f"{namespace.history}: no such directory")
    elif len(namespace.files) < 2:
        raise ValueError("two files or more are needed: the first is the baseline")
    if not 0 <= namespace.bound < float("inf"):
        raise ValueError(f"--bound is a number from 0 on (0.1: 10 %), not {namespace.bound}")
    for path in (namespace.html, namespace.junit):
        if path is not None and not path.resolve().parent.is_dir():
            raise ValueError(f"{path}: no such directory")


def _read(path: Path) -> Runs:
    """Return the valid runs of a file; a message names those that are left out.

    Raises:
        ValueError: when there is none, or they are not repetitions of each other.
        OSError: when it cannot be read.
    """
    runs = read_runs(path)
    valid = [run for run in runs if not run.invalid and not run.partial]
    for run in runs:
        if run.invalid or run.partial:
            reason = run.invalid[0] if run.invalid else "interrupted"
            _tell(f"{path}: a run is left out: {reason}")
    if not valid:
        raise ValueError(f"{path}: no valid run")
    for run in valid[1:]:
        different = differences(valid[0], run)
        if different:
            raise ValueError(f"{path}: its runs are not repetitions: {', '.join(different)}")
    return Runs(path.name, valid)
