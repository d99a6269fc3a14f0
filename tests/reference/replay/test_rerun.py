"""``wallaroo rerun``: what a recorded input log gives, and what is refused."""

import base64
import json
import os
import pickle
from pathlib import Path

import pytest
from recorded import VOTES, called, lines_of, record, voted
from wallaroo_reference.replay.feeding import Input
from wallaroo_reference.replay.rerunning import Rerun, ResultWriter

from wallaroo import testing
from wallaroo.loading import load_application
from wallaroo.records import End, Tick, Value
from wallaroo.transport.input_log import InputLog
from wallaroo.transport.recording import RecordedLog

LINES = ["ann bob", "ann bad ann", "", "bob alf"]


def outputs(found):
    return [base64.b64decode(one["data"]) for one in found["output"]]


def test_it_gives_what_the_application_gives_in_a_test(tmp_path, capfd):
    made, app = voted(tmp_path, *LINES)
    found = lines_of(capfd, made, app)
    application = load_application(app, placeholders=True)
    wanted = testing.run(application, {"words": [line.encode() for line in LINES]}).trace.to_json()
    assert [one["data"] for one in found["output"]] == wanted["outputs"][0]["outputs"]
    assert found["entity"] == wanted["entities"]
    letters = [
        {name: one[name] for name in one if name != "number"} for one in found["dead_letter"]
    ]
    assert letters == [
        {name: one[name] for name in one if name != "position"} for one in wanted["dead_letters"]
    ]
    assert found["end"] == [
        {"records": 4, "outputs": {"words/0": 6}, "dead_letters": 1, "ended": None}
    ]


def test_each_output_has_its_number_and_its_record(tmp_path, capfd):
    found = lines_of(capfd, *voted(tmp_path, "ann bob", "", "ann"))
    assert [(one["number"], one["record"]) for one in found["output"]] == [(0, 0), (1, 0), (2, 2)]


def test_outputs_go_to_stdout_and_to_files_dead_letters_to_theirs(tmp_path, capfd):
    made, app = voted(tmp_path, *LINES)
    out, letters = tmp_path / "out", tmp_path / "dead.jsonl"
    options = ["--outputs", out, "--dead-letters", letters]
    code, printed, said = called(capfd, "rerun", made, app, "--stdout", *options)
    assert code == 0
    assert printed.splitlines()[:4] == ["ann 1", "bob 1", "ann 2", "ann 3"]
    assert "words/0: 6 outputs" in said
    assert "1 raised: words, count" in said
    assert (out / "words.0").read_bytes() == printed.replace("\n", "").encode()
    assert json.loads(letters.read_text())["lineage"] == [1, 1]


def test_it_ends_before_the_record_that_is_named_and_at_the_first_dead_letter_if_told(
    tmp_path, capfd
):
    made, app = voted(tmp_path, *LINES)
    assert lines_of(capfd, made, app, "--until", "1")["end"][0]["records"] == 1
    code, out, _ = called(capfd, "rerun", made, app, "--on-error", "stop")
    assert code == 1
    assert "ended early: (1, 1) --on-error stop at 'count'" in out
    (tmp_path / "exits.py").write_text(VOTES.replace("raise ValueError", "raise SystemExit"))
    code, out, _ = called(capfd, "rerun", made, tmp_path / "exits.py")
    assert code == 1
    assert "ended early: (1, 1) SystemExit at 'count'" in out


def test_ctrl_c_in_user_code_and_a_message_without_end_end_it(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("wallaroo_reference.replay.feeding.MOST_OF_A_MESSAGE", 10_000)
    made, _ = voted(tmp_path, *LINES)
    app = tmp_path / "ends.py"
    app.write_text(VOTES.replace("raise ValueError", "raise KeyboardInterrupt"))
    assert called(capfd, "rerun", made, app)[0] == 130
    app = tmp_path / "endless.py"
    app.write_text(VOTES.replace("return text.split()", "return iter(lambda: text, None)"))
    code, out, _ = called(capfd, "rerun", made, app)
    assert code == 1
    assert "ended early: (0,) TooManyItemsError at 'split'" in out


def timed(tmp_path):
    """An application with windows, and a generator."""
    app = tmp_path / "timed.py"
    app.write_text(
        VOTES.split("def application_setup")[0]
        + """
class Sum:
    def initial_accumulator(self):
        return 0
    def update(self, message, total):
        return total + message
    def output(self, key, total):
        return str(total)

class Numbers:
    def initial_value(self):
        return 1
    def apply(self, last):
        return last + 1 if last < 9 else None

def application_setup(args):
    windows = wallaroo.range_windows(wallaroo.seconds(10)).over(Sum)
    return wallaroo.build_application(
        "timed",
        wallaroo.source("numbers", wallaroo.GenSourceConfig(Numbers()))
        .to(windows)
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)),
    )
"""
    )
    return app, load_application(app)


def test_ticks_ends_and_values_are_records_too_and_what_could_not_be_pickled_is_unportable(
    tmp_path, capfd
):
    app, application = timed(tmp_path)
    second = 10**9
    records = [
        Value("numbers", 5, second),
        Value("numbers", 6, 2 * second),
        Tick(15 * second),
        Value("numbers", lambda: 0, 16 * second),
        Value("numbers", 7, 17 * second),
    ]
    made = record(tmp_path / "r", application, records)
    found = lines_of(capfd, made, app)
    assert outputs(found) == [b"11"]
    assert [one["reason"] for one in found["dead_letter"]] == ["unportable"]
    assert [one["start"] for one in found["window"]] == [10 * second]
    ended = record(tmp_path / "ended", application, [*records, End("numbers", 18 * second)])
    assert outputs(lines_of(capfd, ended, app)) == [b"11", b"7"]


def test_a_recording_of_spark_is_read_and_findings_are_told(tmp_path, capfd):
    made, app = voted(tmp_path, "ann", engine="spark")
    changed = tmp_path / "hides.py"
    changed.write_text(VOTES.replace("True", "False"))
    assert outputs(lines_of(capfd, made, app)) == [b"ann 1"]
    assert lines_of(capfd, made, changed)["finding"][0]["kind"] == "unflagged-mutation"
    _, out, _ = called(capfd, "rerun", made, changed)
    assert "finding: unflagged-mutation at 'count'" in out


def test_a_flipped_byte_is_refused_with_file_and_position(tmp_path, capfd):
    made, app = voted(tmp_path, *LINES)
    file = next((tmp_path / "r" / "input").glob("*.log"))
    log = InputLog.open(tmp_path / "r" / "input", 1 << 30)
    log.append("words", [b"more"])
    log.close()
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)
    code, out, err = called(capfd, "rerun", made, app)
    assert (code, out) == (1, "")
    assert str(file) in err
    assert "is damaged" in err
    assert "byte" in err


def test_an_append_that_was_cut_off_is_left_out_with_a_warning(tmp_path, capfd):
    made, app = voted(tmp_path, *LINES)
    log = InputLog.open(tmp_path / "r" / "input", 1 << 30)
    log.append("words", [b"more"])
    log.close()
    file = max((tmp_path / "r" / "input").glob("*.log"))
    os.truncate(file, file.stat().st_size - 1)
    code, out, err = called(capfd, "rerun", made, app)
    assert code == 0
    assert "4 records" in out
    assert "the end of the input log is cut off, as by a crash; record 3 is the last" in err


def test_a_log_whose_beginning_was_cut_away_is_refused_with_what_to_do(tmp_path, capfd):
    made, app = voted(tmp_path, *LINES, file_bytes=1)
    log = InputLog.open(tmp_path / "r" / "input", 1 << 30, file_bytes=1)
    log.append("words", [b"more"])
    log.append("words", [b"more"])
    log.sync()
    log.drop_before(5)
    log.close()
    code, _, err = called(capfd, "rerun", made, app)
    assert code == 1
    assert "begins at record 5" in err
    assert "wallaroo run … --record DIR" in err


@pytest.mark.parametrize(
    ("change", "refused", "said"),
    [
        (lambda made: (made / "identity.json").unlink(), 2, "neither a recording nor a checkpoint"),
        (lambda made: made.chmod(0o777), 1, "others can write"),
        (
            lambda made: [file.unlink() for file in (made / "input").glob("*.log")],
            1,
            "holds no input log",
        ),
    ],
)
def test_what_is_no_recording_of_ones_own_is_refused(tmp_path, capfd, change, refused, said):
    made, app = voted(tmp_path, "ann")
    change(tmp_path / "r")
    code, out, err = called(capfd, "rerun", made, app)
    assert (code, out) == (refused, "")
    assert said in err


def test_an_application_without_the_source_is_refused(tmp_path, capfd):
    made, _ = voted(tmp_path, "ann")
    app, _ = timed(tmp_path)
    code, _, err = called(capfd, "rerun", made, app)
    assert code == 1
    assert "record 0 is of source 'words'" in err
    assert "'numbers'" in err


def test_wrong_calls_are_refused(tmp_path, capfd):
    made, app = voted(tmp_path, "ann")
    for options, said in [
        (["--sink", "words/0"], "--sink goes with --stdout"),
        (["--stdout", "--sink", "words/7"], "has no sink words/7; it has words/0"),
        (["--against", app, "--outputs", tmp_path / "o"], "--against writes no files"),
    ]:
        code, _, err = called(capfd, "rerun", made, app, *options)
        assert code in (1, 2)
        assert said in err


def test_a_long_log_is_read_as_it_is_run(tmp_path, capfd):
    """Outputs leave while records are still read: what is in memory does not grow with the log."""
    _, app = voted(tmp_path, *["ann"] * 3000)
    application = load_application(app, placeholders=True)
    most = 0

    class Watch(ResultWriter):
        def outputs(self, record, sink, first, some):
            nonlocal most
            most = max(most, len(some))

    given = Input(RecordedLog(tmp_path / "r"), 0, 3000)
    one = Rerun(application, given, on_error="skip")
    one.run([Watch()], lambda: None)
    assert one.made == 3000
    assert most <= 64


class RunsCode:
    def __reduce__(self):
        return exec, ("raise SystemExit('the recording has run code')",)


def test_a_value_of_a_source_that_is_no_generator_is_not_unpickled(tmp_path, capfd):
    made, app = voted(tmp_path, *LINES)
    made = Path(made)
    log = InputLog.open(made / "input", 1 << 20)
    log.append_records([Value("words", b"p" + pickle.dumps(RunsCode()), log.latest_at)])
    log.sync()
    log.close()
    code, _, said = called(capfd, "rerun", made, app)
    assert code == 1
    assert "record 4 is a generator's value, and source 'words' is no generator" in said


def test_what_is_written_does_not_replace_the_recording(tmp_path, capfd):
    made, app = voted(tmp_path, *LINES)
    made = Path(made)
    (file,) = (made / "input").glob("*.log")
    (tmp_path / "other-name").hardlink_to(file)
    content = file.read_bytes()
    for option, target in (
        ("--dead-letters", file),
        ("--dead-letters", tmp_path / "other-name"),
        ("--dead-letters", made / "new"),
        ("--outputs", made / "input"),
    ):
        code, _, said = called(capfd, "rerun", made, app, option, target)
        assert (code, "is in the recording" in said) == (2, True)
    assert file.read_bytes() == content
