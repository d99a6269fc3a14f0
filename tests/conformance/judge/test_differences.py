"""How two traces differ: the kinds of difference, whatever an engine put into its trace."""

from __future__ import annotations

from typing import Any

from wallaroo_conformance.judge.differences import Crash, differences, readable

from wallaroo.trace import OpenWindow, Trace

SINK = ("first", 0)


def trace(*outputs: Any) -> Trace:
    return Trace({SINK: outputs}, (), ())


def test_outputs_are_missing_extra_changed_or_in_another_order() -> None:
    assert differences(trace(b"a", b"b"), trace(b"a", b"b")) == set()
    assert differences(trace(b"a", b"b"), trace(b"b", b"a")) == {"order"}
    assert differences(trace(b"a", b"b"), trace(b"a", b"c")) == {"changed"}
    assert differences(trace(b"a", b"b"), trace(b"a")) == {"missing"}
    assert differences(trace(b"a"), trace(b"a", b"b")) == {"extra"}


def test_open_windows_that_differ_in_their_keys_alone_are_no_other_windows() -> None:
    def opened(key: Any, start: int) -> Trace:
        return Trace({}, (), (), windows=(OpenWindow("w", key, start, start + 5, "held"),))

    assert differences(opened("a", 0), opened((), 0)) == {"keys"}
    assert differences(opened("a", 0), opened("a", 5)) == {"windows"}


def test_outputs_that_are_no_bytes_are_no_trace() -> None:
    assert isinstance(readable(trace(b"a")), Trace)
    assert isinstance(readable(trace(bytearray(b"a"))), Crash)
