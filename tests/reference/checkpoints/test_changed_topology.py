"""A checkpoint goes on with another topology: what is kept, new, dropped, and refused."""

import collections
import dataclasses
import functools
import json
import pickle
import random
import re
import shutil

import counted
import pytest
from counted import Count
from mixed import tree
from receiving import eventually
from small_windows import Gather, encode_repr, events, initial
from wallaroo_reference.checkpoints import collecting

import wallaroo
from wallaroo import seconds
from wallaroo.cli.main import main
from wallaroo.topology import Codec
from wallaroo.transport.identity import CheckpointError

FIRST = ["a 1", "b 2", "a 3"]
THEN = ["a 4", "b 70", "b 200"]
send = functools.partial(counted.send, to="in")


@wallaroo.computation(name="upper")
def upper(event):
    return event[0].upper(), event[1]


def numbered(event, state):
    state.count += 1
    return f"{event[0]}{state.count}", event[1]


def application(
    port,
    *,
    steps=(),
    state="count",
    state_name=None,
    expires=None,
    windows=60,
    sinks=1,
    sources=("in",),
):
    """Number the messages of each key, and gather those of each minute, with some changes."""
    built = []
    for name in sources:
        way = events(name)
        for step in steps:
            way = way.to(step)
        way = way.key_by(initial)
        if state and name == "in":
            kept = {} if expires is None else {"expire_after": seconds(expires)}
            kept |= {"state_name": state_name} if state_name else {}
            way = way.to(wallaroo.state_computation(name=state, state=Count, **kept)(numbered))
        if windows and name == "in":
            if isinstance(windows, int):
                windows = wallaroo.range_windows(seconds(windows))
            way = way.to(windows.over(Gather()))
        out = wallaroo.TCPSinkConfig("127.0.0.1", port, encode_repr)
        built.append(way.to_sinks([out] * sinks) if sinks > 1 else way.to_sink(out))
    return wallaroo.build_application("app", *built)


def run(serve, application, messages, isolation="trusting", **own):
    """Process some messages, and stop in order."""
    handle = serve(application, isolation, own=own)
    if messages:
        send(handle, *messages)
    handle.stop()
    summary = handle.wait(60)
    assert summary.problem is None
    assert summary.dead_letters == {}


def page(caplog):
    """Return the lines that were logged, by what becomes of what they name."""
    rows = [re.match(r"(kept|new|dropped) +(.*)", text) for text in caplog.messages]
    return [row.groups() for row in rows if row]


KEPT = {
    "count": ("kept", "state partition 'count': 2 entities"),
    "windows": ("kept", "windows of 'gather', range 1 min: 2 open"),
}
GATHERED = b"'a:a1a2a3@0-60';'b:b1@0-60';'b:b2@60-120';"


@pytest.mark.parametrize(
    ("changes", "drop", "rows", "outputs"),
    [
        (
            {"steps": [upper]},
            [],
            [*KEPT.values(), ("new", "step 'upper' of pipeline 'in'")],
            b"'A:A1@0-60';'a:a1a2@0-60';'b:b1@0-60';'B:B1@60-120';",
        ),
        (
            {"state": "number"},
            ["count"],
            [
                ("dropped", "state partition 'count': 2 entities"),
                ("new", "state partition 'number'"),
                KEPT["windows"],
            ],
            b"'a:a1a2a1@0-60';'b:b1@0-60';'b:b1@60-120';",
        ),
        ({"state": "number", "state_name": "count"}, [], [*KEPT.values()], GATHERED),
        (
            {"windows": 120},
            ["gather"],
            [
                KEPT["count"],
                ("dropped", "windows of 'gather', range 1 min: 2 open"),
                ("new", "windows of 'gather', range 2 min"),
            ],
            b"'a:a3@0-120';'b:b2@0-120';",
        ),
        (
            {"state": None},
            ["count"],
            [KEPT["windows"]],
            b"'a:a1a2a@0-60';'b:b1@0-60';'b:b@60-120';",
        ),
        (
            {"windows": None},
            ["gather"],
            [KEPT["count"]],
            b"('a3', 4.0);('b2', 70.0);('b3', 200.0);",
        ),
        ({"sinks": 2}, [], [*KEPT.values(), ("new", "sink in/1")], GATHERED),
        ({"sources": ("more", "in")}, [], [*KEPT.values(), ("new", "source 'more'")], GATHERED),
        ({"expires": 1000}, [], [*KEPT.values()], GATHERED),
    ],
    ids=str,
)
def test_recover_4_a_changed_topology_goes_on_with_what_is_kept(
    serve, tmp_path, receiver, caplog, changes, drop, rows, outputs
):
    run(serve, application(receiver.port), FIRST)
    before, changed = tree(tmp_path / "c"), application(receiver.port, **changes)
    for accepted in ({}, {"accept_topology": True, "drop_state": [*drop, "other"]}):
        caplog.clear()
        with pytest.raises(CheckpointError) as refused:
            serve(changed, own={"record": tmp_path / "recorded", **accepted})
        assert set(rows) <= set(page(caplog))
        assert tree(tmp_path / "c") == before
        assert not (tmp_path / "recorded").exists()
        names = "".join([f" --drop-state {name}" for name in drop])
        said = f"kept: --accept-topology{names}." if not accepted else "'other': nothing that"
        assert said in str(refused.value)
        renamed = not accepted and changes == {"state": "number"}
        assert renamed == ("with state_name='OLD NAME'" in str(refused.value))
    sunk = len(receiver.so_far)
    run(serve, changed, THEN, accept_topology=True, drop_state=drop)
    eventually(lambda: outputs in receiver.so_far[sunk:])
    caplog.clear()
    run(serve, changed, [], accept_topology=True, drop_state=drop)  # asked for no more
    run(serve, changed, [])
    assert not page(caplog)


@wallaroo.partition
def first_word(message):
    return message.split()[0]


def counting_in(order, port):
    """Number the messages of each key in several pipelines, by a state partition for each."""
    builder = wallaroo.ApplicationBuilder("app")
    for name in order:
        builder.new_pipeline(name, wallaroo.TCPSourceConfig("127.0.0.1", 0, counted.text))
        builder.to_state_partition(counted.number, Count, f"counts of {name}", first_word)
        builder.to_sink(counted.sink(port))
    return builder.build()


@pytest.mark.parametrize("isolation", ["trusting", "isolated"])
@pytest.mark.parametrize("seed", range(3))
def test_recover_1_state_partitions_may_change_their_order_at_each_start(
    serve, receiver, monkeypatch, isolation, seed
):
    """A checkpoint writes only some of the entities again that have not changed."""
    monkeypatch.setattr(collecting, "_LEAST_AGAIN", 3)
    chance = random.Random(seed)
    pipelines, keys = ["a", "b", "c"], [f"k{number}" for number in range(20)]
    came, wanted = collections.Counter(), []
    for version in range(6):
        chance.shuffle(pipelines)
        own = {"accept_topology": True, "checkpoint_interval": chance.choice((0.001, 1000))}
        handle = serve(counting_in(pipelines, receiver.port), isolation, own=own)
        for name in pipelines:
            some = keys if version in (0, 5) else chance.choices(keys, k=chance.randint(0, 3))
            messages = [f"{key} {name}" for key in some * (1 + (name == "b"))]
            counted.send(handle, *messages, to=name)
            for message in messages:
                came[message] += 1
                wanted.append(f"{message} {came[message]}")
        handle.stop()
        assert handle.wait(60).exit_code == 0
    eventually(lambda: b"".join(receiver.so_far).count(b"\n") >= len(wanted))
    assert sorted(b"".join(receiver.so_far).decode().splitlines()) == sorted(wanted)


def test_recover_1_a_kill_before_the_first_commit_loses_nothing_and_asks_no_more(serve, receiver):
    own = {"checkpoint_interval": 1000}
    run(serve, application(receiver.port), FIRST)
    handle = serve(application(receiver.port), own=own)
    send(handle, "a 4")  # it waits in the log
    handle.kill()
    changed = application(receiver.port, state="number", sources=("more", "in"))
    handle = serve(changed, own={**own, "accept_topology": True, "drop_state": ["count"]})
    send(handle, "b 5")
    handle.kill()
    sunk = len(receiver.so_far)
    run(serve, changed, ["b 70"])
    run(serve, changed, ["b 200"])
    handle = serve(changed)
    send(handle, "a 300")
    eventually(
        lambda: (
            b"".join(receiver.so_far[sunk:])
            == b"'a:a1a2a1@0-60';'b:b1b1@0-60';'b:b2@60-120';'b:b3@180-240';"
        )
    )
    handle.kill()


@pytest.mark.parametrize("isolation", ["trusting", "isolated"])
def test_recover_1_what_waits_of_a_source_that_is_gone_is_dropped_by_name(
    serve, receiver, caplog, isolation
):
    two = application(receiver.port, sources=("more", "in"))
    run(serve, two, FIRST, isolation)
    handle = serve(two, isolation, own={"checkpoint_interval": 1000})
    send(handle, "x 1", "y 2", to="more")
    send(handle, "a 4")
    handle.kill()
    one = application(receiver.port)
    with pytest.raises(CheckpointError, match=r"--accept-topology --drop-state more\."):
        serve(one, isolation)
    assert ("dropped", "source 'more': 2 records wait") in page(caplog)
    assert ("kept", "source 'in': 1 record waits") in page(caplog)
    sunk = len(receiver.so_far)
    run(serve, one, THEN[1:], isolation, accept_topology=True, drop_state=["more"])
    eventually(lambda: GATHERED in receiver.so_far[sunk:])


def test_recover_4_the_same_steps_connected_otherwise_are_another_topology(serve, receiver, caplog):
    out = wallaroo.TCPSinkConfig("127.0.0.1", receiver.port, encode_repr)

    def connected(first):
        trunk, other = events("in"), events("other").to(upper)
        ways = [trunk.to(upper), trunk.to(upper)]
        joined = ways[first].merge(other).to_sink(out)
        return wallaroo.build_application("app", joined, ways[1 - first].to_sink(out))

    run(serve, connected(0), FIRST)
    with pytest.raises(CheckpointError, match="another topology"):
        serve(connected(1))
    run(serve, connected(1), THEN, accept_topology=True)


def test_recover_4_a_recording_goes_on_with_a_topology_that_is_accepted(serve, tmp_path, receiver):
    own = {"record": tmp_path / "recorded"}
    run(serve, application(receiver.port), FIRST, **own)
    changed = application(receiver.port, sinks=2)
    run(serve, changed, THEN, accept_topology=True, **own)
    run(serve, changed, ["a 300"], **own)


@pytest.mark.parametrize("isolation", ["trusting", "isolated"])
def test_key_4_entities_that_expire_from_now_on_were_visited_by_the_last_record(
    serve, receiver, isolation
):
    run(serve, application(receiver.port, windows=None), FIRST, isolation)
    sunk = len(receiver.so_far)
    changed = application(receiver.port, windows=None, expires=1000)
    run(serve, changed, ["a 4"], isolation, accept_topology=True)
    eventually(lambda: b"('a3', 4.0);" in receiver.so_far[sunk:])


def test_key_5_states_that_the_other_way_of_storing_cannot_read_are_refused(serve, receiver):
    plain = application(receiver.port)
    run(serve, plain, FIRST)
    codec = Codec(pickle.dumps, pickle.loads)
    with pytest.raises(CheckpointError, match="stored by pickle, and this application has a"):
        serve(dataclasses.replace(plain, codec=codec), own={"accept_topology": True})


def shout(name, key, state):
    return state.upper() if name == "gather" else state


@pytest.mark.parametrize("isolation", ["trusting", "isolated"])
@pytest.mark.parametrize(
    ("windows", "shown", "outputs"),
    [
        (
            wallaroo.range_windows(seconds(60)).with_slide(seconds(30)),
            [("a", 0, 60, ["a1a2", "a3"]), ("a", 30, 90, ["a3"])],
            b"'a:A1A2+A3@0-60';'a:A3@30-90';",
        ),
        (
            wallaroo.session_windows(seconds(20)),
            [("a", 40, 60, ["a3"])],
            b"'a:A3@40-60';",
        ),
        (
            wallaroo.count_windows(5),
            [("a", 1, 40.000000001, ["a1a2a3"])],
            b"'a:A1A2A3a4a5@1-200';",
        ),
    ],
    ids=["range", "sessions", "count"],
)
def test_open_windows_are_shown_and_migrated(
    serve, tmp_path, receiver, capsys, isolation, windows, shown, outputs
):
    app = application(receiver.port, windows=windows)
    run(serve, app, ["a 1", "a 2", "a 40"], isolation)
    assert main(["checkpoint", str(tmp_path / "c"), "--entities", "gather"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [
        (
            one["key"]["str"],
            one["start"] / 10**9,
            one["end"] / 10**9,
            [value for _, value in one["accumulators"]],
        )
        for one in found
    ] == shown
    counted = [one.get("messages") for one in found]
    assert counted == [3 if isinstance(windows, wallaroo.windows.CountWindows) else None] * len(
        shown
    )
    assert main(["checkpoint", str(tmp_path / "c"), "--migrate", f"{__name__}:shout"]) == 0
    shutil.rmtree(tmp_path / "c")
    (tmp_path / "c.migrated").rename(tmp_path / "c")
    sunk = len(receiver.so_far)
    run(serve, app, ["a 200", "a 200"], isolation)
    eventually(lambda: outputs in b"".join(receiver.so_far[sunk:]))


def test_a_sink_that_comes_back_goes_on_with_its_number_of_outputs(
    serve, tmp_path, receiver, capsys
):
    for sinks, messages in ((2, FIRST), (1, ["b 70"]), (2, ["b 200"])):
        app = application(receiver.port, sinks=sinks, windows=None)
        run(serve, app, messages, accept_topology=True)
    assert main(["checkpoint", str(tmp_path / "c")]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[-2:] for line in shown if line.startswith("outputs")] == [
        ["in/0", "5"],
        ["in/1", "4"],
    ]
