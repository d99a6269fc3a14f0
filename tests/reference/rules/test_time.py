"""Time: event times, records and their order, idle sources (time-1 to time-4)."""

import enum
from datetime import UTC, datetime, timedelta, timezone

import pytest
from small_windows import (
    Gather,
    arrivals,
    built,
    events,
    fail,
    initial,
    said,
    sink,
    when,
    windowed,
)

import wallaroo
from wallaroo import range_windows, seconds
from wallaroo.engine import Case, load_engine
from wallaroo.records import Frame, Unportable, Value

TEN = range_windows(seconds(10))


class Number(int):
    pass


class Colour(enum.IntEnum):
    RED = 1


class Later(datetime):
    pass


class Silent:
    def initial_value(self):
        return None

    def apply(self, last):
        return None


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


@pytest.mark.parametrize("windows", [True, False], ids=["windows", "nothing else about time"])
def test_time_2_an_event_time_too_far_ahead_of_its_arrival_is_refused(run, windows):
    source = events(max_ahead=seconds(5))
    application = windowed(TEN, source=source) if windows else built(source.to_sink(sink()))
    records = [Frame("events", b"%s %d" % one, seconds(at)) for at, one in enumerate(_AHEAD)]
    result = run(application, records)
    assert [(one.lineage, one.reason) for one in result.dead_letters] == [
        ((1,), "bad-time"),
        ((3,), "bad-time"),
    ]
    assert len(result.output) == 3


_AHEAD = [(b"a", 5), (b"b", 7), (b"c", 7), (b"d", 1_772_442_000), (b"e", 3)]


"""A name and an event time of each second."""


@pytest.mark.parametrize(("event_time", "max_ahead"), [(None, 5), (when, -1), (when, 5.0)])
def test_time_2_max_ahead_is_a_duration_of_event_times(event_time, max_ahead):
    with pytest.raises(wallaroo.WallarooParameterError, match="max_ahead"):
        events(event_time=event_time, max_ahead=max_ahead)


def test_time_1_a_session_writes_one_tick_at_each_due_time(step, letters):
    pipeline = arrivals().key_by(initial).to(TEN.over(Gather())).to(fail)
    session = step(built(pipeline.to_sink(sink())))
    session.send("events", b"a 0")
    session.advance(seconds(9))
    session.send("events", b"b 0")
    session.advance(seconds(2))
    session.send("events", b"c 0")
    session.advance(seconds(100))
    # 0, 1: frames; 2: a tick at 10 s; 3: a frame; 4: a tick at 20 s.
    found = letters(session.result)
    assert [letter[0] for letter in found] == [(2, -1, 0), (2, -1, 1), (4, -1, 0)]
    assert [letter.source for letter in session.dead_letters] == [None, None, None]


def test_time_4_very_many_windows_due_in_one_record(isolated):
    windows = range_windows(seconds(1_000)).with_slide(seconds(1))
    log = [f"{letter} 1000".encode() for letter in "abcdefghij"]
    result = isolated(windowed(windows), {"events": [*log, b"z 3000"]}, end=False)
    assert len(result.output) == 10_000
    assert said(result)[0] == "a:a@1-1001"
    assert said(result)[-1] == "j:j@1000-2000"
    assert {window.key for window in result.open_windows} == {"z"}


def test_time_4_very_many_keys_due_in_one_record(run):
    by_name = wallaroo.key_extractor(lambda event: event[0])
    application = built(events().key_by(by_name).to(TEN.over(Gather())).to_sink(sink()))
    log = [f"{n:06} 1".encode() for n in range(3_000)]
    result = run(application, {"events": [*log, b"last 11"]}, end=False)
    assert len(result.output) == 3_000
    assert result.output == sorted(result.output)
    assert [window.key for window in result.open_windows] == ["last"]


IDLE = seconds(30)


@pytest.mark.parametrize("frame", [b"a 9", b"nonsense", b"b 3"])
def test_time_3_any_frame_of_its_own_ends_its_idleness(step, frame):
    session = step(windowed(TEN, source=events(idle_after=IDLE)))
    session.send("events", b"a 9")
    session.advance(IDLE - 1)
    session.send("events", frame)
    session.advance(IDLE - 1)
    assert session.output == []
    session.advance(1)
    assert said(session)[0].startswith("a:a")


@pytest.mark.parametrize(("engine", "mode"), [("reference", "isolated"), ("compiled", "trusting")])
def test_time_3_so_does_a_value_of_a_generator_that_cannot_be_read(engine, mode):
    numbers = wallaroo.GenSourceConfig(Silent(), event_time=when, idle_after=IDLE)
    merged = wallaroo.source("numbers", numbers).merge(events()).key_by(initial)
    application = built(merged.to(TEN.over(Gather())).to_sink(sink()))
    log = [
        Value("numbers", ("a", 5), 0),
        Value("numbers", Unportable("it is a lock"), IDLE - 1),
        Frame("events", b"b 100", IDLE + 1),
    ]
    trace = load_engine(engine).run(Case(application, log, isolation=mode))
    assert [letter.reason.value for letter in trace.dead_letters] == ["unportable"]
    assert not any(trace.outputs.values())
