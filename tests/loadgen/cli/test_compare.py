"""`wallaroo compare` as a user types it, on files whose runs are made up (seeded)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from commands_here import Done, wallaroo_here
from load_runs import result
from running import wallaroo
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.presentation.files import write_json

MACHINE = {"processor": "Quick <b>One</b>", "processors": 2, "python": "3.11.7"}


def compare(*words: str | Path) -> Done:
    return wallaroo_here("compare", *words)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a file of runs and returns its path."""
    random = np.random.default_rng(11)

    def one(scale: float, spread: float, day: int) -> Result:
        middle = np.log(3000 * scale) + random.normal(0, spread)
        latencies = np.exp(random.normal(middle, 0.3, 1000)).astype(int)
        started = f"2026-01-{day:02}T00:00:00+00:00"
        return result(latencies, label="echo at 1,000/s", started=started, machine=MACHINE)

    def file(name: str, runs: int = 5, scale: float = 1.0, spread: float = 0.02, day: int = 1):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        write_json(path, [one(scale, spread, day) for _ in range(runs)])
        return path

    return file


def outcomes(path: Path) -> dict[str, str]:
    """Return what happened to each test case of a JUnit file, by name."""
    cases = ET.parse(path).getroot().iter("testcase")
    return {case.attrib["name"]: case[0].tag for case in cases}


def test_not_worse_is_exit_0(write: Callable[..., Path]) -> None:
    words = [write("before.json"), write("after.json"), "--bound", "0.25"]
    done = wallaroo("compare", *words, data="")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("not worse within 25 %") == 3
    assert done.stdout.splitlines()[-1] == "not worse"


def test_worse_is_exit_1(write: Callable[..., Path], tmp_path: Path) -> None:
    junit = tmp_path / "found.xml"
    words = ["--metric", "p50", "--metric", "p95=0.9", "--metric", "mean", "--junit", junit]
    done = compare(write("before.json"), write("after.json", scale=1.5), *words)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "after.json: p50 × 1.5" in done.stdout  # noqa: RUF001 - multiplication
    assert "worse by more than 10 %" in done.stdout
    assert outcomes(junit) == {
        "p50 within 10 %": "failure",
        "p95 within 90 %": "system-out",
        "mean within 10 %": "failure",
    }


def test_what_cannot_be_told_is_exit_6_with_the_repeats_that_would(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    junit = tmp_path / "found.xml"
    before, after = write("before.json", 2, spread=0.3), write("after.json", 2, spread=0.3)
    done = compare(before, after, "--metric", "p50", "--junit", junit)
    assert done.returncode == 6, done.stdout + done.stderr
    assert "cannot tell whether within 10 %" in done.stdout
    assert "runs on each side would" in done.stdout
    assert outcomes(junit) == {"p50 within 10 %": "error"}


def test_runs_that_split_are_worse_though_their_median_is_better(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    split = tmp_path / "split.json"
    random = np.random.default_rng(3)
    halves = [
        np.r_[random.normal(1_800, 50, 520), random.normal(6_000, 50, 480)].astype(int)
        for _ in range(5)
    ]
    started = "2026-01-01T00:00:00+00:00"
    write_json(split, [result(half, label="echo", started=started) for half in halves])
    done = compare(write("before.json"), split, "--bound", "0.25")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "p90 × 1.3" in done.stdout  # noqa: RUF001 - multiplication
    assert "worse by more than 25 %" in done.stdout


def test_one_run_is_exit_6_however_large_the_ratio(write: Callable[..., Path]) -> None:
    done = compare(write("before.json", 1), write("after.json", 1, scale=9))
    assert done.returncode == 6, done.stdout + done.stderr
    assert "one run does not show how much runs differ" in done.stdout


def test_the_page_has_both_spectra_and_escapes_names(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    done = compare(write("before.json"), write("<i>after.json"), "--bound", "0.25", "--html", page)
    assert done.returncode == 0, done.stdout + done.stderr
    html = page.read_text()
    assert "<h3>Percentile spectrum</h3>" in html
    assert "<h3>Ratio to the baseline</h3>" in html
    assert "&lt;i&gt;after.json" in html
    assert "<i>" not in html
    assert "Quick &lt;b&gt;One" in html
    assert len(html) < 300_000


def test_runs_of_a_search_are_no_repetitions(write: Callable[..., Path], tmp_path: Path) -> None:
    path = tmp_path / "search.json"
    runs = [result([1000] * 10), result([1000] * 10)]
    runs[1].config["rate"] = 2000.0
    write_json(path, runs)
    done = compare(path, path)
    assert done.returncode == 2
    assert "its runs are not repetitions: rate: 2000.0, not 1000.0" in done.stderr


def test_a_history_shows_its_changes(write: Callable[..., Path], tmp_path: Path) -> None:
    for day in range(1, 17):
        # Named against their order: when a run was made is what counts.
        scale = 1.0 if day < 6 else 1.3
        write(f"history/build-{30 - day}.json", 2, scale=scale, day=day)
    (tmp_path / "history" / "other.json").write_text("{}")
    page, junit = tmp_path / "page.html", tmp_path / "found.xml"
    words = ["--history", tmp_path / "history", "--html", page, "--junit", junit]
    done = compare(*words, "--metric", "p99")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "from build-24.json on" in done.stdout
    assert "worse by more than 10 %" in done.stdout
    assert "left out" in done.stderr
    assert "other.json" in done.stderr
    assert "<h3>History</h3>" in page.read_text()
    assert outcomes(junit) == {"p99: newest level within 10 %": "failure"}
    assert compare(*words, "--metric", "p99", "--bound", "0.5").returncode == 0


def test_a_history_that_is_too_short_is_exit_6(write: Callable[..., Path], tmp_path: Path) -> None:
    for day in range(1, 5):
        write(f"history/{day}.json", 1, day=day)
    done = compare("--history", tmp_path / "history", "--metric", "p50")
    assert done.returncode == 6, done.stdout + done.stderr
    assert "cannot tell; 10 files or more are needed" in done.stdout


def test_what_cannot_be_meant_is_exit_2(write: Callable[..., Path], tmp_path: Path) -> None:
    file = write("good.json", 2)
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    text = tmp_path / "notes.txt"
    text.write_text("p50 was fine\n")
    empty = tmp_path / "empty"
    empty.mkdir()
    for words, message in [
        ([file], "two files or more are needed"),
        ([file, bad], "not written by wallaroo load --json"),
        ([file, text], f"{text}: not JSON: "),
        (
            [file, tmp_path / "none.json"],
            f"compare: {tmp_path}/none.json: No such file or directory",
        ),
        ([file, file, "--metric", "p101"], "a metric is a percentile such as p99.9"),
        ([file, file, "--metric", "p50=x"], "a bound is a number from 0 on"),
        ([file, file, "--metric", "p50", "--metric", "p50=0.2"], "p50 has more than one bound"),
        ([file, file, "--bound", "-1"], "a bound is a number from 0 on"),
        ([file, "--history", tmp_path], "files or --history DIR, not both"),
        (["--history", tmp_path / "none"], "no such directory"),
        (["--history", empty], "no file of wallaroo load --json with a valid run"),
        ([file, file, "--html", tmp_path / "no" / "x.html"], "no such directory"),
    ]:
        done = compare(*words)
        assert done.returncode == 2, (words, done.stderr)
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1
