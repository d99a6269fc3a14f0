"""How far time has come (time-3)."""

from __future__ import annotations

import pytest
from small_windows import Gather, arrivals, built, events, initial, said, sink, windowed

import wallaroo
from wallaroo import range_windows, seconds
from wallaroo.records import End, Frame, Tick

TEN = range_windows(seconds(10))
IDLE = seconds(30)


def union(*sources, windows=TEN):
    merged = sources[0].key_by(initial)
    for source in sources[1:]:
        merged = merged.merge(source.key_by(initial))
    return built(merged.to(windows.over(Gather())).to_sink(sink()))


def test_time_3_without_event_times_any_record_moves_it(run):
    application = union(arrivals(), arrivals("other"))
    for record in (
        Tick(seconds(10)),
        Frame("other", b"b 0", seconds(10)),
        Frame("other", b"nonsense", seconds(10)),
        End("other", seconds(10)),
    ):
        result = run(application, [Frame("events", b"a 0"), record], end=False)
        assert said(result) == ["a:a@0-10"]


def test_time_3_a_filtered_message_has_no_event_time(run):
    @wallaroo.decoder(header_length=4, length_fmt=">I")
    def some(payload):
        name, time = payload.decode().split()
        return None if name == "-" else (name, float(time))

    result = run(
        windowed(TEN, source=events(decoder=some)), {"events": [b"a 1", b"- 99"]}, end=False
    )
    assert result.output == []


def test_time_3_sources_on_no_way_to_a_step_do_not_matter(run):
    step = TEN.over(Gather())
    left = events("left").key_by(initial).to(step).to_sink(sink())
    application = built(left, events("silent").done())
    result = run(application, [("left", b"a 1"), ("left", b"a 12")], end=False)
    assert said(result) == ["a:a@0-10"]


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


def test_time_3_the_shorter_way_does_not_count_where_there_is_a_longer_one(run):
    class Any(Gather):
        def update(self, message, names):
            return names + (message if isinstance(message, str) else message[0])

    keyed = events().key_by(initial)
    slow = keyed.to(TEN.with_delay(seconds(20)).over(Gather()))
    application = built(slow.merge(keyed).to(TEN.over(Any("both"))).to_sink(sink()))
    result = run(application, {"events": [b"a1 1", b"a2 29"]}, end=False)
    assert result.output == []
    result = run(application, {"events": [b"a1 1", b"a2 30"]}, end=False)
    assert said(result) == ["a:a1a:a1@0-10@0-10"]
