"""``wallaroo replay``: run a stored case on an engine and show how it differs."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from wallaroo.engine import Engine, load_engine
from wallaroo_conformance.cases.counterexamples import Counterexample, read_counterexample
from wallaroo_conformance.cases.either import module_text
from wallaroo_conformance.cases.reading import BadCaseError
from wallaroo_conformance.cli.engines import chosen_engines
from wallaroo_conformance.judge.claims import Claims
from wallaroo_conformance.judge.differences import Crash, differences, end_of
from wallaroo_conformance.judge.laws import LAWS, blame
from wallaroo_conformance.judge.oracle import Oracle
from wallaroo_conformance.judge.results import BROKEN, INCOMPLETE, KEPT, Failure
from wallaroo_conformance.report.showing import failure_text, trace_lines
from wallaroo_conformance.search.running import Runner


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
    reference = load_engine("reference")
    name = engine.name
    runner = Runner(engine, options=example.options if name == example.engine else None)
    claims = Claims(runner.capabilities)
    case = claims.adapted(runner.adapted(example.case))
    meaning = Oracle(reference).ask([case])[0]
    beyond = claims.beyond(case, meaning.trace, meaning.facts) or runner.beyond(case)
    if case.isolation == "trusting" and meaning.trace.findings:
        beyond = f"trusting mode is not promised to it: {meaning.trace.findings[0].text}"
    if beyond is not None:
        print(f"{name}: unsupported: {beyond}")
        return INCOMPLETE
    actual = runner.run_alone(case)
    if isinstance(actual, Crash) and actual.refusal and runner.capabilities.refuses_in_run:
        print(f"{name}: unsupported: {actual.refusal}")
        return INCOMPLETE
    kinds = differences(*claims.comparable(meaning.trace, actual))
    if not kinds:
        print(f"{name} does what the reference does:")
        print("\n".join(f"  {line}" for line in trace_lines(actual)))
        return KEPT
    law = blame(meaning.facts, kinds, end_of(meaning.trace, actual))
    for known in LAWS:
        if (known.rule, known.name) == (example.rule, example.law) and known.exercised_by(
            meaning.facts
        ):
            law = known
    failure = Failure(law.rule, law.name, law.says, law.cause, case, meaning.trace, actual)
    option = getattr(engine, "option", "")
    print(failure_text(failure, name, option=option, width=shutil.get_terminal_size().columns))
    return BROKEN
