"""One stored case: ``wallaroo replay`` runs it, ``wallaroo conform --show`` makes a page of it."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from wallaroo.engine import Engine
from wallaroo.errors import UsageError
from wallaroo_conformance.cases.counterexamples import Counterexample, read_counterexample
from wallaroo_conformance.cases.readable import module_text
from wallaroo_conformance.cases.reading import BadCaseError
from wallaroo_conformance.cli.engines import chosen_engines
from wallaroo_conformance.judge.results import BROKEN, INCOMPLETE, KEPT
from wallaroo_conformance.report.case_page import case_page
from wallaroo_conformance.report.showing import failure_text, trace_lines
from wallaroo_conformance.search.judging import replayed


def replay(options: argparse.Namespace) -> int:
    """Run a stored case on engines, and print how each differs from what judges it."""
    example = _read(options.case)
    if options.python:
        print(module_text(example.case, f"{example.rule} {example.law}".strip()), end="")
        return KEPT
    with _engines(options, example) as engines:
        return max([_run(example, engine) for engine in engines])


def show_case(options: argparse.Namespace) -> int:
    """Write a page about a stored case and print its path; 0 if it was written."""
    file: Path = options.show
    example = _read(file)
    output: Path = options.output or file.with_suffix(".html")
    with _engines(options, example) as engines:
        if len(engines) > 1:
            raise UsageError("--show takes one engine")
        page = case_page(example, engines[0], path=shlex.quote(str(file)))
    output.write_text(page, encoding="utf-8")
    print(output)
    return KEPT


def _read(path: Path) -> Counterexample:
    try:
        return read_counterexample(path)
    except BadCaseError as error:
        raise UsageError(str(error)) from None


@contextlib.contextmanager
def _engines(options: argparse.Namespace, example: Counterexample) -> Iterator[list[Engine]]:
    default = example.engine or "reference"
    with (
        tempfile.TemporaryDirectory() as store,
        chosen_engines(options, store=Path(store), default=default) as engines,
    ):
        yield engines


def _run(example: Counterexample, engine: Engine) -> int:
    result = replayed(example, engine)
    if result.beyond:
        print(f"{engine.name}: unsupported: {result.beyond}")
        return INCOMPLETE
    if result.failure is None:
        print(f"{engine.name} does what the {result.meaning.judged_by} does:")
        print("\n".join(f"  {line}" for line in trace_lines(result.actual)))
        return KEPT
    option = getattr(engine, "option", "")
    width = shutil.get_terminal_size().columns
    print(failure_text(result.failure, engine.name, option=option, width=width))
    return BROKEN
