"""Watermarks noted by several tasks and replayed by one shard, in batches."""

import pytest
from small_steps import decode, encode
from wallaroo_spark.wire.job import What, moments
from wallaroo_spark.worker.replay import ReplayedTime
from wallaroo_spark.worker.tracker import Tracker

import wallaroo
from wallaroo.windowing.watermarks import NO_TIME


def application(**timed):
    config = wallaroo.TCPSourceConfig("127.0.0.1", 0, decode, **timed)
    sink = wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)
    return wallaroo.build_application("app", wallaroo.source("p", config).to_sink(sink))


BY_EVENT = {"event_time": lambda message: 0}


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize(
    ("timed", "log", "target", "due"),
    [
        ({}, [], 25, 25),
        (BY_EVENT, [(0, 10, What.MESSAGE, 0, 7)], 9, None),
        ({**BY_EVENT, "idle_after": 30}, [(0, 10, What.MESSAGE, 0, 7)], 12, 40),
        ({**BY_EVENT, "idle_after": 30}, [(0, 10, What.MESSAGE, 0, 7)], 90, 93),
        ({**BY_EVENT, "idle_after": 30}, [(0, 10, What.MESSAGE, 0, NO_TIME)], 90, None),
        ({**BY_EVENT, "idle_after": 30}, [], 90, None),
    ],
    ids=["arrival", "event", "idle at once", "idle later", "no event time", "no record"],
)
def test_time_1_when_a_watermark_gets_somewhere_by_time_alone(timed, log, target, due, delay):
    watermarks = ReplayedTime(application(**timed))
    for _, *moment in log:
        watermarks.move(*moment)
    assert watermarks.arrival_of({"p": delay}, target - delay) == due
    if due is not None:
        assert watermarks.of({"p": delay}, due) >= target - delay
        assert watermarks.of({"p": delay}, due - 1) < target - delay


def test_a_track_leaves_out_what_moves_nothing_and_is_merged_in_order():
    even, odd = (Tracker(application(**BY_EVENT)) for _ in range(2))
    for sequence, time in enumerate((5, 4, 3, 9, 7, 2)):
        (odd if sequence % 2 else even).note(sequence, 1, What.MESSAGE, "p", time)
    found = [(sequence, time) for sequence, *_, time, _ in moments([odd.finish(), even.finish()])]
    assert found == [(0, 5), (1, 4), (3, 9), (4, 7)]


class Anything:
    def initial_accumulator(self):
        return 0

    def update(self, message, accumulator):
        return accumulator

    def combine(self, earlier, later):
        return earlier

    def output(self, key, accumulator):
        return None


def windowed(*steps):
    """An application with these windows in a row."""
    config = wallaroo.TCPSourceConfig("127.0.0.1", 0, decode, **BY_EVENT)
    pipeline = wallaroo.source("p", config)
    for number, windows in enumerate(steps):
        aggregation = type(f"Anything{number}", (Anything,), {})
        pipeline = pipeline.to(windows.over(aggregation))
    return wallaroo.build_application("app", pipeline.done())


RANGES = wallaroo.range_windows(10).with_delay(1)


@pytest.mark.parametrize(
    ("steps", "noted"),
    [
        ([RANGES], [0, 1, 11, 12, 13, 21, 25]),
        ([RANGES.with_slide(5)], [0, 1, 6, 11, 12, 13, 16, 21, 25]),
        (
            [RANGES, wallaroo.range_windows(20).with_delay(2)],
            [0, 1, 3, 11, 12, 13, 21, 23, 25],
        ),
        ([wallaroo.count_windows(3)], [0, 12, 13, 25]),
        ([wallaroo.session_windows(3)], [*range(26)]),
    ],
    ids=["tumbling", "sliding", "in a row", "counts", "sessions"],
)
def test_a_track_leaves_out_event_times_at_which_nothing_can_be_due(steps, noted):
    built = windowed(*steps)
    found = []
    for part in (range(13), range(13, 26)):
        tracker = Tracker(built)
        for time in part:
            tracker.note(time, 1, What.MESSAGE, "p", time)
        found += moments([tracker.finish()])
    assert [sequence for sequence, *_ in found] == noted
    assert [sequence for sequence, *_ in found] == [time for *_, time, _ in found]
