"""Counterexamples as files: what one says of itself never decides where it is written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from wallaroo_conformance.cases.counterexamples import (
    STORED,
    Counterexample,
    read_counterexample,
    stored,
)
from wallaroo_conformance.cases.reading import BadCaseError
from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.judge.laws import ANSWERS, DUE, LAWS
from wallaroo_conformance.search.budget import Budget
from wallaroo_reference.engine import ReferenceEngine


@pytest.mark.parametrize("field", ["rule", "law"])
@pytest.mark.parametrize(
    "name", ["../../state-1", "/tmp/state-1", "state-1/..", "state-1\n", "-1", "é-1"]
)
def test_a_rule_or_law_that_is_no_name_is_refused(tmp_path: Path, field: str, name: str) -> None:
    example = next(iter(stored()))
    with pytest.raises(ValueError, match=f"a {field}'s name is made of"):
        replace(example, **{field: name})
    file = example.store(tmp_path)
    form = json.loads(file.read_text())
    file.write_text(json.dumps({**form, field: name}))
    with pytest.raises(BadCaseError, match=rf"{file.name}: a {field}'s name is made of"):
        read_counterexample(file)


def test_every_law_gives_its_counterexamples_a_name(tmp_path: Path) -> None:
    case = next(iter(stored())).case
    laws = [*LAWS, ANSWERS, DUE]
    for law in laws:
        path = Counterexample(case, law.rule, law.name).store(tmp_path)
        assert path.parent == tmp_path
        assert path.name.startswith(law.rule)


def test_stored_counterexamples_are_cases() -> None:
    assert STORED.is_dir()
    assert len(list(stored())) == len(list(STORED.glob("*.json"))) > 0


def test_damaged_counterexamples_are_told_and_the_others_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    case = next(iter(stored())).case
    Counterexample(case, "frame-2", "zero").store(tmp_path)
    (tmp_path / "damaged.json").write_text("{")
    [example] = stored(tmp_path)
    assert example.case == case
    [record] = caplog.records
    assert "damaged.json" in record.getMessage()


def test_a_check_runs_first_what_the_last_one_stored(
    tmp_path: Path, no_state: ReferenceEngine
) -> None:
    check = Check(Budget(32), counterexamples=None, store=tmp_path)
    first = check_engine(no_state, check)
    found = list(tmp_path.glob("*.json"))
    assert (first.stored, len(found)) == (0, len(first.failures))
    second = check_engine(no_state, check)
    assert second.stored == len(found) > 0
    assert second.generated == second.stored + 32
