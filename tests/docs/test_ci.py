"""The steps of the jobs in docs/ci.md are run as they stand there, in a fresh environment."""

import os
import re
import subprocess
import sys
import venv
from xml.etree import ElementTree as ET

import pytest
import yaml
from wallaroo_docs.pages import DOCS

pytestmark = [pytest.mark.timeout(300)]

ROOT = DOCS.parent

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "toy-engine"
version = "1"

[project.entry-points."wallaroo.engines"]
toy = "toy_engine:ToyEngine"

[tool.hatch.build.targets.wheel]
only-include = ["toy_engine.py"]
"""

ENGINE = """
from dataclasses import replace

from wallaroo_reference.engine import ReferenceEngine


class ToyEngine(ReferenceEngine):
    name = "toy"

    def capabilities(self):
        return replace(super().capabilities(), live=False)

    def run(self, case):
        trace = super().run(case)
        return replace(trace, KEPT)

    def run_many(self, cases):
        return [self.run(case) for case in cases]
"""


def job(title: str) -> dict:
    """Return a file's one job."""
    text = re.search(
        rf'^```yaml title="{re.escape(title)}"\n(.*?)^```$',
        (DOCS / "ci.md").read_text(),
        re.M | re.S,
    )
    form = yaml.safe_load(text[1])
    return form.get("jobs", form)["conformance"]


@pytest.fixture
def repository(tmp_path):
    """The repository of an engine, still without the engine."""
    path = tmp_path / "repository"
    path.mkdir()
    (path / "pyproject.toml").write_text(PROJECT)
    return path


@pytest.fixture
def runner(tmp_path, repository):
    """Runs a step's text in the repository; returns the exit code."""
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True)
    [packages] = environment.glob("lib/python*/site-packages")
    # What the steps install needs nothing from elsewhere: it is here, and no index is asked.
    packages.joinpath("here.pth").write_text(
        "".join(f"{path}\n" for path in sys.path if path.endswith("site-packages"))
    )

    def run(text: str, variables: dict) -> int:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
            cwd=repository,
            env={
                **kept,
                **variables,
                "WALLAROO": str(ROOT),
                "BUDGET": "2",
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

    return run


def test_the_job_for_github_passes_with_a_right_engine(repository, runner):
    (repository / "toy_engine.py").write_text(ENGINE.replace("KEPT", ""))
    found = job(".github/workflows/conformance.yml")
    assert found["defaults"] == {"run": {"shell": "bash"}}
    for step in found["steps"]:
        if "run" in step:
            assert runner(step["run"], found["env"]) == 0, step["name"]
    assert "toy: kept" in (repository / "summary.md").read_text()
    [upload] = [step for step in found["steps"] if "upload-artifact" in step.get("uses", "")]
    reports, cases = upload["with"]["path"].split()
    endings = {path.suffix for path in repository.glob(reports)}
    assert endings == {".html", ".xml", ".json", ".txt"}
    assert cases == "wallaroo-counterexamples/"


def test_the_job_for_gitlab_fails_with_a_broken_engine_and_keeps_what_it_found(repository, runner):
    (repository / "toy_engine.py").write_text(ENGINE.replace("KEPT", "entities=()"))
    found = job(".gitlab-ci.yml")
    install, check = found["script"]
    assert runner(install, found["variables"]) == 0
    assert runner(check, found["variables"]) == 1
    for command in found["after_script"]:
        assert runner(command, found["variables"]) == 0
    kept = [*found["artifacts"]["paths"], found["artifacts"]["reports"]["junit"]]
    assert all((repository / path).exists() for path in kept)
    assert list((repository / "wallaroo-counterexamples").glob("*.json"))
    suite = ET.parse(repository / "conformance.xml").find("testsuite")
    assert int(suite.get("failures")) > 0
