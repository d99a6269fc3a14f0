"""The page of a counterexample: where two engines part, on every engine, and nothing else."""

from __future__ import annotations

import shlex
import sys
from html import unescape
from pathlib import Path

import pytest
from wallaroo_conformance.cases.case import ConformanceCase, Input
from wallaroo_conformance.cases.composing import row, step
from wallaroo_conformance.cases.counterexamples import STORED, Counterexample, read_counterexample
from wallaroo_conformance.judge.results import KEPT
from wallaroo_conformance.report.case_page import calls_of, case_page
from wallaroo_mutants.catalogue import broken
from wallaroo_reference.engine import CompiledEngine, ReferenceEngine

from wallaroo.cli.main import main

FALSY = STORED / "compute-1-falsy-77030dece7.json"
MUTANT = broken("falsy filtered")


def test_the_way_of_the_messages_ends_where_the_engines_part() -> None:
    first = read_counterexample(FALSY).case
    steps = [step(one.operator) for one in first.steps]
    case = row(*steps, step("identity"), decoder=first.sources[0].decoder, inputs=first.inputs)
    page = unescape(case_page(Counterexample(case, rule="compute-1"), MUTANT, path="case.json"))
    before, behind = page.split("What is behind it", 1)
    assert before.count("≠ here they part") == 1
    assert "gives" in before
    assert "wallaroo replay case.json --engine falsy filtered" in page
    assert "compute-1: Only None filters" in page
    assert "What came out" in behind
    assert "<svg" in page


def test_the_page_loads_nothing_and_escapes() -> None:
    nasty = "<script>alert(1)</script>"
    case = ConformanceCase(inputs=(Input(0, nasty.encode()),))
    page = case_page(Counterexample(case, note=nasty), ReferenceEngine(), path=nasty)
    assert nasty not in page
    assert "<script" not in page
    assert "src=" not in page
    assert "url(" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "reference agrees" in page


def test_engines_that_call_in_another_order_are_compared_node_by_node() -> None:
    steps = (step("fork"), step("identity"))
    inputs = tuple(Input(0, payload) for payload in (b"a", b"b", b"c"))
    case = row(*steps, inputs=inputs, isolation="trusting")
    assert calls_of(CompiledEngine(), case) == calls_of(ReferenceEngine(), case) != {}


def test_a_case_that_the_engine_does_not_run_is_shown_on_the_reference_alone() -> None:
    class NoBatches(ReferenceEngine):
        def check(self, application: object) -> None:
            from wallaroo.errors import UnsupportedTopology

            raise UnsupportedTopology("build-2", "step", "it can do nothing")

    page = case_page(read_counterexample(FALSY), NoBatches(), path="case.json")
    assert "was not judged: refused: " in page
    assert "The way of the messages" not in page


def test_an_engine_in_another_process_shows_what_came_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "out.html"
    command = f"{shlex.quote(sys.executable)} -m wallaroo_conformance.worker reference"
    arguments = ["conform", "--show", str(FALSY), "-o", str(page), "--engine-command", command]
    assert main(arguments) == KEPT
    assert capsys.readouterr().out == f"{page}\n"
    assert "calls user code in another process" in page.read_text()
    assert "What came out" in page.read_text()
