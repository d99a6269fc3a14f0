"""For every kind of finding a planted application is caught; clean ones come out clean."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from wallaroo_conformance.judge.results import BROKEN, INCOMPLETE, KEPT

from wallaroo.cli.main import main

PLANTED = Path(__file__).parent / "planted"
EXAMPLES = Path(__file__).parents[3] / "examples"


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


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what the examples' own scripts make up."""
    place = tmp_path_factory.mktemp("inputs")
    log = _made("access_log.py", "generate").splitlines(keepends=True)[:24]
    (place / "words").write_bytes(b"".join(log[:3]))
    (place / "log").write_bytes(_made("access_log.py", "mark", given=b"".join(log)))
    for stream in ("orders", "market-data"):
        (place / stream).write_bytes(_made("market_feed.py", stream, "--messages", "12"))
    return place


def _made(script: str, *arguments: str, given: bytes = b"") -> bytes:
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout


@pytest.mark.xdist_group("spark")  # in the session that all such tests share
@pytest.mark.parametrize(
    ("app", "arguments"),
    [
        ("word_count", ["--lines", "words"]),
        ("log_status", ["--lines", "log"]),
        ("market_spread", ["--frames", "orders", "--frames", "market-data", "--clock", "0"]),
    ],
)
def test_an_example_comes_out_clean(app: str, arguments: list[str], inputs: Path) -> None:
    pytest.importorskip("pyspark")
    files = [str(inputs / one) if (inputs / one).exists() else one for one in arguments]
    path = str(EXAMPLES / f"{app}.py")
    assert main(["conform", "--app", path, "--engine", "spark", *files]) == KEPT


def test_what_depends_on_the_clock_in_an_example_is_found(
    inputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(EXAMPLES / "market_spread.py")
    files = ["--frames", str(inputs / "orders"), "--frames", str(inputs / "market-data")]
    assert main(["conform", "--app", path, *files]) == BROKEN
    assert "clock: step" in capsys.readouterr().out


def test_an_application_that_cannot_be_run_is_no_verdict(words: Path, tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere.py")
    assert main(["conform", "--app", missing, "--lines", str(words)]) == INCOMPLETE
    assert main(["conform", "--app", str(PLANTED / "clean.py")]) == INCOMPLETE
