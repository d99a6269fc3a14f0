"""For every kind of finding a planted application is caught; clean ones come out clean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from wallaroo_conformance.report import BROKEN, INCOMPLETE, KEPT

from wallaroo.cli.main import main

PLANTED = Path(__file__).parent / "planted"
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_bytes(b"a\nc\nb\na\nd\nb\n")
    return path


@pytest.mark.parametrize(
    ("app", "kind"),
    [
        ("clock", "clock"),
        ("chance", "random"),
        ("hash_order", "hash order"),
        ("process_state", "process-wide state"),
        ("unflagged", "unflagged-mutation"),
        ("shared", "shared-message"),
        ("unpicklable", "unportable"),
    ],
)
def test_a_planted_fault_is_caught(app: str, kind: str, words: Path, tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    path = str(PLANTED / f"{app}.py")
    assert main(["conform", "--app", path, "--lines", str(words), "--json", str(found)]) == BROKEN
    findings = json.loads(found.read_text())["findings"]
    assert [finding["kind"] for finding in findings] == [kind]
    assert findings[0]["step"] == "tally"
    assert findings[0]["key"] == "'b'"
    assert findings[0]["input"] == [["words", "b"]]


def test_an_application_without_a_fault_comes_out_clean(words: Path) -> None:
    path = str(PLANTED / "clean.py")
    assert main(["conform", "--app", path, "--lines", str(words)]) == KEPT


def test_an_example_comes_out_clean(words: Path) -> None:
    path = str(EXAMPLES / "word_count.py")
    assert main(["conform", "--app", path, "--lines", str(words)]) == KEPT


def test_an_application_that_cannot_be_run_is_no_verdict(words: Path, tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere.py")
    assert main(["conform", "--app", missing, "--lines", str(words)]) == INCOMPLETE
    assert main(["conform", "--app", str(PLANTED / "clean.py")]) == INCOMPLETE
