"""The documents' site: what is written by hand, with what is made of it, as pages.

The build works on a copy, so that what is made stands nowhere in the repository.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from wallaroo_docs.links import broken_links

ROOT = Path(__file__).parents[3]

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # the generator colours what it says for a file too


class SiteError(Exception):
    """The site cannot be built; the text says why."""


def build(directory: Path) -> None:
    """Build the site into a directory, which is emptied first.

    Raises:
        SiteError: the generator refuses a page, or a link leads nowhere.
    """
    with tempfile.TemporaryDirectory(prefix="wallaroo-site-") as work:
        stage = Path(work)
        _copy(stage)
        _generate(stage)
        built = stage / "site"
        if broken := broken_links(built):
            raise SiteError("\n  ".join(["links that lead nowhere, by page:", *broken]))
        if directory.exists():
            shutil.rmtree(directory)
        shutil.move(built, directory)


def _copy(stage: Path) -> None:
    shutil.copy(ROOT / "mkdocs.yml", stage)
    shutil.copytree(
        ROOT / "docs",
        stage / "docs",
        ignore=shutil.ignore_patterns("tools", "*.py", "__pycache__"),
    )


def _generate(stage: Path) -> None:
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(  # noqa: S603 - our own command
        command, cwd=stage, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = _COLOUR.sub("", done.stdout + done.stderr).partition("Traceback")[0]
        raise SiteError(f"the generator refuses the pages:\n{said}")
