"""Frames depend on the bytes alone (frame-1), and on what a header may claim (frame-3)."""

from __future__ import annotations

import struct

import pytest

from wallaroo.frames import FrameParser, StructLength, frames, uint32_length

PAYLOADS = [b"one", b"", b"three", bytes(300), b"", b"x"]
STREAM = frames(PAYLOADS)


def slow(header: bytes) -> int:
    return int.from_bytes(header, "big")


@pytest.fixture(params=[uint32_length, slow], ids=["struct", "function"])
def payload_length(request):
    return request.param


def fed(parser: FrameParser, *pieces: bytes) -> list[bytes]:
    return [payload for piece in pieces for payload in parser.feed(piece)]


def test_frame_1_cut_in_two_at_every_byte(payload_length):
    for cut in range(len(STREAM) + 1):
        parser = FrameParser(4, payload_length)
        assert fed(parser, STREAM[:cut], STREAM[cut:]) == PAYLOADS
        assert parser.pending == 0


def test_frame_1_a_byte_at_a_time(payload_length):
    parser = FrameParser(4, payload_length)
    assert fed(parser, *[bytes([byte]) for byte in STREAM]) == PAYLOADS


@pytest.mark.parametrize("header_length", range(1, 9))
def test_frame_1_headers_of_1_to_8_bytes(header_length):
    parser = FrameParser(header_length, slow)
    stream = b"".join([len(p).to_bytes(header_length, "big") + p for p in (b"ab", b"", b"c")])
    assert fed(parser, stream[:3], stream[3:]) == [b"ab", b"", b"c"]


def test_frame_2_a_payload_of_length_0_is_a_frame(payload_length):
    assert FrameParser(4, payload_length).feed(bytes(12)) == [b"", b"", b""]


def test_frame_3_max_size_itself_is_taken(payload_length):
    parser = FrameParser(4, payload_length, max_size=3)
    assert parser.feed(frames([b"abc"])) == [b"abc"]
    assert parser.error is None


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
