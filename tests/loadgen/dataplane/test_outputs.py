"""From a sink's bytes to outputs, however they are divided, and from other bytes."""

from __future__ import annotations

import pytest
from wallaroo_loadgen.dataplane import receiver
from wallaroo_loadgen.dataplane.receiver import Splitter

from wallaroo.frames import frames


@pytest.mark.parametrize(
    ("framing", "data"), [("lines", b"one\n\nthree\n"), ("frames", frames([b"one", b"", b"three"]))]
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_outputs_depend_on_the_bytes_alone(framing: str, data: bytes, size: int) -> None:
    split = Splitter(framing)
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert [out for chunk in chunks for out in split.split(chunk)] == [b"one", b"", b"three"]


def test_a_line_that_does_not_end_is_an_output_once_it_is_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(receiver, "_LARGEST_OUTPUT", 10)
    split = Splitter("lines")
    assert split.split(b"x" * 10) == []
    assert split.split(b"x") == [b"x" * 11]
    assert split.split(b"a\n") == [b"a"]


def test_bytes_that_are_no_frame_are_one_output_which_says_so() -> None:
    split = Splitter("frames")
    (ok, told) = split.split(frames([b"ok"]) + b"\xff\xff\xff\xff")
    assert ok == b"ok"
    assert told.startswith(b"not a frame: ")
    assert split.split(frames([b"more"])) == []
