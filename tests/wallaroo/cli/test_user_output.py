"""What user code prints and logs: it goes to standard error, with its step."""

import logging
from pathlib import Path

import pytest
import talking_app
from running import wallaroo

from wallaroo.user_code import output as user_output
from wallaroo.user_code.output import Line, Logged


def run(*options, data=b"a\n"):
    """`wallaroo run` of the talking application as a filter."""
    done = wallaroo("run", talking_app.__file__, "--stdin", "--stdout", *options, data=data)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.decode().splitlines()


@pytest.mark.parametrize("mode", [(), ("--isolated",)])
def test_standard_output_has_results_only_and_what_is_printed_has_its_step(mode):
    results, lines = run(*mode)
    assert results == b"a\n"
    assert [line for line in lines if line.startswith("[")] == talking_app.PRINTED


def test_what_programs_and_descriptors_write_is_no_result():
    results, lines = run(data=b"outside\n")
    assert results == b"outside\n"
    assert {"to the descriptor", "of a program"} <= set(lines)


def test_user_code_logs_at_the_level_that_is_asked_for():
    _, lines = run()
    logged = [line.partition(" ")[2] for line in lines if line[:2].isdigit()]
    assert logged[:4] == [
        "warning: a warning at import",
        "info: [first] computed a",
        "info: [second] computed a",
        f"info: [all ways] (a log record of {talking_app.__file__}, line "
        f"{line_of('no number')}, cannot be shown: TypeError)",
    ]
    assert logged[4].startswith(r"error: [all ways] it failed\n\x1b\nTraceback (most recent")
    assert logged[4].endswith("KeyError: 'a'")
    assert "UserWarning: beware" in logged[5]
    assert len(logged) == 6
    _, debug = run("--log-level", "debug")
    assert len([line for line in debug if "debug: [first] too little to say" in line]) == 1
    _, warnings = run("--log-level", "warning")
    assert not [line for line in warnings if "info: " in line]


def line_of(text):
    lines = Path(talking_app.__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("command", ["check", "graph"])
def test_what_is_printed_at_import_is_not_what_a_command_prints(command):
    done = wallaroo(command, talking_app.__file__, data="")
    assert "at import" not in done.stdout
    assert "setting up" not in done.stdout
    assert {"[talking_app.py] at import", "[application_setup] setting up"} <= set(
        done.stderr.splitlines()
    )


def test_without_a_command_lines_go_to_standard_error_and_records_to_the_log(capsys, caplog):
    user_output.show(Line("count", "hel\x1blo"))
    user_output.show(Line("", "bare"))
    assert capsys.readouterr().err == "[count] hel\\x1blo\nbare\n"
    user_output.show(Line("count", "note", Logged(logging.WARNING, "app", 5.0, "why")))
    (record,) = caplog.records
    assert (record.name, record.levelno, record.created) == ("app", logging.WARNING, 5.0)
    assert (record.getMessage(), record.step, record.exc_text) == ("note", "count", "why")
