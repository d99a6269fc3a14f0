"""Entities that expire (key-4), and an application's own serialization (key-5)."""

from __future__ import annotations

import json
import types

import pytest
from small_windows import Gather, built, config, encode_repr, events, initial, said, sink

import wallaroo
from wallaroo import range_windows, seconds
from wallaroo.records import Frame, Tick


def count(event, state):
    state.append(event[0])
    if event[0].endswith("!"):
        raise ValueError
    return len(state)


def counting(expire_after):
    return wallaroo.state_computation(name="count", state=list, expire_after=expire_after)(count)


TEN = seconds(10)


def pipeline(expire_after=TEN):
    return events().key_by(initial).to(counting(expire_after)).to_sink(sink())


def builder(expire_after=TEN):
    def pair(event, state):
        return count(event, state), True

    step = wallaroo.state_computation(name="count")(pair)
    return (
        wallaroo.ApplicationBuilder("app")
        .new_pipeline("events", config())
        .to_state_partition(step, list, "count", initial, expire_after=expire_after)
        .to_sink(sink())
        .build()
    )


@pytest.fixture(params=["pipeline", "builder"])
def application(request):
    return built(pipeline()) if request.param == "pipeline" else builder()


def test_key_4_by_arrival_time_not_event_time(run, application):
    result = run(application, {"events": [b"a 0", b"a 1000"]})
    assert result.output == [b"1;", b"2;"]


def test_key_4_any_record_lets_others_expire(run, application):
    for other in (Frame("events", b"b 0", TEN), Frame("events", b"nonsense", TEN), Tick(TEN)):
        result = run(application, [Frame("events", b"a 0"), other])
        assert "a" not in result.entities["count"]


def coded(serialize, deserialize):
    """Two functions of a module, which builds an application of what it is given."""
    module = types.ModuleType("coded")
    vars(module).update(serialize=serialize, deserialize=deserialize, wallaroo=wallaroo)
    exec(
        "def build(*pipelines): return wallaroo.build_application('app', *pipelines)", vars(module)
    )
    return module.build


def as_json(value):
    return json.dumps(value).encode()


def test_key_5_messages_states_and_accumulators_go_through_it(isolated):
    seen = []

    def serialize(value):
        seen.append(value)
        return as_json(value)

    step = counting(None)
    keyed = events().key_by(initial)
    result = isolated(
        coded(serialize, json.loads)(
            keyed.to(step).to_sink(sink()),
            keyed.to(range_windows(TEN).over(Gather())).to_sink(sink()),
        ),
        {"events": [b"a 1"]},
    )
    assert result.outputs == {("events", 0): [b"1;"], ("events", 1): [b"'a:a@0-10';"]}
    for what in (("a", 1.0), 1, ["a"], "a", "a:a@0-10"):
        assert what in seen


def test_key_5_keys_do_not_go_through_it(isolated):
    keyed = events().key_by(wallaroo.key_extractor(lambda event: (event[0], 1)))
    application = coded(as_json, json.loads)(keyed.to(counting(None)).to_sink(sink()))
    assert list(isolated(application, {"events": [b"a 1"]}).entities["count"]) == [("a", 1)]


def test_key_5_one_without_the_other_has_no_effect(isolated):
    def broken(value):
        raise AssertionError

    for serialize, deserialize in ((broken, None), (None, broken)):
        application = coded(serialize, deserialize)(events().to_sink(sink(encode_repr)))
        assert said(isolated(application, {"events": [b"a 1"]})) == ["'a', 1.0"]
