"""Entities that expire (key-4), and an application's own serialization (key-5)."""

import json
import pickle
import types
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_windows import arrivals, built, encode_repr, events, initial, said, sink

import wallaroo
from wallaroo import seconds, testing
from wallaroo.engine import Case, load_engine
from wallaroo.records import Frame
from wallaroo.topology import Codec


def count(event, state):
    state.append(event[0])
    if event[0].endswith("!"):
        raise ValueError
    return len(state)


def counting(expire_after):
    return wallaroo.state_computation(name="count", state=list, expire_after=expire_after)(count)


TEN = seconds(10)

log = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 8)), min_size=5, max_size=12)


@given(log, st.sampled_from(["isolated", "trusting"]), st.integers(1, 5))
def test_key_4_an_entity_is_there_until_so_long_after_its_last_visit(log, isolation, life):
    """Over restarts too."""
    now, visits, frames = 0, {}, []
    for key, later in log:
        now += later
        visits = {one: at for one, at in visits.items() if now - at[-1] < 10}
        visits[key] = [*visits.get(key, []), now]
        frames.append(Frame("events", f"{key} 0".encode(), seconds(now)))
    application = built(arrivals().key_by(initial).to(counting(TEN)).done())
    options = {"lives": [life]}
    case = Case(application, frames, isolation=isolation, options=options)
    entities = load_engine("reference").run(case).entities
    assert {one.key: len(one.load()) for one in entities} == {
        one: len(at) for one, at in visits.items()
    }


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


def with_codec(pipeline, serialize=pickle.dumps, deserialize=pickle.loads):
    return replace(built(pipeline.to_sink(sink())), codec=Codec(serialize, deserialize))


def kept_as_text(value):
    return "text" if value == ("a", 1.0) else pickle.dumps(value)


def test_key_5_what_serialize_returns_is_bytes_or_the_message_is_unportable(isolated):
    result = isolated(with_codec(arrivals(), kept_as_text), {"events": [b"a 1", b"b 2"]})
    assert result.output == [b"('b', 2.0);"]
    (letter,) = result.dead_letters
    assert (letter.reason, letter.lineage) == ("unportable", (0,))
    assert letter.error.endswith("TypeError: serialize returned a str, not bytes")


@pytest.mark.parametrize("failing", ["serialize", "deserialize"])
def test_dead_3_an_exit_in_a_codec_ends_the_run(failing):
    def exits(value):
        raise SystemExit(3)

    application = with_codec(arrivals(), **{failing: exits})
    trace = load_engine("reference").run(Case(application, [("events", b"a 1")]))
    assert trace.ended is not None
    assert (trace.ended.kind, trace.ended.error_type) == ("exit", "SystemExit")


def test_key_5_trusting_mode_asks_the_codec_only_for_what_it_copies():
    asked = []

    def nothing(value):
        asked.append(value)

    application = with_codec(arrivals(), nothing)
    records = {"events": [b"a 1", b"b 2"]}
    assert len(testing.run(application, records, isolation="trusting").output) == 2
    assert asked == []
    isolated = testing.run(application, records, isolation="isolated")
    assert [one.reason for one in isolated.dead_letters] == ["unportable", "unportable"]
