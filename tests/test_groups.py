"""Tests of a group run in one process: or there would be a JVM in each, and nobody told."""

from __future__ import annotations

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


def test_a_group_is_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "test_where.py").write_text(MODULE)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    workers = [path.read_text() for path in tmp_path.glob("*.txt")]
    assert len(workers) == 8
    assert len(set(workers)) == 1
