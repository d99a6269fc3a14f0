"""``wallaroo run --record``: the whole input log is kept, whatever happens to the run."""

import errno
import os

import pytest
from recorded import VOTES, called, lines_of, record
from running import Run, wallaroo
from wallaroo_reference.checkpoints.on_disk import RecordedRun
from wallaroo_reference.checkpoints.recovery import Recovery

from wallaroo.errors import UsageError
from wallaroo.loading import load_application
from wallaroo.transport.identity import CheckpointError, identity_of
from wallaroo.transport.input_log import InputLog, InputLogError
from wallaroo.transport.recording import RecordedLog, Recording
from wallaroo.transport.stamps import UNSTAMPED


@pytest.fixture
def app(tmp_path):
    path = tmp_path / "votes.py"
    path.write_text(VOTES)
    return path


def run(app, *options, data=b""):
    return wallaroo("run", app, *options, "--stdin", "--stdout", data=data)


def killed(app, *options, words):
    """Send words to a run, one for each frame, and kill it once they are on disk."""
    running = Run(app, *options)
    try:
        running.send(*words)
        running.process.kill()
        running.wait()
    finally:
        running.end()


def test_what_a_killed_run_has_taken_is_in_its_recording(app, tmp_path, capfd):
    killed(app, "--record", tmp_path / "r", words=["ann", "bob 1", "bob 2"])
    found = lines_of(capfd, tmp_path / "r", app)
    assert found["end"][0]["records"] == 3
    assert len(found["output"]) == 5
    code, out, _ = called(capfd, "checkpoint", tmp_path / "r")
    assert code == 0
    assert "recording    3 records" in out


def test_with_a_checkpoint_it_goes_on_after_a_kill_and_keeps_what_the_log_drops(
    app, tmp_path, capfd
):
    options = ["--checkpoint", tmp_path / "c", "--record", tmp_path / "r", "--log-bytes", "400"]
    words = [f"word{number}" for number in range(40)]
    killed(app, *options, words=words[:20])
    done = run(app, *options, data="".join([f"{word}\n" for word in words[20:]]).encode())
    assert done.returncode == 0, done.stderr
    with pytest.raises(FileNotFoundError):
        (tmp_path / "c" / "input" / f"{0:020d}.log").stat()  # it was cut
    code, _, err = called(capfd, "rerun", tmp_path / "c", app)
    assert code == 1
    assert "begins at record" in err
    found = lines_of(capfd, tmp_path / "r", app)
    assert found["end"][0]["outputs"] == {"words/0": 40}
    assert found["entity"][0]["state"][3] == ["dict", [[["str", "count"], ["int", "0x28"]]]]


def test_a_log_whose_beginning_was_not_recorded_is_refused(tmp_path):
    log = log_of(tmp_path, "log", None)
    for number in range(9):
        log.append("a", [b"%d" % number * 100])
    log.sync()
    log.drop_before(5)
    log.close()
    (tmp_path / "kept").mkdir()
    with pytest.raises(InputLogError, match="they cannot be recorded"):
        log_of(tmp_path, "log", tmp_path / "kept")


def test_a_recording_and_a_checkpoint_are_not_taken_for_each_other(app, tmp_path, capfd):
    application = load_application(app, placeholders=True)
    record(tmp_path / "r", application, [("words", b"ann")])
    with pytest.raises(CheckpointError, match="holds a recording, which --record made"):
        Recovery(tmp_path / "r", application, partitions=None, log_bytes=1 << 20)
    Recovery(tmp_path / "c", application, partitions=None, log_bytes=1 << 20).close()
    identity = identity_of("reference", application, 1, UNSTAMPED)
    with pytest.raises(CheckpointError, match="holds a checkpoint, not a recording"):
        Recording(tmp_path / "c", identity, application, checkpoint=None)
    with pytest.raises(UsageError, match="name one directory"):
        Recording(tmp_path / "c", identity, application, checkpoint=tmp_path / "c")
    assert called(capfd, "checkpoint", tmp_path / "r", "--verify")[0] == 0
    code, _, err = called(capfd, "checkpoint", tmp_path / "r", "--entities")
    assert code == 1
    assert "holds input and no state" in err


def log_of(tmp_path, name, kept, **options):
    return InputLog.open(tmp_path / name, 1000, file_bytes=100, recording=kept, **options)


def test_another_runs_recording_is_not_gone_on_with(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    one = log_of(tmp_path, "one", kept)
    one.append("a", [b"1"])
    one.close()
    with pytest.raises(InputLogError, match="holds the records of another run"):
        log_of(tmp_path, "two", kept)


def test_another_file_system_is_refused_with_what_to_do(tmp_path, monkeypatch):
    def link(*_):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", link)
    (tmp_path / "kept").mkdir()
    with pytest.raises(InputLogError, match="Take a directory beside the checkpoint"):
        log_of(tmp_path, "log", tmp_path / "kept")


def test_a_recording_can_be_read_while_a_run_writes_it(app, tmp_path):
    application = load_application(app, placeholders=True)
    identity = identity_of("reference", application, 1, UNSTAMPED)
    recording = Recording(tmp_path / "r", identity, application, checkpoint=None)
    log = InputLog.open(recording.input_log, 1 << 20, recording=recording.input_log)
    for number in range(3):
        log.append("words", [b"ann"])
        assert RecordedLog(tmp_path / "r").following == number + 1
    log.close()
    recording.close()


def test_a_recording_that_cannot_be_begun_says_why_and_is_not_in_use(app, tmp_path, disk):
    application = load_application(app, placeholders=True)

    def begun():
        return RecordedRun(tmp_path / "r", application, partitions=1, file_bytes=1000)

    def refuse(*_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    disk.open = refuse
    with pytest.raises(InputLogError, match="cannot be opened: Too many open files"):
        begun()
    del disk.open
    begun().close()
