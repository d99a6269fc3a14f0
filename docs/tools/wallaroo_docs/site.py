"""Builds the documents' site: from pages written by hand, and from generated ones.

The build works on a copy, so that nothing generated stands in the repository.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from wallaroo.cli.new import files_of
from wallaroo_docs.api import api_pages
from wallaroo_docs.broken import folded
from wallaroo_docs.browser_parts import install
from wallaroo_docs.links import broken_links
from wallaroo_docs.llms import write_llms
from wallaroo_docs.page_examples import marked, page_examples

ROOT = Path(__file__).parents[3]

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # the generator colours what it says for a file too


_SCRIPT = """
extra_javascript:
  - path: assets/run/pages.js
    type: module
"""


class SiteError(Exception):
    """The site cannot be built; the text says why."""


def build(directory: Path, *, runnable: bool = True) -> None:
    """Build the site into a directory, which is emptied first.

    Args:
        directory: where to.
        runnable: examples run in their pages, which takes Node; else pages can only be read.

    Raises:
        SiteError: the generator refuses a page, or a link leads nowhere.
        BrowserPartsError: Node is missing, or the parts that it installs.
    """
    with tempfile.TemporaryDirectory(prefix="wallaroo-site-") as work:
        stage = Path(work) / "stage"
        _copy(stage)
        _mark_examples(stage / "docs")
        _add_api(stage / "docs" / "api")
        if runnable:
            with (stage / "mkdocs.yml").open("a", encoding="utf-8") as settings:
                settings.write(_SCRIPT)
            parts = Path(work) / "parts"
            parts.mkdir()
            install(stage / "docs" / "assets" / "run", parts)
        built = pages(stage)
        write_llms(stage, built)
        if directory.exists():
            shutil.rmtree(directory)
        shutil.move(built, directory)


def pages(stage: Path) -> Path:
    """Make pages of a directory's ``mkdocs.yml`` and ``docs``; return the directory they are in.

    Raises:
        SiteError: the generator refuses a page, or a link leads nowhere.
    """
    _generate(stage)
    built = stage / "site"
    if broken := broken_links(built):
        raise SiteError("\n  ".join(["links that lead nowhere, by page:", *broken]))
    return built


def _copy(stage: Path) -> None:
    stage.mkdir()
    shutil.copy(ROOT / "mkdocs.yml", stage)
    counterexamples = ROOT / "conformance" / "counterexamples"
    if counterexamples.is_dir():
        shutil.copytree(counterexamples, stage / "docs" / "counterexamples")
    shutil.copytree(
        ROOT / "docs",
        stage / "docs",
        ignore=shutil.ignore_patterns("tools", "*.py", "__pycache__"),
        dirs_exist_ok=True,
    )


def _mark_examples(docs: Path) -> None:
    data = docs / "assets" / "run" / "examples"
    data.mkdir(parents=True)
    (data / "playground.json").write_text(json.dumps(beginnings()), "utf-8")
    for path in sorted((ROOT / "docs").rglob("*.md")):
        inside = path.relative_to(ROOT / "docs")
        if found := page_examples(path) if inside.parts[0] != "tools" else []:
            name = "-".join(inside.with_suffix("").parts)
            page = docs / inside
            page.write_text(marked(page.read_text("utf-8"), name, found, folded), "utf-8")
            content = json.dumps([example.to_json() for example in found])
            (data / f"{name}.json").write_text(content, "utf-8")


def _add_api(directory: Path) -> None:
    directory.mkdir()
    for name, text in api_pages().items():
        (directory / name).write_text(text, "utf-8")


def beginnings() -> list[dict[str, str]]:
    """Return the applications that the playground offers; other tests run them."""
    [_, votes] = re.findall(r"```python\n(.*?)```", _text("README.md"), re.DOTALL)
    [shout] = [run for run in page_examples(ROOT / "docs" / "tutorial.md") if run.name == "shout"]
    shop = re.findall(r'title="shop.py"\n(.*?)```', _text("docs/tutorial.md"), re.DOTALL)
    windows = files_of("windows", "windows")[Path("windows.py")]
    lines = "09:00:05 ann\n09:00:40 ann\n09:01:10 bob\n> wait 1 min\n09:02:30 ann\n"
    orders = "deliveries: apple 10\norders: apple 3\norders: apple 9\ndeliveries: pear 2\n"
    return [
        {"name": "votes: state for each key", "source": votes, "input": "ann\nbob\nada\n"},
        {
            "name": "shout: the smallest",
            "source": shout.runs[0].source,
            "input": shout.runs[0].input,
        },
        {"name": "shop: two sources, two sinks", "source": shop[0], "input": orders},
        {"name": "windows: counts by the minute", "source": windows, "input": lines},
    ]


def _text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def _generate(stage: Path) -> None:
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(  # noqa: S603 - our own command
        command, cwd=stage, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = _COLOUR.sub("", done.stdout + done.stderr).partition("Traceback")[0]
        raise SiteError(f"the generator refuses the pages:\n{said}")
