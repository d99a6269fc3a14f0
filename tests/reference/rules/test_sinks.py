"""What sinks get of what encoders give."""

import pytest
from small_steps import identity

import wallaroo


class Chunk(bytes):
    def __bytes__(self):
        raise OSError("no")


class Text(str):
    def encode(self, *args):
        raise OSError("no")


@pytest.mark.parametrize(
    ("encoded", "written"),
    [
        (b"a", b"a"),
        (b"", b""),
        ("é", "é".encode()),
        ("", b""),
        (Chunk(b"c"), b"c"),
        (Text("é"), "é".encode()),
    ],
    ids=["bytes", "no bytes", "text", "no text", "of bytes", "of text"],
)
def test_sink_1_bytes_or_text(app, run, encoded, written):
    result = run(app(encoder=wallaroo.encoder(lambda message: encoded)), [b"a"])
    assert result.dead_letters == []
    assert result.output == [written]
    assert type(result.output[0]) is bytes


@pytest.mark.parametrize(
    "encoded",
    [
        0,
        False,
        bytearray(b"a"),
        memoryview(b"a"),
        [b"a"],
        ("a",),
        object(),
        "\ud800",
        Text("\ud800"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_sink_1_anything_else_is_a_dead_letter(app, run, letters, encoded):
    result = run(app(("to", identity), encoder=wallaroo.encoder(lambda message: encoded)), [b"a"])
    assert result.output == []
    assert letters(result) == [((0,), None, 0, None, "encode")]
    assert result.dead_letters[0].error_type is None
