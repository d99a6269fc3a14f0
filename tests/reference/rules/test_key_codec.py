"""An application's own `serialize` and `deserialize` stand for pickle (key-5)."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from small_windows import arrivals, built, sink

import wallaroo
from wallaroo import testing
from wallaroo.engine import Case, load_engine
from wallaroo.findings import FindingKind
from wallaroo.topology import Codec


class Seen:
    def __init__(self):
        self.names = []


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


@pytest.mark.parametrize("alters", [False, True])
def test_isolation_an_unflagged_mutation_is_seen_in_what_serialize_writes(alters):
    @wallaroo.state_computation(name="look")
    def look(event, seen):
        if alters:
            seen.names.append(event[0])
        return event, False

    @wallaroo.decoder(header_length=4, length_fmt=">I")
    def decode(payload):
        return payload.decode()

    builder = wallaroo.ApplicationBuilder("app")
    builder.new_pipeline("events", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    application = builder.to_stateful(look, Seen, "seen").done().build()
    application = replace(application, codec=Codec(pickle.dumps, pickle.loads))
    found = testing.run(application, {"events": [b"a", b"b"]}).findings
    assert [one.kind for one in found] == [FindingKind.UNFLAGGED_MUTATION] * alters


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
