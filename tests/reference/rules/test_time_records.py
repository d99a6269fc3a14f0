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
from wallaroo import range_windows, seconds

TEN = range_windows(seconds(10))


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
