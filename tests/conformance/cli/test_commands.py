"""The commands, as a user types them: exit codes, files, what is printed."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from running import ran
from wallaroo_conformance.cases.counterexamples import STORED
from wallaroo_conformance.judge.results import INCOMPLETE, KEPT

from wallaroo.cli.main import main


def test_conform_writes_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {name: tmp_path / f"report.{name}" for name in ("json", "html", "junit", "markdown")}
    options = [f"--{name}={path}" for name, path in files.items()]
    options.append(f"--store={tmp_path / 'found'}")
    code = main(["conform", "--engine", "reference", "--cases", "100", *options])
    printed = capsys.readouterr()
    assert code == KEPT
    assert "reference: kept" in printed.out
    assert re.search(r"^reference: 100 cases asked for.* \d+ runs in all$", printed.out, re.M)
    assert "Only None filters" in printed.out
    page = files["html"].read_text()
    assert "100 cases asked for" in page
    link = re.search(r'href="([^"]*/sinks\.md)#dead-4"', page)
    assert link is not None
    assert "## dead-4" in (tmp_path / link[1]).read_text()  # it leads there
    assert 'classname="compute-1: Only None filters"' in files["junit"].read_text()
    # Servers are attacked on purpose: what they say of it is kept, and not shown.
    assert "error:" not in printed.err
    assert "(frame-3)" in (tmp_path / "found" / "live-reference.log").read_text()
    assert json.loads(files["json"].read_text())["footer"]["exit"] == KEPT
    assert all(path.stat().st_size > 1_000 for path in files.values())


@pytest.mark.parametrize(
    "arguments",
    [
        ["conform", "--engine", "nobody"],
        ["conform", "--app", "nowhere.py", "--lines", "nothing.txt"],
        ["replay", "nowhere.json"],
        ["replay", "CASE", "--engine", "nobody"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_run_is_no_verdict(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    case = str(next(STORED.glob("*.json")))
    assert main([case if word == "CASE" else word for word in arguments]) == INCOMPLETE
    assert "nobody" in (err := capsys.readouterr().err) or "nowhere" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--engine reference --case 3", "--case"),
        ("--rules state-*,state4", "no rule is called 'state4'; did you mean state-4?"),
        ("--lines input.txt", "--lines is the input of an application; add: --app APP"),
        ("--samples input.txt", "--samples is the input of an application; add: --app APP"),
        ("--output report.html", "--output says where --show writes; for a report write: --html"),
        ("--html HERE", "is a directory; give the name of a file"),
        ("--json HERE/nowhere/report.json", "--json: there is no directory"),
        ("--app app.py --lines input.txt --junit HERE/nowhere/report.xml", "there is no directory"),
        ("--matrix HERE/file", "is a file; give the name of a directory"),
        ("--store HERE/file", "is a file; give the name of a directory"),
    ],
)
def test_what_is_not_known_or_could_not_be_kept_is_refused_before_a_search(
    options: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    words = options.replace("HERE", str(tmp_path)).split()
    assert main(["conform", *words]) == INCOMPLETE
    printed = capsys.readouterr()
    assert problem in printed.err
    assert printed.err.count("\n") == 1
    assert not printed.out


def test_conform_mutants_prints_the_kill_matrix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = tmp_path / "mutants.json"
    # By its rule: the mutants of other engines that break it are killed in tests of their own.
    assert main(["conform", "--mutants", "frame-2", "--json", str(found)]) == KEPT
    matrix = json.loads(found.read_text())["mutants"]
    assert {one["home"] for one in matrix} == {"reference", "edges"}
    assert all(one["ok"] and one["breaks"] == "frame-2" for one in matrix)
    assert "zero-length frames lost" in capsys.readouterr().out


# Few: each check runs all of them.
@pytest.mark.parametrize("path", sorted(STORED.glob("*.json"))[::20], ids=lambda path: path.stem)
def test_replay_of_stored_cases_on_the_reference(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(path), "--engine", "reference"]) == KEPT
    assert "does what the definition does" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["replay"], ["conform", "--show"]])
@pytest.mark.parametrize(("text", "said"), [("{", "not JSON"), ('{"format": "x/1"}', "neither")])
def test_what_is_no_case_is_neither_run_nor_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str], text: str, said: str
) -> None:
    file = tmp_path / "case.json"
    file.write_text(text)
    assert main([*command, str(file)]) == INCOMPLETE
    assert said in (err := capsys.readouterr().err)
    assert err.count("\n") == 1
    assert not file.with_suffix(".html").exists()


def test_replay_as_python_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = next(STORED.glob("state-6-builder-*.json"))
    assert main(["replay", str(path), "--python"]) == KEPT
    script = tmp_path / "case.py"
    script.write_text(capsys.readouterr().out)
    done = ran([sys.executable, script], check=True)
    assert "('first', 0) b'b=1\\n' b'a=1\\n'" in done.stdout


def test_pytest_without_the_plugin_knows_nothing_of_it(tmp_path: Path) -> None:
    done = ran(
        [sys.executable, "-m", "pytest", "--trace-config", "--fixtures", "-p", "no:cacheprovider"],
        cwd=tmp_path,
    )
    assert "wallaroo_run" in done.stdout
    assert "wallaroo_conformance" not in done.stdout
    assert "wallaroo_mutants" not in done.stdout
