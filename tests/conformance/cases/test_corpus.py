"""The store: what earlier checks have found is run first, and what is damaged is passed over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from wallaroo_conformance.cases.case import ConformanceCase, Input
from wallaroo_conformance.cases.corpus import (
    FORMAT,
    MOST_CASES,
    read_corpus,
    readable_counterexamples,
    write_corpus,
)
from wallaroo_conformance.cases.counterexamples import Counterexample
from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.search.budget import Budget
from wallaroo_reference.engine import ReferenceEngine

CASES: list[ConformanceCase] = [ConformanceCase(inputs=(Input(0, b"\xff"),)), ConformanceCase()]


def test_a_corpus_is_read_back_and_holds_no_more_than_it_may(tmp_path: Path) -> None:
    assert read_corpus(tmp_path) == []
    write_corpus(tmp_path / "new", CASES)
    assert read_corpus(tmp_path / "new") == CASES
    many = [ConformanceCase(number=number) for number in range(1, MOST_CASES + 10)]
    write_corpus(tmp_path / "new", many)
    assert read_corpus(tmp_path / "new") == many[:MOST_CASES]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["corpus.jsonl"]


@pytest.mark.parametrize(
    "text",
    [b"", b"{}\n", b"[]\n", b"3\n", b"not JSON", b'{"format": "wallaroo-corpus/2"}\n', b"\xff\xfe"],
    ids=["empty", "no format", "a list", "a number", "not JSON", "another format", "no text"],
)
def test_what_is_no_corpus_is_told_in_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: bytes
) -> None:
    (tmp_path / "corpus.jsonl").write_bytes(text)
    assert read_corpus(tmp_path) == []
    [record] = caplog.records
    assert "corpus.jsonl is passed over" in record.getMessage()


def test_damaged_lines_are_told_together_and_the_others_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [json.dumps({"format": FORMAT}), "{", CASES[0].canonical_json(), '{"format": 1}', "7"]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines))
    assert read_corpus(tmp_path) == CASES[:1]
    [record] = caplog.records
    assert "3 lines are not cases and are passed over, first 2" in record.getMessage()


def test_damaged_counterexamples_are_told_and_the_others_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Counterexample(CASES[0], "frame-2", "zero").store(tmp_path)
    (tmp_path / "damaged.json").write_text("{")
    [example] = readable_counterexamples(tmp_path)
    assert example.case == CASES[0]
    [record] = caplog.records
    assert "damaged.json" in record.getMessage()


def test_a_check_runs_first_what_the_last_one_stored(
    tmp_path: Path, no_state: ReferenceEngine
) -> None:
    check = Check(Budget(64, top_up=0), counterexamples=None, store=tmp_path)
    first = check_engine(no_state, check)
    found = list(tmp_path.glob("*.json"))
    kept = read_corpus(tmp_path)
    assert (first.stored, len(found)) == (0, len(first.failures))
    assert 20 < len(kept) <= 64
    second = check_engine(no_state, check)
    assert second.stored == len(found) + len(kept)
    assert second.generated == second.stored + 64
    assert first.coverage is not None
    assert second.coverage is not None
    assert second.coverage.pairs >= first.coverage.pairs
    assert "entities" not in second.coverage.facts_never
