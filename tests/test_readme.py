"""What the README shows works as it stands."""

import re
import sys
from pathlib import Path

import pytest
from running import ran

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


APPLICATIONS = dict(
    zip(
        re.findall(r"\| wallaroo run (\w+\.py) ", README),
        re.findall(r"```python\n(.*?)```", README, re.DOTALL),
        strict=True,
    )
)
CONSOLES = re.findall(
    r"```console\n\$ (printf .*?) \| wallaroo (run (\w+\.py) .*?)\n(.*?)```", README, re.DOTALL
)


@pytest.mark.parametrize(("printf", "run", "name", "expected"), CONSOLES)
def test_the_applications_of_the_readme_run_in_a_shell_pipe(
    printf: str, run: str, name: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(APPLICATIONS[name])
    done = ran(f"{printf} | {sys.executable} -m wallaroo {run}", shell=True, cwd=tmp_path)
    assert (done.stdout, done.returncode) == (expected, 0), done.stderr


def test_the_first_screen_says_what_is_not_there_and_shows_a_window() -> None:
    first = README.split("\n## ")[0]
    assert "What it is not" in first
    assert "no joins" in first
    assert "visits.py" in first
    assert "range_windows" in APPLICATIONS["visits.py"]


def test_every_path_the_readme_names_is_there() -> None:
    paths = re.findall(r"\]\((?!http)([^)#]+)\)", README) + re.findall(r"`(docs/[^`]+)`", README)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
