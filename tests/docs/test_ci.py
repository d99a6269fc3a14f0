"""An engine's repository, as `wallaroo new --engine` writes it: its README and its CI files hold.

What they say is run as it stands there, in a fresh environment.
"""

import contextlib
import os
import re
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml
from wallaroo_conformance.judge.rules import RULES
from wallaroo_docs.pages import DOCS

from wallaroo.cli.main import main

# One repository and one environment for all, so one worker.
pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("ci")]

ROOT = DOCS.parent
FEW = "--cases 100"  # which the machine's speed does not change, as it does what seconds hold
ACTION = ROOT / ".github" / "actions" / "conform" / "action.yml"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A virtual environment; what the steps install needs nothing from elsewhere: it is here."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, symlinks=True)
    [packages] = place.glob("lib/python*/site-packages")
    packages.joinpath("here.pth").write_text(
        "".join(f"{path}\n" for path in sys.path if path.endswith("site-packages"))
    )
    for command in ("pip", "pytest"):
        script = place / "bin" / command
        script.write_text(f'#!/bin/sh\nexec "{place}/bin/python" -m {command} "$@"\n')
        script.chmod(0o755)
    return place


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    place = tmp_path_factory.mktemp("place")
    with contextlib.chdir(place):
        assert main(["new", "--engine", "toy"]) == 0
    return place / "toy"


def test_git_takes_all_files_of_a_new_repository(tmp_path):
    with contextlib.chdir(tmp_path):
        assert main(["new", "--engine", "toy"]) == 0
    place = tmp_path / "toy"
    written = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    for command in ("init", "add ."):
        subprocess.run(["git", *command.split()], cwd=place, check=True, capture_output=True)
    listed = subprocess.run(["git", "ls-files"], cwd=place, check=True, capture_output=True)
    assert set(listed.stdout.decode().split()) == written


@pytest.fixture(scope="module")
def runner(environment, repository):
    """Runs a step's text in the repository, whose engine is installed; returns the exit code."""

    def run(text: str, variables: Mapping[str, str]) -> int:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
            cwd=repository,
            env={
                **kept,
                **variables,
                "PATH": f"{environment / 'bin'}{os.pathsep}{kept['PATH']}",
                "PIP_NO_INDEX": "1",
                "PIP_NO_BUILD_ISOLATION": "0",  # which is how pip spells "without isolation"
                "GITHUB_STEP_SUMMARY": str(repository / "summary.md"),
            },
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        print(done.stdout, done.stderr)
        return done.returncode

    [install] = [line for line in readme_commands(repository) if line.startswith("pip install")]
    assert run(install, {}) == 0
    return run


def readme_commands(repository: Path) -> list[str]:
    """Return what the README says to type for the first report, then for the tests."""
    readme = (repository / "README.md").read_text().replace("../wallaroo", str(ROOT))
    first, tests, _ = re.findall(r"^```sh\n(.*?)^```$", readme, re.M | re.S)
    return [line.partition("#")[0].strip() for line in (first + tests).splitlines()]


def expanded(text: str, known: Mapping[str, str]) -> str:
    """Return a text of an action with its expressions put in."""
    return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: known[found[1]], text)


def action() -> dict:
    return yaml.safe_load(ACTION.read_text())


def install_step() -> dict:
    [step] = [one for one in action()["runs"]["steps"] if one.get("name") == "Install"]
    return step


@pytest.fixture
def broken_engine(repository):
    """It loses its entities."""
    engine = repository / "toy_engine" / "__init__.py"
    text = engine.read_text()
    right = "calls.trace(results, states, case.partitions)"
    assert right in text
    engine.write_text(text.replace(right, "calls.trace(results)"))
    yield
    engine.write_text(text)


def test_the_readme_of_a_new_engine_leads_to_a_report_and_to_tests(repository, runner):
    make, activate, _, report, own, _, both = readme_commands(repository)
    assert (make, activate) == ("python3 -m venv .venv", ". .venv/bin/activate")
    for command in [
        report.replace("--budget 60s", f"{FEW} | grep 'toy: kept'"),
        f"{own} | grep '1 passed'",
        f"{both} --wallaroo-cases 100 -v -n 2 > both.txt",
        "grep 'PASSED tests/test_engine.py::' both.txt",
        "grep 'PASSED .*frame-2: ' both.txt",
        # One for each rule, one that the check is complete, and the engine's own.
        f"[ $(grep -cE '\\] (PASSED|SKIPPED) ' both.txt) = {len(RULES) + 2} ]",
    ]:
        assert runner(command, {}) == 0, command


@pytest.mark.usefixtures("broken_engine")
def test_the_job_for_gitlab_fails_with_a_broken_engine_and_keeps_what_it_found(repository, runner):
    jobs = yaml.safe_load((repository / ".gitlab-ci.yml").read_text())
    job = jobs[".conform"]
    variables = job["variables"] | jobs["conformance"].get("variables", {})
    assert job["before_script"] == [install_step()["run"]]  # which is run above
    [check] = job["script"]
    variables["CHECK"] += f" {FEW}"
    assert runner(check, variables) == 1
    kept = [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]
    assert all((repository / path).exists() for path in kept)
    assert list((repository / "wallaroo-counterexamples").glob("*.json"))
    suite = ET.parse(repository / "conformance.xml").find("testsuite")
    assert int(suite.get("failures")) > 0
    summary = (repository / "conformance.md").read_text()
    assert "| toy | ✗ broken |" in summary
    assert "wallaroo replay wallaroo-counterexamples/" in summary


@pytest.mark.nightly("its commands are those of the README and of the job for GitLab")
def test_the_action_passes_with_a_right_engine(repository, runner):
    workflow = yaml.safe_load((repository / ".github/workflows/conformance.yml").read_text())
    _, use, _ = workflow["jobs"]["conformance"]["steps"]
    assert ROOT / use["uses"].removeprefix("./vendor/wallaroo/") == ACTION.parent
    inputs, steps = action()["inputs"], action()["runs"]["steps"]
    given = {name: one.get("default") for name, one in inputs.items()} | use["with"]
    assert set(given) == set(inputs)
    assert given["check"] == "--engine toy"
    # Budget and seed depend in the workflow on what started it.
    given |= {"check": f"--engine toy {FEW}", "budget": "60", "seed": "0"}
    known = {f"inputs.{name}": value for name, value in given.items()}
    known |= {"github.action_path": str(ACTION.parent), "github.run_id": "1"}
    for step in steps:
        if "run" in step:
            variables = {name: expanded(text, known) for name, text in step.get("env", {}).items()}
            assert runner(step["run"], variables) == 0, step["name"]
    assert "| toy | ✓ kept |" in (repository / "summary.md").read_text()
    [upload] = [step for step in steps if "upload-artifact" in step.get("uses", "")]
    reports, cases = upload["with"]["path"].split()
    endings = {path.suffix for path in repository.glob(reports)}
    assert endings == {".html", ".xml", ".json", ".md"}
    assert cases == "wallaroo-counterexamples/"


def test_the_job_for_gitlab_is_the_one_that_others_include(repository):
    here = yaml.safe_load((repository / ".gitlab-ci.yml").read_text())[".conform"]
    [ours] = yaml.safe_load((ROOT / ".gitlab" / "conform.yml").read_text()).values()
    here["variables"] |= {"CHECK": ""}
    assert here == ours


def test_a_new_engine_is_the_adapter_to_copy(repository):
    adapter = (ROOT / "conformance" / "adapters" / "naive.py").read_text()
    [body] = re.findall(r"^        application, calls = .*?(?=^\S)", adapter, re.M | re.S)
    assert body.rstrip() in (repository / "toy_engine" / "__init__.py").read_text()


@pytest.mark.parametrize(
    ("name", "said", "code"), [("toy", "toy is there", 1), ("spark", "installed", 2)]
)
def test_a_new_engine_takes_no_place_that_is_taken(
    repository, name, said, code, capsys, monkeypatch
):
    monkeypatch.chdir(repository.parent)
    assert main(["new", "--engine", name]) == code
    assert said in capsys.readouterr().err
    assert main(["new", "--engine", "my-own"]) == 2
    assert "try: wallaroo new --engine my_own" in capsys.readouterr().err
