"""Figures in the documents are those that the benchmarks kept."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from types import ModuleType

import pytest
from wallaroo_docs.figures import RESULTS, ROOT, UnknownFigureError, shown, with_figures
from wallaroo_docs.pages import DOCS

from wallaroo.loading import load_module

KEPT = sorted(RESULTS.glob("*.json"))


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_the_figures_of_a_page_are_those_last_kept(path: Path) -> None:
    text = path.read_text("utf-8")
    assert with_figures(text) == text, "run: python docs/tools/regenerate.py"


def test_a_figure_that_differs_is_replaced_and_nothing_else() -> None:
    text = "a <!-- figure: tcp throughput/reference ratio .2f -->9<!-- /figure --> b 9"
    assert with_figures(text) == text.replace(">9<", f">{_ratio('tcp', 'throughput/reference')}<")


def test_a_mark_may_go_over_lines() -> None:
    text = (
        "<!--\nfigure: tcp throughput/reference\nratio .2f -->9<!--\n/figure --> <!-- /figure -->"
    )
    assert with_figures(text) == text.replace(">9<", f">{_ratio('tcp', 'throughput/reference')}<")


def _ratio(benchmark: str, name: str) -> str:
    kept = json.loads((RESULTS / f"{benchmark}.json").read_text("utf-8"))
    (ratio,) = [figure["ratio"] for figure in kept["figures"] if figure["name"] == name]
    return f"{ratio:.2f}"


@pytest.mark.parametrize("named", ["tcp nothing ratio .2f", "nobody p50 value .2f"])
def test_a_figure_that_nobody_kept_is_refused(named: str) -> None:
    with pytest.raises(UnknownFigureError, match=f"{named}.*--json benchmarks/results"):
        with_figures(f"<!-- figure: {named} -->1<!-- /figure -->")


@pytest.mark.parametrize(
    ("number", "form", "text"),
    [
        (105_632.4, "4sig", "105,600"),
        (0.1274, "3sig", "0.127"),
        (43.0, "3sig", "43"),
        (1.0, ".2f", "1.00"),
    ],
)
def test_forms(number: float, form: str, text: str) -> None:
    assert shown(number, form) == text


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_all_kept_results_have_one_form(path: Path) -> None:
    _check(json.loads(path.read_text("utf-8")), path.stem)


def test_a_benchmark_keeps_what_the_documents_ask_for(tmp_path: Path) -> None:
    kept = tmp_path / "new" / "in_process.json"
    script = ROOT / "benchmarks" / "in_process.py"
    command = [sys.executable, str(script), "--rounds", "1", "--messages", "200", "--json"]
    subprocess.run([*command, str(kept)], check=True, capture_output=True, timeout=200)
    new = json.loads(kept.read_text("utf-8"))
    _check(new, "in_process")
    date.fromisoformat(new["date"])
    asked = json.loads((RESULTS / "in_process.json").read_text("utf-8"))
    names = {figure["name"] for figure in asked["figures"]}
    assert names <= {figure["name"] for figure in new["figures"]}


def _check(kept: dict, benchmark: str) -> None:
    assert kept["benchmark"] == benchmark
    assert (ROOT / "benchmarks" / f"{benchmark}.py").exists()
    assert set(kept["machine"]) == {"processor", "cores", "load", "python"}
    # What was taken over from the documents says so: they gave no day, and ratios only.
    taken_over = "note" in kept
    assert (kept["date"] is None) == taken_over
    for figure in kept["figures"]:
        assert {"name", "value", "unit"} <= set(figure) <= FIELDS
        assert isinstance(figure["value"], int | float) or taken_over
        assert ("ratio" in figure) == ("baseline" in figure)


@pytest.fixture(scope="module")
def history() -> ModuleType:
    return load_module(ROOT / "benchmarks" / "history.py").module


def test_a_cost_is_a_ratio_or_a_time_and_the_baseline_is_none(history: ModuleType) -> None:
    by_hand = {"unit": "ns", "baseline": "by-hand"}
    figures = [
        {"name": "words/by-hand", "value": 9, "ratio": 1.0, **by_hand},
        {"name": "words/compiled", "value": 9, "ratio": 1.2, **by_hand},
        {"name": "size", "value": 9, "unit": "bytes"},
        {"name": "tick", "value": 9, "unit": "µs"},
        {"name": "rate", "value": 4, "unit": "events/s"},
    ]
    kept = {"benchmark": "b", "figures": figures}
    assert history.costs(kept) == {"b words/compiled": 1.2, "b tick": 9, "b rate": 0.25}


def test_what_got_slower_is_told_from_noise(history: ModuleType) -> None:
    older = {"same": 2.0, "slow": 3.0, "wild": 1.0}
    pairs = [
        (older, {"same": 2 * noise, "slow": 3.2 * noise, "wild": noise**9})
        for noise in (0.99, 1.01, 1.0, 0.98, 1.02)
    ]
    said = {name: one.verdict(history.BOUND).value for name, one in history.changes(pairs).items()}
    assert said == {"same": "not worse", "slow": "worse", "wild": "inconclusive"}


def test_each_line_of_the_history_can_be_compared_with(history: ModuleType) -> None:
    for line in history.HISTORY.read_text("utf-8").splitlines():
        run = json.loads(line)
        date.fromisoformat(run["date"])
        assert set(history.same_machine()) < set(run["machine"])
        assert re.fullmatch("[0-9a-f]{12}", run["commit"])
        assert all(cost > 0 for cost in run["costs"].values())


FIELDS = {"name", "value", "unit", "ratio", "baseline"}
