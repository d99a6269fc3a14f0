"""`wallaroo.testing.Session`: send, let time pass, look."""

import pytest
from small_windows import arrivals, built, events, said, windowed

from wallaroo import WallarooParameterError, range_windows, seconds
from wallaroo.errors import EngineNotFoundError
from wallaroo.testing import Session

TEN = range_windows(seconds(10))


def session(**options):
    return Session(windowed(TEN, source=arrivals()), **options)


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
