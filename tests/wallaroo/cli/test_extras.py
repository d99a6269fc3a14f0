"""Commands and engines whose extra is not installed, in an interpreter without site-packages."""

import os
import re
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from running import ran

ROOT = Path(__file__).parents[3]
SOURCES = (".", "reference", "spark_impl", "conformance", "loadgen")
WORD_COUNT = str(ROOT / "examples" / "word_count.py")


@pytest.fixture
def bare(tmp_path):
    """Run a command line where only the distribution itself is installed, without its extras."""
    installed = distribution("wallaroo-streams")
    info = tmp_path / "wallaroo_streams-0.1.0.dist-info"
    info.mkdir()
    for name in ("METADATA", "entry_points.txt"):
        (info / name).write_text(installed.read_text(name))
    path = os.pathsep.join([str(tmp_path), *[str(ROOT / source) for source in SOURCES]])

    def run(*arguments):
        return ran(
            [sys.executable, "-S", "-m", "wallaroo", *arguments],
            env={**os.environ, "PYTHONPATH": path},
            cwd=tmp_path,
        )

    return run


@pytest.mark.parametrize(
    ("arguments", "extra", "package"),
    [
        (["conform"], "conformance", "hypothesis"),
        (["conform", "--help"], "conformance", "hypothesis"),
        (["replay", "case.json"], "conformance", "hypothesis"),
        (["load", "word_count"], "loadgen", "locust"),
        (["compare", "a.json", "b.json"], "loadgen", "locust"),
        (["run", WORD_COUNT, "--engine", "spark", "--stdin"], "spark", "pyspark"),
        (["check", WORD_COUNT, "--engine", "spark"], "spark", "pyspark"),
        (["run", WORD_COUNT, "--stdin", "--otel", "http://127.0.0.1:1"], "otel", "opentelemetry"),
        (["--completion", "bash"], "cli", "shtab"),
    ],
)
def test_one_line_names_what_to_install(bare, arguments, extra, package):
    done = bare(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert package in line
    assert f"try: pip install 'wallaroo-streams[{extra}]'" in line


@pytest.mark.parametrize(
    ("arguments", "extra", "package"),
    [
        # Two of them name whichever they import first.
        (["conform", "--cases", "1"], "conformance", ""),
        (["load", "word_count"], "loadgen", ""),
        (["compare", "a.json", "b.json"], "loadgen", "numpy"),
    ],
)
def test_a_package_of_which_only_the_metadata_is_there_is_one_line_too(
    bare, tmp_path, arguments, extra, package
):
    for requirement in distribution("wallaroo-streams").requires:
        name = re.match(r"[\w.-]+", requirement)[0]
        info = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    done = bare(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert f"{arguments[0]} needs {package}" in line
    assert f"try: pip install 'wallaroo-streams[{extra}]'" in line


def test_help_lists_as_usable_what_is(bare):
    helped = bare("--help")
    usable, _, rest = helped.stdout.partition("commands that need more packages:")
    assert "check an engine" not in usable
    assert "measure an application's latency" not in usable
    assert rest.split("\n\n")[0].splitlines()[1:] == [
        "  conform, replay: pip install 'wallaroo-streams[conformance]'",
        "  compare, load: pip install 'wallaroo-streams[loadgen]'",
    ]
    assert "commands that are broken" not in rest


def test_what_needs_no_extra_works(bare):
    assert bare("check", WORD_COUNT).stdout.startswith("application Word Count")
    listed = bare("engines")
    assert listed.returncode == 0
    assert "try: pip install 'wallaroo-streams[spark]'" in listed.stdout
