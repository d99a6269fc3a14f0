"""However a stream is cut, its frames are the same (frame-1), none is too large (frame-3)."""

from __future__ import annotations

import pickle
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo.errors import FrameError
from wallaroo.frames import FrameParser, StructLength, frames, uint32_length


class Length:
    """A class-based decoder's `payload_length`."""

    def __init__(self, size, order):
        self.size, self.order = size, order

    def __call__(self, header):
        assert type(header) is bytes
        assert len(header) == self.size
        return int.from_bytes(header, self.order)


HEADERS = {
    "uint32": (4, uint32_length, lambda n: n.to_bytes(4, "big")),
    "<H": (2, StructLength(struct.Struct("<H")), lambda n: n.to_bytes(2, "little")),
    ">xBx": (3, StructLength(struct.Struct(">xBx")), lambda n: bytes([7, n, 7])),
    "!Q": (8, StructLength(struct.Struct("!Q")), lambda n: n.to_bytes(8, "big")),
    **{
        f"function of {size}": (
            size,
            Length(size, "little"),
            lambda n, size=size: n.to_bytes(size, "little"),
        )
        for size in range(1, 9)
    },
}


@given(
    st.sampled_from(sorted(HEADERS)),
    st.lists(st.binary(max_size=20), max_size=8),
    st.binary(max_size=9),
    st.data(),
)
def test_frame_1_frames_depend_on_the_bytes_alone(header, payloads, rest, data):
    length, claim, write = HEADERS[header]
    stream = b"".join([write(len(payload)) + payload for payload in payloads])
    rest = write(20) + rest if rest else b""  # a frame that never becomes complete
    whole = stream + rest
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    parser = FrameParser(length, claim)
    fed = []
    for start, stop in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        fed += parser.feed(whole[start:stop])
    assert fed == payloads
    assert all(type(payload) is bytes for payload in fed)
    assert parser.error is None
    assert parser.pending == len(rest)


@given(st.lists(st.binary(max_size=6), max_size=4), st.integers(7, 2**32 - 1), st.data())
def test_frame_3_a_refused_frame_ends_the_stream_wherever_it_is_cut(payloads, claim, data):
    stream = frames(payloads) + claim.to_bytes(4, "big") + b"never looked at"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    parser = FrameParser(max_size=6)
    fed = []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        fed += parser.feed(stream[start:stop])
    assert fed == payloads
    assert isinstance(parser.error, FrameError)
    assert str(claim) in str(parser.error)
    assert parser.pending == 0


def test_a_payload_whose_length_does_not_fit_is_refused():
    class Huge(bytes):
        def __len__(self):
            return 2**32

    with pytest.raises(FrameError, match="of 4294967296 bytes does not fit"):
        frames([Huge()])


def test_frame_3_what_is_held_is_at_most_one_frame():
    parser = FrameParser(max_size=1000)
    stream = frames([bytes(1000)] * 50)
    most = 0
    for start in range(0, len(stream), 333):
        parser.feed(stream[start : start + 333])
        most = max(most, parser.pending)
    assert most < 1004


@pytest.mark.parametrize("length", [0, 9, -1])
def test_frame_1_a_header_has_1_to_8_bytes(length):
    with pytest.raises(ValueError, match="1 to 8"):
        FrameParser(length)


@pytest.fixture(params=[uint32_length, Length(4, "big")], ids=["struct", "function"])
def payload_length(request):
    return request.param


def test_frame_3_a_claim_over_max_size_ends_the_stream_and_keeps_what_was_before(payload_length):
    parser = FrameParser(4, payload_length)
    assert parser.feed(frames([b"good"]) + b"\xff\xff\xff\xff" + frames([b"after"])) == [b"good"]
    assert str(parser.error) == (
        "header ff ff ff ff claims a payload of 4294967295 bytes; "
        "at most 1048576 are taken (max_size)"
    )
    assert parser.feed(frames([b"later"])) == []
    assert parser.pending == 0


class UnshowableError(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


def raising(_header: bytes) -> int:
    raise UnshowableError


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        (StructLength(struct.Struct(">i")), "header ff ff ff ff claims a payload of -1 bytes"),
        (StructLength(struct.Struct(">f")), "yields no length (payload_length gave nan)"),
        (StructLength(struct.Struct("4s")), "yields no length (payload_length gave b'"),
        (lambda _: None, "yields no length (payload_length gave None)"),
        (lambda _: True, "yields no length (payload_length gave True)"),
        (lambda _: 10**5000, "claims a payload of (cannot be shown: ValueError) bytes; at most"),
        (lambda header: {}[header], "yields no length (KeyError: b'"),
        (raising, "yields no length (UnshowableError: (cannot be shown: ZeroDivisionError))"),
    ],
)
def test_frame_3_a_header_that_yields_no_length(claim, text):
    parser = FrameParser(4, claim)
    assert parser.feed(b"\xff\xff\xff\xff") == []
    assert text in str(parser.error)


def test_frame_1_a_length_by_its_format_can_be_pickled():
    length = pickle.loads(pickle.dumps(StructLength(struct.Struct("<H"))))
    assert length(b"\x02\x01") == 0x102
