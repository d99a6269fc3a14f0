"""How two traces differ: the kinds of difference, whatever an engine put into its trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wallaroo_conformance.judge.differences import differences, signs

from wallaroo.trace import DeadLetter, OpenWindow, Reason, Trace

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


def letter(number: int, reason: Reason = Reason.RAISED, **fields: Any) -> DeadLetter:
    made = DeadLetter(
        *((number,), "first", "first", "check", 0, None, None, reason),
        *("ValueError", "text", b""),
    )
    return replace(made, **fields)


def letters(*given: DeadLetter) -> Trace:
    return Trace({SINK: ()}, given, ())


def test_signs_say_what_is_special_about_dead_letters_that_differ() -> None:
    both = letters(letter(0), letter(1))
    assert signs(both, both) == set()
    assert signs(both, letters(letter(0))) == {"lost raised"}
    assert signs(both, letters()) == {"lost raised", "all lost"}
    late = letter(2, Reason.LATE)
    assert signs(both, letters(letter(0), letter(1), late)) == {"more late"}
    assert signs(letters(late), Trace({SINK: ()}, (), (), late={("w", "dropped"): 1})) == {
        "all lost"
    }
    assert signs(both, letters(letter(0), letter(1, key="k"))) == {"told"}
    assert signs(both, letters(letter(0), letter(1, pipeline="v"))) == {"told of a pipeline"}
    no_payload = letters(letter(0, payload=None))
    assert signs(no_payload, letters(letter(0))) == {"told of a window"}


def test_outputs_that_cannot_be_hashed_are_compared_all_the_same() -> None:
    assert differences(trace(b"a", b"b"), trace(bytearray(b"a"))) == {"missing"}
