"""`wallaroo.testing.Session`: send, let time pass, look."""

from __future__ import annotations

import pytest
from small_windows import arrivals, built, events, said, windowed

from wallaroo import WallarooParameterError, range_windows, seconds, testing
from wallaroo.errors import EngineNotFoundError
from wallaroo.testing import Session

TEN = range_windows(seconds(10))


def session(**options):
    return Session(windowed(TEN, source=arrivals()), **options)


def test_session_time_is_a_number_that_the_test_moves_on():
    one = session(start=5)
    one.advance(seconds(1))
    one.advance(0)
    assert one.now == 5 + seconds(1)


def test_session_results_at_any_point():
    one = session()
    assert (one.output, one.dead_letters, one.open_windows) == ([], [], [])
    one.send("events", b"a1 0", b"nonsense")
    assert [window.value for window in one.open_windows] == ["a1"]
    assert len(one.dead_letters) == 1
    one.advance(seconds(10))
    assert said(one) == ["a:a1@0-10"]
    assert one.outputs == {("events", 0): one.output}
    assert one.open_windows == []


def test_session_the_end_of_sources():
    one = session()
    one.send("events", b"a 0")
    one.end("events")
    one.end("events")
    one.end()
    assert said(one) == ["a:a@0-10"]
    with pytest.raises(WallarooParameterError, match="has ended; it gives nothing more"):
        one.send("events", b"a 0")


def test_session_errors_say_what_there_is():
    one = session()
    for call in (
        lambda: one.send("other", b"a 0"),
        lambda: one.end("other"),
    ):
        with pytest.raises(WallarooParameterError, match="'events'"):
            call()
    with pytest.raises(WallarooParameterError, match="a payload is bytes"):
        one.send("events", "a 0")
    with pytest.raises(WallarooParameterError, match="not a generator source"):
        one.generate("events")
    for wrong in (-1, 1.5, None):
        with pytest.raises(WallarooParameterError, match="advance"):
            one.advance(wrong)
        with pytest.raises(WallarooParameterError, match="start"):
            session(start=wrong)
    with pytest.raises(EngineNotFoundError):
        session(engine="nobody")


def test_session_stops_at_the_first_dead_letter_if_told():
    one = Session(built(events().done()), on_error="stop")
    one.send("events", b"nonsense", b"a 1")
    assert one.result.trace.ended.kind == "on-error"


def test_session_is_the_run_of_its_log():
    one = session()
    one.send("events", b"a 0")
    one.advance(seconds(12))
    one.send("events", b"b 0")
    one.end()
    given = {"events": [(0, b"a 0"), (seconds(12), b"b 0")]}
    application = windowed(TEN, source=arrivals())
    assert one.output == testing.run(application, given).output
