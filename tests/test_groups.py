"""Which tests run where: those of a group in one process, those that run alone not forgotten."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

MODULE = """
import os
from pathlib import Path

import pytest


@pytest.mark.xdist_group("together")
@pytest.mark.parametrize("number", range(8))
def test_where(number):
    Path(f"{number}.txt").write_text(os.environ["PYTEST_XDIST_WORKER"])
"""


ROOT = Path(__file__).parents[1]
TOX = (ROOT / "tox.ini").read_text()
MARK = ".".join(("pytest", "mark", "alone"))  # written so that this file has no such mark


def test_a_group_is_in_one_process(tmp_path: Path) -> None:
    # Or there would be a JVM in each, and nobody told.
    (tmp_path / "test_where.py").write_text(MODULE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-n", "2"]
    command += ["--dist", "loadgroup"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # it needs no other
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    workers = [path.read_text() for path in tmp_path.glob("*.txt")]
    assert len(workers) == 8
    assert len(set(workers)) == 1


def test_tests_that_run_alone_are_looked_for_where_they_are() -> None:
    [searched] = re.findall(r'-m "alone and not browser".*?\{posargs:(.*?)\}', TOX, re.DOTALL)
    marked = [path for path in (ROOT / "tests").rglob("test_*.py") if MARK in path.read_text()]
    assert len(marked) > 3
    for path in marked:
        assert any(path.is_relative_to(ROOT / place) for place in searched.split()), path
