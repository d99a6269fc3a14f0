"""What the pages say to type and to write is typed and written, and does what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from wallaroo_docs.pages import Page, pages
from wallaroo_docs.pictures import pictures

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.stem)
def test_page(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Page(path, tmp_path) as page:
        for example in page.document:
            example.evaluate()


@pytest.mark.parametrize(("path", "current"), pictures(), ids=["word_count", "market_spread"])
def test_pictures_are_current(path, current):
    assert path.read_text("utf-8") == current
