"""``wallaroo explain``: the way of an output, over multi outputs, merges and windows."""

import base64
import json

import pytest
from recorded import VOTES, called, record, voted

from wallaroo.loading import load_application
from wallaroo.records import End, Frame, Tick, Value

SECOND = 10**9


def told(capfd, *arguments):
    code, out, err = called(capfd, "explain", *arguments)
    assert code == 0, err
    return out


def told_json(capfd, *arguments):
    return json.loads(told(capfd, *arguments, "--json"))


def test_the_way_goes_over_a_multi_output_and_an_entity(tmp_path, capfd):
    made, app = voted(tmp_path, "ann", "bob ann bob", "bob")
    out = told(capfd, made, app, "--output", "3")
    assert out == (
        "output 3 of words/0: b'bob 2'\n"
        "(1,) record 1: a frame of words at 0 s: b'bob ann bob'\n"
        "    decoder decode gave 'bob ann bob'\n"
        "(1,) computation split\n"
        "    came 'bob ann bob'\n"
        "    gave 3 messages:\n"
        "      'bob'\n"
        "      'ann'\n"
        "      'bob'\n"
        "(1, 2) state computation count\n"
        "    came 'bob'\n"
        "    counts['b'] was Count(count=1)\n"
        "    counts['b'] is Count(count=2)\n"
        "    gave 'bob 2'\n"
        "(1, 2) sink words/0, encoder encode\n"
        "    came 'bob 2'\n"
        "    wrote b'bob 2'\n"
        "\n"
        "counts['b']: 1 visit before\n"
        "  (1, 0) record 1: a frame of words at 0 s: b'bob ann bob'\n"
        "    came 'bob'\n"
        "    counts['b'] was just built: Count(count=0)\n"
        "    counts['b'] is Count(count=1)\n"
        "    gave 'bob 1'\n"
    )


def test_the_entitys_history_is_told_as_far_as_asked(tmp_path, capfd):
    made, app = voted(tmp_path, "bob", "bad", "ann", "bob", "bob")
    out = told(capfd, made, app, "--output", "3", "--visits", "2")
    history = out.partition("counts['b']: ")[2]
    assert history == (
        "3 visits before, the last 2 of them\n"
        "  (1, 0) record 1: a frame of words at 0 s: b'bad'\n"
        "    came 'bad'\n"
        "    counts['b'] is as before: Count(count=1)\n"
        "  (3, 0) record 3: a frame of words at 0 s: b'bob'\n"
        "    came 'bob'\n"
        "    counts['b'] was Count(count=1)\n"
        "    counts['b'] is Count(count=2)\n"
        "    gave 'bob 2'\n"
    )
    assert "visits" not in told(capfd, made, app, "--output", "3", "--visits", "0")


def test_a_dead_letter_a_record_and_an_entity_can_be_asked_for(tmp_path, capfd):
    made, app = voted(tmp_path, "bob bad", "ann")
    out = told(capfd, made, app, "--dead-letter", "0")
    assert "(0, 1) state computation count\n    came 'bad'\n" in out
    assert "    dead letter: raised: ValueError: a bad word\n" in out
    out = told(capfd, made, app, "--record", "0")
    assert "wrote b'bob 1'" in out
    assert "dead letter: raised" in out
    assert "ann" not in out
    out = told(capfd, made, app, "--entity", "counts", "a")
    assert out.startswith("counts['a']: 1 visit\n")
    assert "counts['a'] was just built: Count(count=0)" in out


def test_all_of_it_is_there_as_json(tmp_path, capfd):
    made, app = voted(tmp_path, "bob", "ann bob")
    form = told_json(capfd, made, app, "--output", "2")
    assert [step["what"] for step in form["steps"]] == [
        *("frame", "computation", "state computation", "sink")
    ]
    frame, _, visit, sink = form["steps"]
    assert base64.b64decode(frame["payload"]) == b"ann bob"
    assert visit["lineage"] == [1, 1]
    assert visit["state_before"] != visit["state_after"]
    assert base64.b64decode(sink["written"]) == b"bob 2"
    assert form["history"][0]["visits"] == 1
    assert form["history"][0]["last"][0]["record"]["lineage"] == [0]


def test_of_a_long_state_only_what_changed_is_told(tmp_path, capfd):
    made, _ = voted(tmp_path, "ann", "ann")
    app = tmp_path / "long.py"
    more = "state.count += 1; state.all[7] = 5; state.by[state.count] = 1"
    text = VOTES.replace("self.count = 0", "self.count = 0; self.all = [0] * 99; self.by = {}")
    app.write_text(text.replace("state.count += 1", more))
    out = told(capfd, made, app, "--output", "1", "--visits", "0")
    assert "counts['a'].by[2] is new: 1\n    counts['a'].count was 1, is 2\n" in out
    assert "counts['a'].all" not in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--output", "9"], "sink words/0 has 1 outputs, numbered from 0: there is no number 9"),
        (["--dead-letter", "0"], "there are 0 dead letters"),
        (["--record", "7"], "the records are numbered 0 to 0"),
        (["--entity", "votes", "a"], "has no state partition 'votes'; it has 'counts'"),
        (["--entity", "counts", "z"], "no message has met the entity 'z'"),
        (["--literal", "--entity", "counts", "(1, 'z')"], "has met the entity (1, 'z')"),
        (["--entity", "counts"], "no message has met the entity ()"),
        (["--entity", "counts", "a", "b"], "takes a PARTITION and a KEY at most"),
        (["--sink", "x/0", "--output", "0"], "has no sink x/0; it has words/0"),
        (["--sink", "words/0", "--record", "0"], "--sink goes with --output"),
    ],
)
def test_what_is_not_there_is_refused(tmp_path, capfd, options, said):
    made, app = voted(tmp_path, "ann")
    code, out, err = called(capfd, "explain", made, app, *options)
    assert code in (1, 2)
    assert out == ""
    assert said in err


GRAPH = """
import small_windows
import wallaroo
from counted import first_word, source

def at(message):
    return int(message.split()[1]) * 10**9

@wallaroo.computation(name="shout")
def shout(message):
    return message.upper()

class Count(small_windows.Total):
    def output(self, key, number, window):
        return f"{key} {number}"

class Total(small_windows.Collect):
    def output(self, key, seen, window):
        return "; ".join(seen)

@wallaroo.encoder
def encode(message):
    return message

SINK = wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)
WINDOWS = WINDOWS_ARE

def application_setup(args):
    left, right = [source(name, event_time=at) for name in ("left", "right")]
    both = left.to(shout).merge(right)
    return wallaroo.build_application("graph", both.key_by(first_word).to(WINDOWS).to_sink(SINK))
"""


def graphed(tmp_path, windows, *records):
    app = tmp_path / "graph.py"
    app.write_text(GRAPH.replace("WINDOWS_ARE", f"wallaroo.{windows}"))
    application = load_application(app)
    return record(tmp_path / "g", application, records), app


def test_the_way_begins_at_a_generators_value(tmp_path, capfd):
    app = tmp_path / "made.py"
    app.write_text(
        GRAPH.partition("SINK =")[0]
        + """
class Words:
    def initial_value(self):
        return "one"
    def apply(self, last):
        return None

def application_setup(args):
    words = wallaroo.source("words", wallaroo.GenSourceConfig(Words()))
    sink = wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)
    return wallaroo.build_application("made", words.to(shout).to_sink(sink))
"""
    )
    made = record(tmp_path / "r", load_application(app), [Value("words", "one", SECOND)])
    out = told(capfd, made, app, "--output", "0")
    assert "(0,) record 0: a value of generator words at 1 s\n    gave 'one'\n" in out
    value, *_ = told_json(capfd, made, app, "--output", "0")["steps"]
    assert [value[name] for name in ("what", "source", "pipeline")] == ["value", "words", "words"]


def frame(source, text, at):
    return Frame(source, text.encode(), at * SECOND)


def firing(form):
    (found,) = [step for step in form["steps"] if step["what"] == "firing"]
    return found


def test_a_windows_output_names_the_messages_in_it_and_the_watermark_that_fired_it(tmp_path, capfd):
    made, app = graphed(
        tmp_path,
        "range_windows(wallaroo.seconds(10)).over(Count)",
        *(frame("left", "a 1", 100), frame("right", "A 3", 101), frame("right", "B 2", 102)),
        *(frame("left", "a 11", 103), frame("right", "A 12", 104)),
    )
    out = told(capfd, made, app, "--output", "0")
    assert "(4,) record 4: a frame of right at 104 s: b'A 12'\n" in out
    assert "(4, -1, 0) window of Count, key 'A', from 0 s to 10 s\n" in out
    assert "    fired: the watermark has passed its end with this record: 11 s\n" in out
    assert "    2 messages in it:\n      (0,) at 1 s: 'A 1'\n      (1,) at 3 s: 'A 3'\n" in out
    assert "    gave 'A 2'\n" in out
    form = told_json(capfd, made, app, "--output", "1")
    assert firing(form)["window"]["messages"][0]["lineage"] == [2]
    assert firing(form)["window"]["fired_by"] == "watermark"


@pytest.mark.parametrize(
    ("windows", "texts", "found"),
    [
        (
            "range_windows(wallaroo.seconds(10)).with_slide(wallaroo.seconds(5))",
            "a 6, a 12, a 9",
            [("all sources have ended", [0, 2]), ("", [0, 1, 2]), ("", [1])],
        ),
        (  # two sessions that merge
            "session_windows(wallaroo.seconds(5))",
            "a 1, a 9, a 5, a 30",
            [("from 1 s to 14 s", [0, 1, 2]), ("", [3])],
        ),
        (
            "range_windows(wallaroo.seconds(10)).with_late_data_policy('fire-per-message')",
            "a 25, B 26 right, a 3",
            [("fired: its one message is late, and fires by itself", [2])],
        ),
        (
            "range_windows(wallaroo.seconds(10)).with_late_data_policy('place-in-oldest-window')",
            "a 25, A 26 right, a 3",
            [("", [0, 1, 2])],
        ),
    ],
    ids=["overlapping", "sessions", "late", "placed in the oldest"],
)
def test_a_windows_output_names_the_messages_in_it(tmp_path, capfd, windows, texts, found):
    frames = [
        frame("right" if "right" in text else "left", text.removesuffix(" right"), 100 + number)
        for number, text in enumerate(texts.split(", "))
    ]
    ends = [End(source, 110 * SECOND) for source in ("left", "right")]
    made, app = graphed(tmp_path, f"{windows}.over(Count)", *frames, *ends)
    for number, (said, lineages) in enumerate(found):
        assert said in told(capfd, made, app, "--output", number)
        window = firing(told_json(capfd, made, app, "--output", number))["window"]
        assert [one["lineage"] for one in window["messages"]] == [[one] for one in lineages]


def test_a_count_window_fires_when_it_is_full_or_its_time_is_over(tmp_path, capfd):
    made, app = graphed(
        tmp_path,
        "count_windows(2).with_timeout(wallaroo.seconds(5)).over(Total)",
        *(frame("left", "a 1", 100), frame("right", "A 3", 101), frame("left", "a 4", 103)),
        Tick(120 * SECOND),
    )
    out = told(capfd, made, app, "--output", "0")
    assert "(1,) windows of Total\n    came 'A 3', its time is 3 s\n" in out
    assert "fired: its last message has filled it\n    2 messages in it:\n" in out
    out = told(capfd, made, app, "--output", "1")
    assert out.splitlines()[1] == "(3,) record 3: time passes, it is 120 s"
    assert "fired: its timeout is over\n    1 message in it:\n      (2,) at 4 s: 'A 4'\n" in out
