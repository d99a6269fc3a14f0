"""Windows beside states, and a stop among windows that are due together."""

from __future__ import annotations

from wallaroo_reference.engine import ReferenceEngine

import wallaroo
from wallaroo.engine import Case
from wallaroo.records import Tick

RECORDS = [("p", b"a"), ("p", b"b"), ("p", b"c"), Tick(10)]


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode()


@wallaroo.encoder
def encode(message):
    return repr(message)


@wallaroo.partition
def itself(message):
    return message


class Count:
    def initial_accumulator(self):
        return 0

    def update(self, message, accumulator):
        return accumulator + 1

    def output(self, key, accumulator):
        return key


class Fails(Count):
    def output(self, key, accumulator):
        raise ValueError(key)


class Seen:
    def __init__(self):
        self.count = 0


@wallaroo.state_computation(name="number")
def number(message, seen):
    seen.count += 1
    return (message, seen.count), True


def source():
    return wallaroo.TCPSourceConfig("127.0.0.1", 0, decode)


def sink():
    return wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)


def test_route_6_behind_keyed_windows_a_stateful_step_has_one_entity():
    builder = wallaroo.ApplicationBuilder("numbered").new_pipeline("p", source())
    builder.to_window(wallaroo.count_windows(1).over(Count), itself, "windows")
    builder.to_stateful(number, Seen, "seen")
    trace = ReferenceEngine().run(Case(builder.to_sink(sink()).build(), RECORDS))
    assert trace.outputs["p", 0] == (b"('a', 1)", b"('b', 2)", b"('c', 3)")
    assert [entity.key for entity in trace.entities] == [()]


def test_dead_4_windows_that_a_stop_came_before_stay_open():
    windows = wallaroo.count_windows(5).with_timeout(10).over(Fails)
    pipeline = wallaroo.source("p", source()).key_by(itself).to(windows)
    application = wallaroo.build_application("stops", pipeline.to_sink(sink()))
    trace = ReferenceEngine().run(Case(application, RECORDS, on_error="stop"))
    assert [window.key for window in trace.windows] == ["b", "c"]
