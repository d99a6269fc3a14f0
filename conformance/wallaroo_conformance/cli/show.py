"""``wallaroo conform --show FILE``: a counterexample as a page."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from pathlib import Path

from wallaroo_conformance.cases.counterexamples import read_counterexample
from wallaroo_conformance.cases.reading import BadCaseError
from wallaroo_conformance.cli.engines import chosen_engines
from wallaroo_conformance.judge.results import INCOMPLETE, KEPT
from wallaroo_conformance.report.case_page import case_page


def show_case(options: argparse.Namespace) -> int:
    """Write the page and print its path; 0 if it was written, whatever it shows."""
    file: Path = options.show
    try:
        example = read_counterexample(file)
    except BadCaseError as error:
        print(f"wallaroo conform: {error}", file=sys.stderr)
        return INCOMPLETE
    output: Path = options.output or file.with_suffix(".html")
    default = example.engine or "reference"
    with (
        tempfile.TemporaryDirectory() as store,
        chosen_engines(options, store=Path(store), default=default) as engines,
    ):
        if len(engines) > 1:
            print("wallaroo conform: --show takes one engine", file=sys.stderr)
            return INCOMPLETE
        page = case_page(example, engines[0], path=shlex.quote(str(file)))
    output.write_text(page, encoding="utf-8")
    print(output)
    return KEPT
