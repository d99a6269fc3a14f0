"""What a user's type checker says: nothing of right applications, something of each misuse."""

import contextlib
import re
from pathlib import Path

import pytest
from mypy import api

from wallaroo.cli.main import main
from wallaroo.loading import load_module

pytestmark = pytest.mark.xdist_group("typing")  # mypy runs once

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

MISUSE = re.compile(r"^(.*?) *# E: ([a-z-]+)$")
LINES = (HERE / "misuses.py").read_text("utf-8").splitlines()
MISUSES = {number: found for number, line in enumerate(LINES, 1) if (found := MISUSE.match(line))}

# The user's, not ours. Who annotates is strict; who does not has the bodies looked at all the same.
CONFIG = f"""\
[mypy]
strict = true
mypy_path = {ROOT}:{HERE}
cache_dir = {ROOT / ".mypy_cache" / "users"}
[mypy-votes,test_votes,minutes,test_minutes]
check_untyped_defs = true
disallow_untyped_defs = false
disallow_untyped_calls = false
disallow_untyped_decorators = false
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What mypy says, an error a line, of the modules here and of what ``wallaroo new`` writes."""
    directory = tmp_path_factory.mktemp("typing")
    with contextlib.chdir(directory):
        assert main(["new", "votes"]) == 0
        assert main(["new", "minutes", "--windows"]) == 0
    modules = [*HERE.glob("[!_t]*.py"), *directory.glob("*.py")]
    config = directory / "mypy.ini"
    config.write_text(CONFIG)
    options = ["--no-error-summary", "--show-error-codes", "--hide-error-context", "--no-pretty"]
    options += ["--no-color-output", "--config-file", str(config)]
    out, err, _ = api.run([*options, *map(str, modules)])
    assert err == ""
    return [line for line in out.splitlines() if ": error: " in line]


@pytest.mark.parametrize(
    "module",
    ["applications", "streams", "votes", "test_votes", "minutes", "test_minutes"],
)
def test_typing_right_applications_pass(said, module):
    assert [line for line in said if f"/{module}.py:" in line] == []


def test_typing_a_class_that_names_its_kind_runs():
    assert load_module(HERE / "applications.py").module.outputs == [b"A => 1\n", b"B => 1\n"]


def test_typing_each_misuse_is_reported_and_nothing_else(said):
    reported = {}
    for line in said:
        if found := re.search(r"/misuses\.py:(\d+): .*\[([a-z-]+)\]$", line):
            reported.setdefault(int(found[1]), set()).add(found[2])
    missing = {
        number: (found[1], reported.get(number))
        for number, found in MISUSES.items()
        if found[2] not in reported.get(number, ())
    }
    assert missing == {}
    assert [number for number in reported if number not in MISUSES] == []
