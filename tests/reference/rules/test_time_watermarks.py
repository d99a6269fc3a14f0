"""How far time has come (time-3)."""

from __future__ import annotations

import pytest
from small_windows import Gather, built, events, initial, said, sink, windowed

from wallaroo import range_windows, seconds

TEN = range_windows(seconds(10))
IDLE = seconds(30)


def union(*sources, windows=TEN):
    merged = sources[0].key_by(initial)
    for source in sources[1:]:
        merged = merged.merge(source.key_by(initial))
    return built(merged.to(windows.over(Gather())).to_sink(sink()))


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


def test_time_3_one_that_has_had_frames_but_no_event_time_is_left_out_since_its_last(step):
    session = step(union(events(), events("bad", idle_after=IDLE)))
    session.send("bad", b"nonsense")
    session.advance(seconds(20))
    session.send("bad", b"nonsense")
    session.send("events", b"a 1", b"a 12")
    session.advance(IDLE - 1)
    assert session.output == []
    session.advance(1)
    assert said(session) == ["a:a@0-10"]


def test_time_3_delays_of_windows_on_the_way_are_taken_off(run):
    class Again(Gather):
        def update(self, message, names):
            return f"{names}[{message}]"

    first = TEN.with_delay(seconds(5)).over(Gather())
    second = TEN.with_delay(seconds(2)).over(Again("again"))
    application = built(events().key_by(initial).to(first).to(second).to_sink(sink()))
    log = [b"a1 1", b"a2 16.9"]
    assert run(application, {"events": log}, end=False).output == []
    result = run(application, {"events": [*log, b"a3 17"]}, end=False)
    assert said(result) == ["a:[a:a1@0-10]@0-10"]
    assert result.dead_letters == []
