"""Observed applications: each call of user code goes through the observer, and nothing changes."""

from __future__ import annotations

import pickle

import pytest
from wallaroo_reference.engine import CompiledEngine, ReferenceEngine

import wallaroo
from wallaroo.engine import Case
from wallaroo.records import End, Frame, Value
from wallaroo.user_code.calls import instrument


class Numbers:
    def initial_value(self):
        return 1

    def apply(self, last):
        return last + 1 if last < 3 else None


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload) -> int:
    return int(payload)


def event_time(message):
    return message


@wallaroo.key_extractor
def parity(message):
    return message % 2


@wallaroo.computation_multi(name="twice")
def twice(message):
    yield message
    yield message


@wallaroo.state_computation(name="count", state=list)
def count(message, seen):
    seen.append(message)
    return len(seen)


class Total:
    def initial_accumulator(self):
        return 0

    def update(self, message, accumulator):
        return accumulator + message

    def combine(self, earlier, later):
        return earlier + later

    def output(self, key, accumulator):
        return accumulator


@wallaroo.encoder
def encode(message) -> bytes:
    return b"%d" % message


def application():
    sink = wallaroo.TCPSinkConfig("localhost", "1", encode)
    frames = wallaroo.source(
        "frames", wallaroo.TCPSourceConfig("localhost", "2", decode, event_time=event_time)
    )
    windows = wallaroo.range_windows(20).with_slide(1).over(Total)
    made = wallaroo.source("made", wallaroo.GenSourceConfig(Numbers))
    return wallaroo.build_application(
        "observed",
        frames.key_by(parity).to(twice).to(count).to(windows).to_sink(sink),
        made.to_sink(sink),
    )


RECORDS = [
    *[Frame("frames", b"%d" % number) for number in range(1, 7)],
    Value("made", 1),
    Value("made", 2),
    End("frames"),
]


SITES = [
    ("build", "count"),
    ("decode", 0),
    ("event_time", 0),
    ("initial_value", 1),
    ("apply", 1),
    ("partition", 2),
    ("compute", 3),
    ("compute", 4),
    ("update", 5),
    ("initial_accumulator", 5),
    ("combine", 5),
    ("output", 5),
    ("encode", 6),
    ("encode", 7),
]


@pytest.mark.parametrize(
    ("engine", "isolation"), [(ReferenceEngine(), "isolated"), (CompiledEngine(), "trusting")]
)
def test_every_call_is_observed_where_it_is_made(engine, isolation):
    built, sites, calls = application(), [], []

    def around(site, call):
        sites.append((site.method, site.place))
        assert site.user in (*built.partitions, *built.nodes)
        if site.method == "event_time":
            return call

        def noted(*arguments):
            result = call(*arguments)
            calls.append((site.method, site.place, result))
            return result

        return noted

    observed = instrument(built, around)
    traces = [engine.run(Case(each, RECORDS, isolation=isolation)) for each in (built, observed)]
    assert traces[0].to_json() == traces[1].to_json()
    assert sites == SITES
    made = {("event_time", 0), ("initial_value", 1), ("apply", 1)}  # a case has what these gave
    assert {call[:2] for call in calls} == {*SITES} - made
    assert [result for *site, result in calls if site == ["decode", 0]] == [1, 2, 3, 4, 5, 6]
    encoders = [use.component for use in observed.components() if use.role == "encoder"]
    assert encoders[0].call.__annotations__ == encode.encode.__annotations__ != {}


def test_an_observed_application_that_is_pickled_is_observed_no_more():
    def around(site, call):
        return lambda *_: 1 / 0

    observed = instrument(application(), around)
    trace = ReferenceEngine().run(Case(pickle.loads(pickle.dumps(observed)), RECORDS))
    assert not trace.dead_letters
