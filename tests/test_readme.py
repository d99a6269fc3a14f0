"""What the README shows works as it stands."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def test_the_application_of_the_readme_runs_in_a_shell_pipe(tmp_path: Path) -> None:
    application = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    console = re.search(
        r"```console\n\$ (printf .*?) \| wallaroo (run .*?)\n(.*?)```", README, re.S
    )
    assert application
    assert console
    (tmp_path / "votes.py").write_text(application.group(1))
    printf, run, expected = console.groups()
    done = subprocess.run(
        f"{printf} | {sys.executable} -m wallaroo {run}",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.returncode) == (expected, 0), done.stderr


def test_every_path_the_readme_names_is_there() -> None:
    paths = re.findall(r"\]\((?!http)([^)#]+)\)", README) + re.findall(r"`(docs/[^`]+)`", README)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
