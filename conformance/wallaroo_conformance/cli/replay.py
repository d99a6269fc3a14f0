"""``wallaroo replay``: run a stored case on an engine and show how it differs."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from wallaroo.engine import Engine
from wallaroo_conformance.cases.counterexamples import Counterexample, read_counterexample
from wallaroo_conformance.cases.either import module_text
from wallaroo_conformance.cases.reading import BadCaseError
from wallaroo_conformance.cli.engines import chosen_engines
from wallaroo_conformance.judge.results import BROKEN, INCOMPLETE, KEPT
from wallaroo_conformance.report.showing import failure_text, trace_lines
from wallaroo_conformance.search.replaying import replayed


def replay(options: argparse.Namespace) -> int:
    """Run the command."""
    try:
        example = read_counterexample(options.case)
    except BadCaseError as error:
        print(f"wallaroo replay: {error}", file=sys.stderr)
        return INCOMPLETE
    if options.python:
        print(module_text(example.case, f"{example.rule} {example.law}".strip()), end="")
        return KEPT
    with (
        tempfile.TemporaryDirectory() as store,
        chosen_engines(options, store=Path(store), default=example.engine or "reference") as chosen,
    ):
        return max([_run(example, engine) for engine in chosen])


def _run(example: Counterexample, engine: Engine) -> int:
    name = engine.name
    found = replayed(example, engine)
    if found.beyond:
        print(f"{name}: unsupported: {found.beyond}")
        return INCOMPLETE
    if found.failure is None:
        print(f"{name} does what the reference does:")
        print("\n".join(f"  {line}" for line in trace_lines(found.actual)))
        return KEPT
    option = getattr(engine, "option", "")
    width = shutil.get_terminal_size().columns
    print(failure_text(found.failure, name, option=option, width=width))
    return BROKEN
