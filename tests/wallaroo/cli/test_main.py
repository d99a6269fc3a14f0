"""The command itself: finding subcommands, arguments, errors, exit codes, logging."""

import io
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from running import ran, wallaroo

from wallaroo.cli.logs import logging_to
from wallaroo.cli.main import main, parse

EXAMPLES = Path(__file__).parents[3] / "examples"
WORD_COUNT = str(EXAMPLES / "word_count.py")

EXTENSION = """
import sys

def register(subparsers):
    parser = subparsers.add_parser("greet", help="from an extension")
    parser.add_argument("whom")
    parser.set_defaults(run=greet, passes_arguments=True)

def greet(options):
    if options.whom == "nobody":
        sys.exit("there is\\nnobody")
    if options.whom == "everybody":
        from rich.console import Console
        Console().print("hello")
    print(options.whom, options.app_arguments, options.log_level)
    return 7
"""


@pytest.fixture
def _extensions(tmp_path, monkeypatch):
    """An installed package with a command that works and one whose package is missing."""
    (tmp_path / "greeting_command.py").write_text(EXTENSION)
    info = tmp_path / "greeting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[wallaroo.commands]\ngreet = greeting_command:register\nlost = no_such_package:register\n"
        "torn = greeting_command:no_such_function\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("wallaroo ")


def test_without_a_command_there_is_help_and_exit_code_2(capsys):
    assert main([]) == 2
    assert "graph" in capsys.readouterr().err


@pytest.mark.usefixtures("_extensions")
def test_a_package_adds_a_command_and_a_missing_one_harms_no_other():
    helped = wallaroo("--help", data="")
    assert "from an extension" in helped.stdout
    assert "lost cannot be used here: ModuleNotFoundError: No module named 'no" in helped.stdout
    assert "torn cannot be used here: AttributeError: " in helped.stdout
    assert wallaroo("check", WORD_COUNT).returncode == 0
    lost = wallaroo("lost", data="")
    assert lost.returncode == 2
    assert "lost cannot be used here: ModuleNotFoundError: No module named" in lost.stderr


@pytest.mark.usefixtures("_extensions")
def test_a_command_may_pass_arguments_on():
    arguments = ["greet", "you", "--in", "a:1", "-x", "--", "--y", "--"]
    greeted = wallaroo("--log-level", "error", *arguments, data="")
    assert greeted.returncode == 7
    assert greeted.stdout == "you ['--in', 'a:1', '-x', '--y', '--'] error\n"


@pytest.mark.usefixtures("_extensions")
def test_a_command_that_exits_with_a_text_is_not_silent():
    ended = wallaroo("greet", "nobody", data="")
    assert (ended.returncode, ended.stderr) == (1, "wallaroo: there is\\nnobody\n")


def test_global_options_may_stand_after_the_command():
    assert parse(["engines", "--log-level", "debug"]).log_level == "debug"
    assert parse(["--log-json", "engines"]).log_json
    assert parse(["engines"]).log_level == "info"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "wallaroo: there is no command 'nonsense'; there are: check, "),
        (["chekc"], "wallaroo: there is no command 'chekc'; did you mean check?"),
        (["send", "x", "--to", "a:1", "--rat=1"], "arguments: --rat=1; did you mean --rate?"),
        (["send", "x", "rate.txt", "--to", "a:1"], "unknown arguments: rate.txt (see"),
        (["engines", "--nonsense"], "wallaroo engines: unknown arguments: --nonsense"),
        (["check"], "wallaroo check: the following arguments are required: APP"),
        (["send", "x", "--to", "nowhere"], "'nowhere' is not an address; write HOST:PORT"),
        (["send", "x", "--to", "a:1", "--rate", "nan"], "expected messages a second"),
        (["send", "x", "--to", "a:1", "--repeat", "0"], "expected a whole number, 1 or more"),
        (["receive", "--listen", "a:1", "--timeout", "-1"], "expected a number of seconds"),
        (["route", WORD_COUNT, "a"], "required: --partitions"),
        (["run", WORD_COUNT, "--checkpoint-interval", "-1"], "expected seconds, more than 0"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(arguments, said, capsys):
    assert main(arguments) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert said in line
    assert "--help)" in line


def test_a_failure_is_one_line_and_exit_code_1(tmp_path, capsys):
    path = tmp_path / "broken.py"
    path.write_text("def application_setup(args):\n    raise ValueError('a\\nb\\x1b[31m')\n")
    assert main(["check", str(path)]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith("line 2, in application_setup: ValueError: a\\nb\\x1b[31m")
    assert main(["--log-level", "debug", "check", str(path)]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_with_log_json_a_failure_is_one_record(tmp_path, capsys):
    for level, traceback in [("error", False), ("debug", True)]:
        missing = str(tmp_path / "none.py")
        assert main(["check", missing, "--log-json", "--log-level", level]) == 2
        [line] = capsys.readouterr().err.splitlines()
        record = json.loads(line)
        assert record["message"] == f"there is no file {missing}"
        assert record["level"] == "error"
        assert ("exception" in record) is traceback


def test_build_1_the_error_says_where_in_the_file(tmp_path, capsys):
    path = tmp_path / "wrong.py"
    path.write_text(
        "import wallaroo\ndef application_setup(args):\n"
        "    return wallaroo.ApplicationBuilder('a').to(str)\n"
    )
    assert main(["check", str(path)]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "application 'a': to(str) comes before any pipeline" in line
    assert "line 3, in application_setup)" in line


def test_help_imports_nothing_large():
    code = (
        "import sys; from wallaroo.cli.main import main; main(['--help']); "
        "print([m for m in sys.modules if m in ('pyspark', 'locust', 'hypothesis')])"
    )
    done = ran([sys.executable, "-c", code], check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.usefixtures("_extensions")
def test_a_reader_that_leaves_rich_is_no_trouble_either():
    pytest.importorskip("rich")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        command = [sys.executable, "-m", "wallaroo", "greet", "everybody"]
        done = subprocess.run(
            command, stdout=closed, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert (done.returncode, done.stderr) == (141, b"")


def test_output_that_knows_ascii_only_is_no_trouble():
    done = wallaroo("check", WORD_COUNT, data="", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u251c\\u2500 pipeline Split and Count" in done.stdout


def test_records_are_one_line_each_with_nothing_a_terminal_obeys():
    stream = io.StringIO()
    logger = logging.getLogger("wallaroo.test")
    with logging_to(stream, "info", as_json=False):
        logger.warning("a\nb\x1b[31m %s", "é")
        logger.debug("not shown")
    assert stream.getvalue()[8:] == " warning: a\\nb\\x1b[31m é\n"
