"""What the pages say to type and to write is typed and written, and does what they say."""

import re

import pytest
from commands_here import wallaroo_here
from wallaroo_docs.pages import DOCS, Page, pages
from wallaroo_docs.pictures import pictures

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.stem)
def test_page(path, tmp_path):
    with Page(path, tmp_path) as page:
        for example in page.document:
            example.evaluate()


COMMANDS = ("check", "engines", "graph", "new", "receive", "route", "run", "send")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_line_page_has_each_option_and_no_other(command):
    page = (DOCS / "cli.md").read_text("utf-8")
    section = re.search(rf"^## wallaroo {command}$(.*?)^## ", page, re.MULTILINE | re.DOTALL)[1]
    table = "\n".join(line.partition(" | ")[0] for line in section.splitlines() if "| `" in line)
    helped = wallaroo_here(command, "--help").stdout
    options = helped.partition("options:")[2].partition("\nlogging:")
    lines = re.findall(r"^  (-\S.*?)(?:  |$)", options[0], re.MULTILINE)
    offered = {option for line in lines for option in OPTION.findall(line)} - {"--help"}
    assert set(OPTION.findall(table)) == offered


@pytest.mark.parametrize(("path", "current"), pictures(), ids=lambda one: getattr(one, "stem", ""))
def test_pictures_are_current(path, current):
    assert path.read_text("utf-8") == current


def test_the_readme_s_application_is_the_learner_s():
    readme, learner = [
        re.findall(r"```python[^\n]*\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
        for path in (DOCS.parent / "README.md", DOCS / "streams.md")
    ]
    assert readme[1] == learner[0]
