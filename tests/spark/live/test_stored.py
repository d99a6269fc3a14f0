"""`wallaroo checkpoint` on a moved checkpoint of Spark: shown, checked, tried, migrated."""

import json
import shutil
from unittest.mock import ANY

import pytest
from counted import Count, first_word, send, sink, source
from live_on_spark import PATIENCE, is_idle, served_here
from receiving import eventually
from small_windows import Collect
from standing_clock import SECOND, Clock
from wallaroo_reference.replay.feeding import Input
from wallaroo_spark.jvm.session import session
from wallaroo_spark.live.stored import StoredOnSpark

import wallaroo
from wallaroo.canonical import structure
from wallaroo.cli.main import main
from wallaroo.records import Tick
from wallaroo.transport.identity import CheckpointError
from wallaroo.transport.recording import RecordedLog


class Total:
    """What the second version of the application has as a state, in place of `Count`."""

    def __init__(self, total=0):
        self.total = total


def change(name, key, state):
    """Migrate."""
    if name == "Words":
        return [message.upper() for message in state]
    return Total(state.count + 100) if name == "counts" else state


def numbered(message, state):
    if isinstance(state, Total):
        state.total += 1
        return f"{message} {state.total}"
    state.count += 1
    return f"{message} {state.count}"


def application(port, builder, fades=True):
    """Count words for ever, for ten seconds after their last visit, and in a window."""
    count = wallaroo.state_computation(name="counts", state=builder)(numbered)
    fading = wallaroo.state_computation(
        name="fading", state=Count, expire_after=wallaroo.seconds(10)
    )(numbered)
    windows = wallaroo.session_windows(wallaroo.seconds(30)).over(Words)
    words, out = source().key_by(first_word).to(count), sink(port)
    if not fades:
        more = source("q").to_sink(out)
        return wallaroo.build_application("stored", more, words.to(windows).to_sink(out))
    return wallaroo.build_application("stored", words.to(fading).to(windows).to_sink(out))


class Words(Collect):
    """The messages of a window, as text."""

    def output(self, key, words):
        return " | ".join(words)


def shown(capsys, *arguments):
    code = main(["checkpoint", *map(str, arguments)])
    return code, capsys.readouterr()


@pytest.fixture
def made(spark_engine, receiver, tmp_path):
    """A checkpoint of a run; the entity of b in `fading` has expired since."""
    session()
    clock = Clock()
    handle, checkpoint = served_here(application(receiver.port, Count), clock=clock)
    send(handle, "a", "b", "a")
    clock.now += 10 * SECOND
    send(handle, "a")
    eventually(lambda: is_idle(handle, checkpoint), PATIENCE)
    shutil.copytree(checkpoint, tmp_path / "c")
    handle.stop()
    handle.wait(PATIENCE)
    return tmp_path / "c", clock


@pytest.mark.xdist_group("spark")
def test_states_are_shown_checked_and_changed(made, receiver, capsys, caplog):
    directory, clock = made
    code, told = shown(capsys, directory)
    assert code == 0
    assert "entities of counts  2\n" in told.out
    assert "entities of fading  1\n" in told.out

    code, told = shown(capsys, directory, "--entities")
    assert code == 0
    lines = [json.loads(line) for line in told.out.splitlines()]
    found = {(one["partition"], one["key"]["str"]): one for one in lines if "state" in one}
    windows = [(one["step"], one["key"]["str"], one["start"]) for one in lines if "step" in one]
    assert windows == [("Words", "a", clock.now - 10 * SECOND), ("Words", "b", ANY)]
    assert lines[-1]["end"] == lines[-1]["start"] + 30 * SECOND
    assert lines[-1]["accumulators"] == [structure(["b 1 1"])]
    assert {name: one["state"][3] for name, one in found.items()} == {
        ("counts", "a"): ["dict", [[["str", "count"], ["int", "0x3"]]]],
        ("counts", "b"): ["dict", [[["str", "count"], ["int", "0x1"]]]],
        ("fading", "a"): ["dict", [[["str", "count"], ["int", "0x1"]]]],
    }
    code, told = shown(capsys, directory, "--entities", "counts", "b")
    assert [json.loads(told.out)] == [found["counts", "b"]]

    code, told = shown(capsys, directory, "--verify")
    assert (code, told.out) == (0, f"all of {directory} is whole\n")

    app = application(receiver.port, Count)
    given = Input(RecordedLog(directory, whole=False), 4, 4, StoredOnSpark(directory).state())
    machine = given.interpreter(app, on_error="skip")
    machine.feed("p", [b"a", b"b"], clock.now)
    machine.take(Tick(clock.now + 31 * SECOND))
    assert machine.outputs["p", 0] == [b"a 1 1 | a 2 2 | a 3 1 | a 4 2\n", b"b 1 1 | b 2 1\n"]

    # Spark itself looks only at those that it needs.
    file = sorted(directory.glob("spark/state/*/*/*.changelog"))[0]
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    code, told = shown(capsys, directory, "--verify")
    assert code == 1
    assert f"{file} is damaged: its checksum does not fit from byte 0 on" in told.err
    file.write_bytes(content)
    for name in ("metadata", "state/0/_stateSchema/default/0*", "state/0/_metadata/v2/0"):
        (file,) = (directory / "spark").glob(name)
        content = file.read_bytes()
        file.unlink()
        code, told = shown(capsys, directory, "--verify")
        assert (code, f"{file} is damaged: it is missing" in told.err) == (1, True)
        file.write_bytes(content)

    shutil.copytree(directory, directory.with_name("other"))
    with pytest.raises(CheckpointError, match=r"'counts', .*Total: what is stored has no 'total'"):
        served_here(application(receiver.port, Total), directory.with_name("other"))

    changed = application(receiver.port, Count, fades=False)
    shutil.copytree(directory, directory.with_name("changed"))
    with pytest.raises(CheckpointError, match=r"--accept-topology --drop-state fading\. "):
        served_here(changed, directory.with_name("changed"))
    assert "dropped state partition 'fading': 1 entity" in caplog.messages
    assert "kept    windows of 'Words', sessions, gap 30 s: 2 open" in caplog.messages

    code, told = shown(capsys, directory, "--migrate", f"{__name__}:change")
    assert told.out.startswith(
        "5 states and accumulators, 4 of them changed; the new checkpoint is "
    )
    changed = application(receiver.port, Total, fades=False)
    own = {"accept_topology": True, "drop_state": ["fading"]}
    handle, _ = served_here(changed, directory.with_name("c.migrated"), clock=clock, **own)
    send(handle, "a", "b")
    clock.now += 31 * SECOND
    eventually(lambda: handle.progress().written == 2, PATIENCE)
    handle.stop()
    assert handle.wait(PATIENCE).exit_code == 0
    assert b"A 1 1 | A 2 2 | A 3 1 | a 104\nB 1 1 | b 102\n" in receiver.everything()
