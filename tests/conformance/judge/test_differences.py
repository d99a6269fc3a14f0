"""How two traces differ: the kinds of difference, whatever an engine put into its trace."""

from __future__ import annotations

from typing import Any

from wallaroo_conformance.judge.differences import differences

from wallaroo.trace import Trace

SINK = ("first", 0)


def trace(*outputs: Any) -> Trace:
    return Trace({SINK: outputs}, (), ())


def test_outputs_are_missing_extra_changed_or_in_another_order() -> None:
    assert differences(trace(b"a", b"b"), trace(b"a", b"b")) == set()
    assert differences(trace(b"a", b"b"), trace(b"b", b"a")) == {"order"}
    assert differences(trace(b"a", b"b"), trace(b"a", b"c")) == {"changed"}
    assert differences(trace(b"a", b"b"), trace(b"a")) == {"missing"}
    assert differences(trace(b"a"), trace(b"a", b"b")) == {"extra"}


def test_outputs_that_cannot_be_hashed_are_compared_all_the_same() -> None:
    assert differences(trace(b"a", b"b"), trace(bytearray(b"a"))) == {"missing"}
