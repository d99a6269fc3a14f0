"""``wallaroo rerun --from`` and ``wallaroo checkpoint --try``: input from stored state on."""

import base64
import json
import shutil
import sqlite3

import pytest
from receiving import eventually
from recorded import VOTES
from running import Run, wallaroo
from wallaroo_reference.checkpoints.stored import ReferenceCheckpoint

from wallaroo.cli.main import main

TIMED = """
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    key, time = payload.decode().split()
    return key, int(time)

@wallaroo.key_extractor
def key(visit):
    return visit[0]

class Times:
    def initial_accumulator(self):
        return []

    def update(self, visit, times):
        times.append(visit[1])

    def combine(self, earlier, later):
        return earlier + later

    def output(self, key, times):
        return f"{key} {times}"

class Count:
    def __init__(self):
        self.count = 0

def count(visit, state):
    state.count += 1
    return f"{visit[0]} {state.count}"

@wallaroo.encoder
def encode(text):
    return text

def application_setup(args):
    (source,), (sink,) = (
        wallaroo.tcp_parse_input_addrs(args), wallaroo.tcp_parse_output_addrs(args)
    )
    time = lambda visit: wallaroo.seconds(visit[1])
    source = wallaroo.TCPSourceConfig(*source, decode, event_time=time)
    visits = wallaroo.source("words", source).key_by(key)
    found = visits.to(wallaroo.count_windows(4).over(Times))
    for windows in (
        wallaroo.range_windows(wallaroo.seconds(8)).with_slide(wallaroo.seconds(2)),
        wallaroo.session_windows(wallaroo.seconds(3)),
    ):
        found = found.merge(visits.to(windows.over(Times)))
    counted = wallaroo.state_computation(name="count", state=Count)(count)
    found = found.merge(visits.to(counted)).to_sink(wallaroo.TCPSinkConfig(*sink, encode))
    return wallaroo.build_application("timed", found)
"""


def killed(app, folder, words, *, stored):
    """Send words to a run with a checkpoint and a recording; kill it when that much is stored."""
    options = ["--checkpoint", folder / "c", "--record", folder / "r"]
    running = Run(app, *options, "--checkpoint-interval", "0.05")
    try:
        running.send(*words)
        eventually(lambda: ReferenceCheckpoint(folder / "c").position() >= stored)
        running.process.kill()
        running.wait()
    finally:
        running.end()


def called(*arguments):
    """Run a command in a process of its own, where a file has its plain name."""
    done = wallaroo(*arguments)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def lines(*arguments):
    code, out, err = called(*arguments)
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


def tree(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An application, its checkpoint after 4 records and its recording."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "votes.py").write_text(VOTES)
    killed(folder / "votes.py", folder, ["ann bob", "bob", "bad", "ann"], stored=4)
    return folder


def test_the_rest_of_the_input_does_what_it_does_after_all_before_it(tmp_path):
    """Also what windows hold, and what is told of the messages that were in them before."""
    app = tmp_path / "app.py"
    app.write_text(TIMED)
    words = [f"{'ab'[number % 2]} {3 * number // 2}" for number in range(30)]
    killed(app, tmp_path, words[:15], stored=1)
    shutil.copytree(tmp_path / "c", tmp_path / "earlier")
    killed(app, tmp_path, words[15:], stored=16)
    position = ReferenceCheckpoint(tmp_path / "earlier").position()
    whole = lines("rerun", tmp_path / "r", app, "--json")
    rest = lines("rerun", tmp_path / "r", app, "--from", tmp_path / "earlier", "--json")

    def after(found):
        for line in found:
            ((kind, form),) = line.items()
            if kind == "output" and form["record"] >= position:
                yield form["record"], form["sink"], form["data"]
            elif kind in ("entity", "window"):
                yield line

    assert list(after(rest)) == list(after(whole))
    assert rest[0]["begin"]["start"] == position
    outputs = [line["output"] for line in rest if "output" in line]
    fired = next(one for one in outputs if b"[" in base64.b64decode(one["data"]))
    arguments = ["--from", tmp_path / "earlier", "--output", fired["number"]]
    _, out, _ = called("explain", tmp_path / "r", app, *arguments)
    assert "in it, beside those that the stored state has met:\n" in out


def test_an_upgrade_is_tried_and_nothing_is_changed(made, tmp_path):
    before = tree(made)
    changed = tmp_path / "changed.py"
    changed.write_text(
        VOTES.replace("self.count = 0", "self.count = 0; self.most = ''").replace(
            "state.count += 1", "state.count += 1; state.most = max(state.most, word)"
        )
    )
    code, out, err = called("checkpoint", made / "c", "--try", changed, "--last", "2")
    assert code == 1, err
    assert "what is stored has no 'most'" in out  # docs/replay.md shows all that is said
    assert tree(made) == before


def test_where_no_input_waits_the_next_step_is_named(made):
    code, out, _ = called("checkpoint", made / "c", "--try", made / "votes.py")
    assert code == 0
    assert "no input waits: --last N runs the last N records again\n" in out


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"counts", first', '"others", first', "dropped state partition 'counts': 2 entities"),
        (
            ".to(split)",
            ".to(split).to(split)",
            "new     step 'split' of pipeline 'words'",
        ),
    ],
)
def test_another_topology_is_refused_and_tried_as_far_as_it_fits(made, tmp_path, old, new, said):
    changed = tmp_path / "changed.py"
    changed.write_text(VOTES.replace(old, new))
    code, out, err = called("checkpoint", made / "c", "--try", changed, "--last", "1")
    assert code == 1
    assert "refused: a run would not begin: " in out
    assert said in err
    assert "words/0: 1 outputs" in out


def test_two_versions_are_compared_and_explained_from_stored_state(made, tmp_path):
    other = tmp_path / "other.py"
    other.write_text(VOTES.replace("{state.count}", "{state.count + (state.count > 2)}"))
    arguments = ["--from", made / "c", "--last", "2", "--against", other]
    code, out, _ = called("rerun", made / "r", made / "votes.py", *arguments)
    assert code == 1
    assert "first differ at record 3:" in out
    assert "output 0 of words/0 is b'ann 3'" in out
    assert "output 0 of words/0 is b'ann 4'" in out
    assert "counts['a'] was Count(count=2)" in out


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("rerun r votes.py --last 3", "--last goes with --from"),
        ("rerun r votes.py --from r", "is a recording, which holds no state"),
        ("rerun r votes.py --from .", "holds no checkpoint"),
        ("checkpoint c --last 3", "--last goes with --try"),
        ("checkpoint c --unknown", "unknown arguments: --unknown"),
        ("checkpoint c --try votes.py --unknown", "there is no option --unknown"),
    ],
)
def test_what_cannot_be_meant_is_refused(made, monkeypatch, capsys, command, said):
    monkeypatch.chdir(made)
    assert main(command.split()) == 2
    assert said in capsys.readouterr().err


def test_a_checkpoint_whose_run_was_killed_while_it_stored_is_read_and_not_changed(made, tmp_path):
    shutil.copytree(made / "c", tmp_path / "open")
    running = sqlite3.connect(tmp_path / "open/reference/state.db", isolation_level=None)
    running.execute("PRAGMA wal_autocheckpoint=0")
    running.execute("UPDATE head SET id = 1")
    shutil.copytree(tmp_path / "open", tmp_path / "killed")
    running.close()
    before = tree(tmp_path / "killed")
    assert any(path.name == "state.db-wal" and data for path, data in before.items())
    assert ReferenceCheckpoint(tmp_path / "killed").position() == 4
    assert tree(tmp_path / "killed") == before
