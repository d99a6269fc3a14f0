"""The files of `changes/` are named so that the changelog shows their issues rightly."""

import re
from pathlib import Path

CHANGES = Path(__file__).parents[2] / "changes"
NAME = re.compile(r"(\d+|\+[a-z0-9-]+)\.(added|changed|fixed|removed)(\.\d+)?\.md")


def test_each_file_is_named_by_its_issue_and_kind():
    names = [path.name for path in CHANGES.iterdir() if path.name != "README.md"]
    assert [name for name in names if NAME.fullmatch(name) is None] == []
