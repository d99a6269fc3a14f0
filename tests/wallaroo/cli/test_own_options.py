"""Which options are the application's, and that those which nobody takes are refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wallaroo.cli.main import main

EXAMPLES = Path(__file__).parents[3] / "examples"
WORD_COUNT = str(EXAMPLES / "word_count.py")

TAKES = """
import argparse
import getopt
import options_beside_it

def application_setup(args):
    parser = argparse.ArgumentParser()
    parser.add_argument("--symbols", "-s")
    parser.parse_known_args(args)
    "--json" in args
    raise ValueError(args)
"""


@pytest.fixture
def takes(tmp_path, monkeypatch):
    """An application that takes options of its own, and tells its arguments."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "options_beside_it.py").write_text("OPTIONS = ['--beside']\n")
    path = tmp_path / "takes_options.py"
    path.write_text(TAKES)
    yield str(path)
    sys.modules.pop("options_beside_it", None)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", WORD_COUNT, "--stdn", "--stdout"], "no option --stdn; did you mean --stdin? ("),
        (["run", WORD_COUNT, "--inn", "a:1"], "no option --inn; did you mean --in? ("),
        (["run", "--partitons", "4", WORD_COUNT], "no option --partitons; did you mean --part"),
        (["run", WORD_COUNT, "--max-conections=5"], "--max-conections; did you mean --max-conn"),
        (["run", WORD_COUNT, "--zzz"], "there is no option --zzz (after -- "),
        (["run", WORD_COUNT, "--bogus"], "there is no option --bogus (after -- "),
        (["run", WORD_COUNT, "-x"], "there is no option -x (after -- "),
        (["check", WORD_COUNT, "--engin", "spark"], "did you mean --engine? ("),
        (["graph", WORD_COUNT, "--sgv", "-"], "did you mean --svg? ("),
        (["route", WORD_COUNT, "--partitions", "2", "--litral"], "did you mean --literal? ("),
    ],
)
def test_what_nobody_takes_is_refused_with_the_nearest(arguments, said, capsys):
    assert main(arguments) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert said in line
    assert f"see wallaroo {arguments[0]} --help)" in line


def test_an_option_of_another_engine_names_it(capsys):
    pytest.importorskip("pyspark")
    assert main(["run", WORD_COUNT, "--trigger", "1"]) == 2
    assert "the spark engine has it: --engine spark" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--symbols", "f.txt", "word"],
        ["--symbols=f.txt", "-s", "x", "-sx"],
        ["--json", "--beside"],
        ["--in", "a:1", "--out=b:1", "-i", "a:1", "-ob:1", "--input", "a:1", "--output", "b:1"],
        ["-5", "-"],
    ],
)
def test_what_the_applications_code_names_is_its_own(takes, arguments, capsys):
    assert main(["run", takes, *arguments]) == 1
    assert f"ValueError: {arguments}" in capsys.readouterr().err


def test_its_own_mistyped_options_are_refused_too(takes, capsys):
    assert main(["check", takes, "--symbol", "f.txt"]) == 2
    assert "there is no option --symbol; did you mean --symbols?" in capsys.readouterr().err


def test_after_two_dashes_everything_is_its_own(takes, capsys):
    assert main(["run", takes, "--json", "--", "--stdn", "-x", "--"]) == 1
    assert "ValueError: ['--json', '--stdn', '-x', '--']" in capsys.readouterr().err


def test_the_examples_options_work_as_published():
    symbols = str(EXAMPLES / "data" / "symbols.txt")
    assert main(["check", str(EXAMPLES / "market_spread.py"), "--symbols", symbols]) == 0
    assert main(["check", str(EXAMPLES / "log_status.py"), "--json"]) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "no_such_file.py"],
        ["check", "no_such_module"],
        ["check", WORD_COUNT, "--engine", "no-such-engine"],
        ["run", WORD_COUNT, "--engine", "no-such-engine"],
        ["send", "no_such_file", "--to", "127.0.0.1:1"],
        ["send", str(EXAMPLES), "--to", "127.0.0.1:1"],
        ["send", f"{WORD_COUNT}/no_such_file", "--to", "127.0.0.1:1"],
        ["run", WORD_COUNT],
        ["run", WORD_COUNT, "--in", "127.0.0.1", "--out", "127.0.0.1:1"],
        ["run", WORD_COUNT, "--in", "127.0.0.1:0", "--out", "127.0.0.1:99999"],
    ],
    ids=" ".join,
)
def test_what_is_not_there_is_exit_code_2(arguments, capsys):
    assert main(arguments) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["run", "--help"], ["check", WORD_COUNT]], ids=" ".join)
def test_head_ends_every_command_quietly(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "wallaroo", *arguments],
            # Unbuffered, argparse's help would not notice that nobody reads it, and end with 0.
            env={name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"},
            stdout=closed,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, b"")
