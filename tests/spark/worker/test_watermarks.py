"""Watermarks noted by several tasks and replayed by one shard, in batches."""

from __future__ import annotations

import pytest
from wallaroo_spark.wire.tracks import NO_TIME, Moment, What, moments
from wallaroo_spark.worker.watermarks import FOREVER, NEVER, Tracker, Watermarks

import wallaroo


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload


@wallaroo.encoder
def encode(message):
    return message


def application(**timed):
    config = wallaroo.TCPSourceConfig("127.0.0.1", 0, decode, **timed)
    sink = wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)
    return wallaroo.build_application("app", wallaroo.source("p", config).to_sink(sink))


BY_EVENT = {"event_time": lambda message: 0}


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize(
    ("timed", "seen"),
    [
        ({}, [10, 10, 20, 50, FOREVER]),
        (BY_EVENT, [7, 7, 7, 7, FOREVER]),
        ({**BY_EVENT, "idle_after": 30}, [7, 7, 7, 37, FOREVER]),
    ],
    ids=["arrival", "event", "idle"],
)
def test_time_3_a_watermark_goes_on_with_the_log_over_batches(timed, seen, delay):
    built = application(**timed)
    log = [
        Moment(0, 10, What.MESSAGE, 0, 7),
        Moment(1, 10, What.MESSAGE, 0, 5),
        Moment(2, 20, What.MESSAGE, 0, NO_TIME),
        Moment(3, 50, What.TICK, 0, NO_TIME),
        Moment(4, 50, What.END, 0, NO_TIME),
    ]
    known = None
    found = [Watermarks(built).of({"p": delay})]
    for moment in log:
        watermarks = Watermarks(built, known)
        watermarks.move(moment)
        known = watermarks.known
        found.append(watermarks.of({"p": delay}))
    assert found[1:] == [watermark - delay for watermark in seen]
    assert found[0] == (NEVER if timed else -delay)


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize(
    ("timed", "log", "target", "due"),
    [
        ({}, [], 25, 25),
        (BY_EVENT, [Moment(0, 10, What.MESSAGE, 0, 7)], 9, None),
        ({**BY_EVENT, "idle_after": 30}, [Moment(0, 10, What.MESSAGE, 0, 7)], 12, 40),
        ({**BY_EVENT, "idle_after": 30}, [Moment(0, 10, What.MESSAGE, 0, 7)], 90, 93),
        ({**BY_EVENT, "idle_after": 30}, [Moment(0, 10, What.MESSAGE, 0, NO_TIME)], 90, None),
        ({**BY_EVENT, "idle_after": 30}, [], 90, None),
    ],
    ids=["arrival", "event", "idle at once", "idle later", "no event time", "no record"],
)
def test_time_1_when_a_watermark_gets_somewhere_by_time_alone(timed, log, target, due, delay):
    watermarks = Watermarks(application(**timed))
    for moment in log:
        watermarks.move(moment)
    assert watermarks.when({"p": delay}, target - delay) == due
    if due is not None:
        assert watermarks.of({"p": delay}, due) >= target - delay
        assert watermarks.of({"p": delay}, due - 1) < target - delay


def test_a_track_leaves_out_what_moves_nothing_and_is_merged_in_order():
    even, odd = (Tracker(application(**BY_EVENT)) for _ in range(2))
    for sequence, time in enumerate((5, 4, 3, 9, 7, 2)):
        (odd if sequence % 2 else even).note(sequence, 1, What.MESSAGE, "p", time)
    found = [(moment.sequence, moment.time) for moment in moments([odd.track, even.track])]
    assert found == [(0, 5), (1, 4), (3, 9), (4, 7)]
