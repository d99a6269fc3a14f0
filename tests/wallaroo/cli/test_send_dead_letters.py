"""``wallaroo send --dead-letters``: to real sources, what runs have written."""

import io
import json
import re

import pytest
from counted import text
from letters import dead_letter
from served import raising
from wallaroo_reference.engine import ReferenceEngine

import wallaroo
from wallaroo.cli.main import main
from wallaroo.config import format_address
from wallaroo.engine import ServeOptions


class Served:
    """Two sources, `a` and `b`, whose messages come out with the source's name before them."""

    def __init__(self, *steps, **options):
        builder = wallaroo.ApplicationBuilder("app")
        for name in "ab":
            builder.new_pipeline(name, wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
            for step in steps:
                builder.to(wallaroo.computation(name=f"checked {name}")(step))
            encoder = wallaroo.encoder(lambda message, name=name: f"{name} {message}")
            builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 0, encoder))
        self._out = io.BytesIO()
        options = ServeOptions(stdout=self._out, **options)
        self._handle = ReferenceEngine().serve(builder.build(), options)
        self.to = {n: format_address(*at) for n, at in self._handle.addresses.items()}

    def stopped(self):
        """Stop; return the summary, and what came out."""
        self._handle.stop()
        return self._handle.wait(60), self._out.getvalue().decode().splitlines()


@pytest.fixture
def served():
    served = Served()
    yield served
    served.stopped()


def letter(number, source="a", payload=b"x", run="1", **changes):
    fields = {"lineage": (number,), "source": source, "payload": payload, **changes}
    return json.dumps({**dead_letter(**fields).to_json(), "run": run}) + "\n"


def send(path, *to):
    return main(
        ["send", "--dead-letters", str(path), *[part for one in to for part in ("--to", one)]]
    )


def test_each_message_is_sent_once_to_its_source_rotated_files_first(tmp_path, served, capsys):
    path = tmp_path / "dead.jsonl"
    (tmp_path / "dead.jsonl.000002").write_text(
        letter(4, payload=b"4") + letter(4, payload=b"4", lineage=(4, 1)) + letter(6, "b", b"6")
    )
    (tmp_path / "dead.jsonl.000010").write_text(letter(7, payload=b"7"))
    (tmp_path / "dead.jsonl.copy").write_text(letter(9, payload=b"9"))
    path.write_text(
        letter(7, payload=b"7")  # the same run again, after a crash
        + letter(8, payload=b"8")
        + letter(7, payload=b"new 7", run="2")
    )
    assert send(path, f"a@{served.to['a']}", f"b@{served.to['b']}") == 0
    # By source: the two connections have no order between them.
    outputs = sorted(served.stopped()[1], key=lambda output: output[0])
    assert outputs == ["a 4", "a 7", "a 8", "a new 7", "b 6"]
    said = capsys.readouterr().err.splitlines()
    assert said[0] == (f"{path} and 2 rotated beside it: 7 dead letters, 5 messages to send")
    assert [re.sub(" to .*", "", line) for line in said[1:]] == [
        "sent 4 messages (24 bytes)",
        "sent 1 message (5 bytes)",
    ]


def test_what_cannot_be_sent_is_counted_and_the_exit_code_is_1(tmp_path, served, capsys):
    path = tmp_path / "dead.jsonl"
    path.write_text(
        letter(1)
        + letter(2, "b\x1b")
        + letter(3, "made", None)
        + letter(4, "made", None)
        + letter(5, None, None)
        + '{"lineage": [6], "sour\n[]\n'
    )
    assert send(path, f"a@{served.to['a']}") == 1
    assert served.stopped()[1] == ["a x"]
    assert capsys.readouterr().err.splitlines()[1:5] == [
        "not sent: 2 dead letters without a frame: of source 'made', from a generator or a window",
        "not sent: 1 dead letter without a frame: of windows that fired by time alone",
        "not sent: 2 lines without a dead letter: a crash may cut one off",
        "not sent: 1 message of source 'b\\x1b': say where it listens, --to 'b\\x1b@HOST:PORT'",
    ]


@pytest.mark.parametrize(
    ("to", "said"),
    [
        (
            ["127.0.0.1:1"],
            "has messages of 2 sources; say where each listens: --to a@HOST:PORT --to b",
        ),
        (["a@127.0.0.1:1", "a@127.0.0.1:2"], "give each source one --to NAME@HOST:PORT"),
        (["a@127.0.0.1:1", "127.0.0.1:2"], "give each source one --to NAME@HOST:PORT"),
    ],
)
def test_addresses_that_do_not_say_what_goes_where_are_refused(tmp_path, capsys, to, said):
    path = tmp_path / "dead.jsonl"
    path.write_text(letter(1) + letter(2, "b"))
    assert send(path, *to) == 2
    assert said in capsys.readouterr().err


def test_nothing_is_sent_unless_all_listen(tmp_path, served, capsys):
    path = tmp_path / "dead.jsonl"
    path.write_text(letter(1) + letter(2, "b"))
    to = ["--to", f"a@{served.to['a']}", "--to", "b@127.0.0.1:1"]
    assert main(["send", "--dead-letters", str(path), *to, "--wait", "0"]) == 1
    assert "nobody listens" in capsys.readouterr().err
    assert served.stopped()[0].received == {"a": 0, "b": 0}


@pytest.mark.parametrize("more", [["-"], ["x", "--repeat", "2"], ["none.jsonl"]])
def test_calls_that_make_no_sense_are_refused(tmp_path, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    assert main(["send", "--dead-letters", *more, "--to", "127.0.0.1:1"]) == 2


def test_what_two_runs_have_written_goes_back_into_a_mended_one(tmp_path):
    path, lines = tmp_path / "dead.jsonl", tmp_path / "lines"
    for first in ("1", "2"):  # both runs number their messages from 0
        broken = Served(raising, dead_letters=path)
        lines.write_text(f"{first}\nmore\n")
        assert main(["send", str(lines), "--to", broken.to["b"]]) == 0
        assert broken.stopped()[0].dead_letters == {("b", "checked b", "raised"): 2}
    mended = Served()
    assert send(path, mended.to["b"]) == 0
    assert mended.stopped()[1] == ["b 1", "b more", "b 2", "b more"]


def test_letters_of_a_topic_are_not_sent_and_say_what_to_do(tmp_path, capsys):
    path = tmp_path / "dead.jsonl"
    path.write_text(letter(4, record=("orders", 1, 7)))
    assert send(path, "127.0.0.1:1") == 1
    said = capsys.readouterr().err
    assert "1 dead letter, 0 messages to send" in said
    assert "not sent: 1 dead letter of topic 'orders', where its record is" in said
    assert "Send it to the topic once more with a producer of Kafka" in said
