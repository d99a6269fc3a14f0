"""Records and their order: frames, ticks, ends (time-1, time-4, time-5)."""

from __future__ import annotations

from small_windows import (
    Gather,
    arrivals,
    built,
    events,
    fail,
    initial,
    said,
    sink,
    windowed,
)

import wallaroo
from wallaroo import hours, range_windows, seconds
from wallaroo.records import End, Frame, Tick

TEN = range_windows(seconds(10))
BY_ARRIVAL = windowed(TEN, source=arrivals())


def test_time_1_every_kind_of_record_takes_a_sequence_number(run, letters):
    log = [
        Tick(0),
        Frame("events", b"nonsense", 1),
        Tick(2),
        End("other", 3),
        Frame("events", b"nonsense", 4),
    ]
    application = built(events().done(), events("other").done())
    assert [letter[0] for letter in letters(run(application, log))] == [(1,), (4,)]


def test_time_1_a_cut_into_batches_changes_nothing(run):
    log = [Frame("events", f"a{n} {n}".encode(), seconds(n // 2)) for n in range(20)]
    whole = run(BY_ARRIVAL, log).trace.comparable()
    for batches in ([1], [1] * 20, [3, 4, 5]):
        assert run(BY_ARRIVAL, log, batches=batches).trace.comparable() == whole


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


def test_time_1_time_that_makes_nothing_due_writes_no_tick(step, letters):
    session = step(built(arrivals().to(fail).done()))
    session.advance(hours(10))
    session.send("events", b"a 0")
    assert [letter[0] for letter in letters(session.result)] == [(0,)]


def test_time_4_windows_fire_by_end_and_then_by_the_key_s_encoding(run):
    names = {"z": "b", "y": b"b", "x": 7, "w": ("a",), "v": "a"}
    by_name = wallaroo.key_extractor(lambda event: names[event[0]])
    application = built(events().key_by(by_name).to(TEN.over(Gather())).to_sink(sink()))
    log = [b"z 11", b"z 1", b"y 1", b"x 1", b"w 1", b"v 1"]
    patient = TEN.with_delay(seconds(60)).over(Gather())
    waits = built(events().key_by(by_name).to(patient).to_sink(sink()))
    fired = said(run(waits, {"events": log}))
    assert [each.partition("@")[2] for each in fired] == ["0-10"] * 5 + ["10-20"]
    by_encoding = sorted(names.values(), key=wallaroo.keys.encode_key)
    assert [each.partition(":")[0] for each in fired[:5]] == [str(key) for key in by_encoding]
    assert len(run(application, {"events": log}).dead_letters) == 5


def test_time_4_what_two_steps_give_is_in_order_of_their_turns(run, letters):
    two = [
        events().key_by(initial),
        events("other").key_by(initial),
    ]
    fails = [wallaroo.computation(name=f"fail {n}")(fail.compute) for n in range(2)]
    first = two[0].to(TEN.over(Gather("first"))).to(fails[0]).done()
    second = two[1].to(TEN.over(Gather("second"))).to(fails[1]).done()
    log = [("events", b"a 1"), ("other", b"a 1"), ("events", b"b 1")]
    result = run(built(second, first), [*log, Tick(0), ("events", b"a 11"), ("other", b"a 11")])
    assert [letter[:2] for letter in letters(result)] == [
        ((4, -2, 0), "fail 0"),
        ((4, -2, 1), "fail 0"),
        ((5, -1, 0), "fail 1"),
        ((6, -2, 0), "fail 0"),
        ((7, -1, 0), "fail 1"),
    ]


def test_time_5_an_end_that_is_given_is_not_given_again(run, letters):
    application = built(events().key_by(initial).to(TEN.over(Gather())).to(fail).done())
    result = run(application, [Frame("events", b"a 1"), End("events")])
    assert [letter[0] for letter in letters(result)] == [(1, -1, 0)]


def test_time_4_very_many_windows_due_in_one_record(isolated):
    windows = range_windows(seconds(10_000)).with_slide(seconds(1))
    log = [f"{letter} 10000".encode() for letter in "abcdefghij"]
    result = isolated(windowed(windows), {"events": [*log, b"z 30000"]}, end=False)
    assert len(result.output) == 100_000
    assert said(result)[0] == "a:a@1-10001"
    assert said(result)[-1] == "j:j@10000-20000"
    assert {window.key for window in result.open_windows} == {"z"}


def test_time_4_very_many_keys_due_in_one_record(run):
    by_name = wallaroo.key_extractor(lambda event: event[0])
    application = built(events().key_by(by_name).to(TEN.over(Gather())).to_sink(sink()))
    log = [f"{n:06} 1".encode() for n in range(10_000)]
    result = run(application, {"events": [*log, b"last 11"]}, end=False)
    assert len(result.output) == 10_000
    assert result.output == sorted(result.output)
    assert [window.key for window in result.open_windows] == ["last"]
