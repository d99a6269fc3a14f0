"""Event times: what they may be, and what becomes of a message that has none (time-2)."""

from __future__ import annotations

import enum
from datetime import UTC, datetime, timedelta, timezone

import pytest
from small_windows import Gather, arrivals, built, events, fail, initial, sink, windowed

import wallaroo
from wallaroo import range_windows, seconds

TEN = range_windows(seconds(10))


class Number(int):
    pass


class Colour(enum.IntEnum):
    RED = 1


class Later(datetime):
    pass


def timed_by(times):
    """An application whose event times are looked up by the event's name."""
    return windowed(range_windows(1), source=events(event_time=lambda event: times[event[0]]))


@pytest.mark.parametrize(
    ("time", "nanoseconds"),
    [
        (0, 0),
        (7, 7),
        (2**63 - 1, 2**63 - 1),
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC), 1000),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
        (Later(2026, 11, 22, tzinfo=UTC), 1_795_305_600 * 10**9),
        (datetime(2262, 4, 11, 23, 47, 16, 854775, tzinfo=UTC), 9223372036854775000),
    ],
)
def test_time_2_what_an_event_time_may_be(run, time, nanoseconds):
    result = run(timed_by({"a": time}), {"events": [b"a 0"]}, end=False)
    assert result.dead_letters == []
    assert [window.start for window in result.open_windows] == [nanoseconds]


@pytest.mark.parametrize(
    "time",
    [
        5e9,
        -1,
        2**63,
        10**40,
        True,
        Number(5),
        Colour.RED,
        None,
        "5",
        datetime(2026, 11, 22),
        datetime(9999, 12, 31, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=12))),
        timedelta(1),
    ],
    ids=repr,
)
def test_time_2_anything_else_is_bad_time(run, time):
    (letter,) = run(timed_by({"a": time}), {"events": [b"a 0"]}).dead_letters
    assert (letter.lineage, letter.step, letter.position) == ((0,), None, -1)
    assert (letter.reason.value, letter.error_type, letter.key) == ("bad-time", None, None)
    assert letter.payload == b"a 0"
    assert letter.error


def test_time_2_what_raises_is_raised(run, letters):
    result = run(timed_by({}), {"events": [b"a 0"]})
    assert letters(result) == [((0,), None, None, None, "raised")]
    assert result.dead_letters[0].error_type == "KeyError"
    assert "lambda" in result.dead_letters[0].where[-1].function


def test_time_2_system_exit_ends_the_run(run):
    def leave(event):
        raise SystemExit

    result = run(built(events(event_time=leave).to_sink(sink())), {"events": [b"a 0", b"b 0"]})
    assert (result.trace.ended.kind, result.trace.ended.lineage) == ("exit", (0,))
    assert result.dead_letters == []


def test_time_2_a_window_s_output_has_another(run):
    class Again(Gather):
        def update(self, message, names):
            return f"{names}x"

    pipeline = events().key_by(initial).to(TEN.over(Gather())).to(range_windows(1).over(Again("x")))
    result = run(built(pipeline.to_sink(sink())), {"events": [b"a 3"]})
    assert result.output == [b"'a:x@10-10';"]  # the last nanosecond before 10 s


def test_time_2_its_dead_letter_comes_behind_what_its_record_makes_due(run, letters):
    # Arrival makes it due; the message of that record is a dead letter for its event time.
    left = arrivals().key_by(initial).to(TEN.over(Gather())).to(fail).done()
    right = events("bad", event_time=lambda event: None).done()
    result = run(
        built(left, right), [("events", (0, b"a 0")), ("bad", (seconds(10), b"b 0"))], end=False
    )
    assert letters(result) == [
        ((1, -1, 0), "fail", None, None, "raised"),
        ((1,), None, None, None, "bad-time"),
    ]
    assert [letter.payload for letter in result.dead_letters] == [None, b"b 0"]
    assert [letter.source for letter in result.dead_letters] == ["bad", "bad"]


def test_time_2_what_it_does_to_the_message_is_invisible(isolated):
    @wallaroo.decoder(header_length=4, length_fmt=">I")
    def as_list(payload):
        return payload.decode().split()

    def take(words):
        return seconds(int(words.pop()))

    source = events(decoder=as_list, event_time=take)
    application = built(source.to_sink(sink()))
    assert isolated(application, {"events": [b"a 1"]}).output == [b"['a', '1'];"]
