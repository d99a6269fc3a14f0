"""For every kind of finding a planted application is caught; clean ones come out clean."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from running import wallaroo
from wallaroo_conformance.cli.app import payloads_of, rounds
from wallaroo_conformance.judge.results import BROKEN, INCOMPLETE, KEPT
from wallaroo_conformance.portability.inputs import grown_inputs

from wallaroo.cli.main import main
from wallaroo.loading import load_application


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


PLANTED = Path(__file__).parent / "planted"
WORDS = PLANTED / "words.py"
EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_bytes(b"a\nc\nb\na\nd\nb\n")
    return path


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("system's chance", "random"),
        ("address", "random"),
        (
            "process, clock, hash order, chance",
            "random, clock, hash order, process-wide state",
        ),
        ("unflagged, unpicklable", "unflagged-mutation, unportable"),
        ("shared", "shared-message"),
        ("none", None),
    ],
)
def test_a_planted_fault_is_caught(
    fault: str, kind: str | None, words: Path, tmp_path: Path
) -> None:
    found = tmp_path / "found.json"
    options = ["--lines", str(words), "--json", str(found), "--fault", fault]
    assert main(["conform", "--app", str(WORDS), *options]) == (KEPT if kind is None else BROKEN)
    findings = json.loads(found.read_text())["findings"]
    assert ", ".join(finding["kind"] for finding in findings) == (kind or "")
    for finding in findings:
        assert (finding["step"], finding["key"]) == ("tally", "'b'")
        assert finding["input"] == [["words", "b"]]


ORDERS = str(PLANTED / "orders.py")
SAMPLES = [b"a=7", b"b=1", b"a=2"]


def found_in_orders(tmp_path: Path, *options: str) -> tuple[dict, str]:
    """Return what is found, and what is printed.

    In a fork: Hypothesis also draws what stands in modules that are imported, and here that is
    whatever other tests have imported.
    """
    found = tmp_path / "found.json"
    done = wallaroo("conform", "--app", ORDERS, "--json", found, *options, data="")
    assert done.returncode == BROKEN, done.stderr
    return json.loads(found.read_text()), done.stdout


@pytest.mark.parametrize("kind", ["frames", "lines"])
def test_samples_are_frames_if_the_whole_file_is(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "samples"
    path.write_bytes(b"".join(map(frame, SAMPLES)) if kind == "frames" else b"\n".join(SAMPLES))
    application = load_application(ORDERS, placeholders=True)
    assert payloads_of(path, application, "orders", "samples") == SAMPLES
    assert f"3 {kind}" in capsys.readouterr().err


def test_input_grown_from_samples_meets_what_no_sample_has(tmp_path: Path) -> None:
    samples = tmp_path / "samples"
    samples.write_bytes(b"\n".join(SAMPLES))
    summary, suite, page = [tmp_path / name for name in ("summary.md", "suite.xml", "page.html")]
    reports = ["--markdown", str(summary), "--junit", str(suite), "--html", str(page)]
    found, printed = found_in_orders(tmp_path, "--samples", str(samples), "--seed", "1", *reports)
    [finding] = found["findings"]
    assert (finding["kind"], finding["step"]) == ("unflagged-mutation", "tally")
    [[_, payload]] = finding["input"]
    assert re.fullmatch(r"b=\d+", payload)  # of which no part can be left out
    assert int(payload[2:]) > 5
    smallest = {
        (one["where"], one["reason"], one["error_type"]): one["input"]
        for one in found["dead letters"]
    }
    assert smallest["decoder", "decode", "ValueError"] == [["orders", ""]]
    assert smallest["share", "raised", "ZeroDivisionError"] == [["orders", "=0"]]
    [[_, payload]] = smallest["decoder", "decode", "UnicodeDecodeError"]
    assert len(payload) == 1
    assert found["footer"] == {"findings": 1, "dead letters": len(smallest)}
    assert "not reached by any input: encode (sink 0 of pipeline 'orders')" in printed
    assert "✗ unflagged-mutation: step 'tally', key 'b'" in summary.read_text()
    assert "ZeroDivisionError" in page.read_text()
    assert ET.parse(suite).find("testsuite").get("failures") == "1"


def test_payloads_come_from_the_strategy_beside_the_application(tmp_path: Path) -> None:
    found, _ = found_in_orders(tmp_path, "--cases", "60")
    assert [finding["input"] for finding in found["findings"]] == [[["orders", "b=6"]]]
    # What the strategy does not give is never tried, not even in a reduction.
    assert [(one["where"], one["input"]) for one in found["dead letters"]] == [
        ("share", [["orders", "a=0"]])
    ]


def test_equal_seeds_grow_equal_inputs_and_time_brings_more() -> None:
    inputs = grown_inputs([("orders", b"a=7"), ("orders", b"b=1")])
    assert inputs.logs(20, 1) == inputs.logs(20, 1) != inputs.logs(20, 2)
    drawn = iter(rounds(inputs, Namespace(budget=60.0, cases=5, seed=0)))
    assert next(drawn) != next(drawn)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("3", "returned a int"),
        ("{}", "from each source to one: words"),
        ("__import__('hypothesis').strategies.text()", "drew a str; payloads are bytes"),
    ],
)
def test_a_strategy_of_something_else_is_refused(
    returned: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app = tmp_path / "app.py"
    clean = WORDS.read_text()
    app.write_text(f"{clean}\n\ndef wallaroo_payloads():\n    return {returned}\n")
    assert main(["conform", "--app", str(app)]) == INCOMPLETE
    assert said in capsys.readouterr().err


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what the examples' own scripts make up."""
    place = tmp_path_factory.mktemp("inputs")
    log = _made("access_log.py", "generate").splitlines(keepends=True)[:24]
    (place / "log").write_bytes(_made("access_log.py", "mark", given=b"".join(log)))
    for stream in ("orders", "market-data"):
        (place / stream).write_bytes(_made("market_feed.py", stream, "--messages", "12"))
    return place


def _made(script: str, *arguments: str, given: bytes = b"") -> bytes:
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout


@pytest.mark.parametrize(
    ("app", "arguments"),
    [
        ("sessions", ["--lines", "log"]),  # it has datetimes in its messages
        pytest.param(
            "market_spread",
            ["--frames", "orders", "--frames", "market-data", "--clock", "0", "--engine", "spark"],
            marks=[
                pytest.mark.xdist_group("spark"),  # in the session that all such tests share
                pytest.mark.nightly("tests/spark has it on Spark, and others here what is found"),
            ],
        ),
    ],
)
def test_an_example_comes_out_clean(app: str, arguments: list[str], inputs: Path) -> None:
    files = [str(inputs / one) if (inputs / one).exists() else one for one in arguments]
    path = str(EXAMPLES / f"{app}.py")
    assert main(["conform", "--app", path, *files]) == KEPT


def test_what_depends_on_the_clock_in_an_example_is_found(
    inputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(EXAMPLES / "market_spread.py")
    files = ["--frames", str(inputs / "orders"), "--frames", str(inputs / "market-data")]
    assert main(["conform", "--app", path, *files]) == BROKEN
    assert "clock: step" in capsys.readouterr().out


@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_an_application_that_ends_its_process_is_no_verdict(
    end: str, words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app = tmp_path / "app.py"
    clean = WORDS.read_text()
    app.write_text(f"{clean}\n\nimport os, sys\nif os.getpid() != {os.getpid()}:\n    {end}\n")
    assert main(["conform", "--app", str(app), "--lines", str(words)]) == INCOMPLETE
    assert "cannot be run" in capsys.readouterr().err


def test_an_application_that_uses_standard_streams_and_the_end_of_its_process_comes_out_clean(
    words: Path, tmp_path: Path
) -> None:
    app = tmp_path / "app.py"
    clean = WORDS.read_text()
    app.write_text(
        f"{clean}\n\nimport atexit, os, sys\nif os.getpid() != {os.getpid()}:\n"
        "    assert sys.stdin.read() == ''\n    os.write(1, b'5\\n')\n"
        "    atexit.register(os._exit, 0)\n"
    )
    assert main(["conform", "--app", str(app), "--lines", str(words)]) == KEPT


def test_an_application_that_cannot_be_run_is_no_verdict(words: Path, tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere.py")
    assert main(["conform", "--app", missing, "--lines", str(words)]) == INCOMPLETE
    assert main(["conform", "--app", str(WORDS)]) == INCOMPLETE
