"""Lines in and outputs out by real pipes."""

import asyncio
import io
import os
import threading

import pytest
from listening import Received

from wallaroo.transport.streams import LineParser, LineReader, StreamSink, TooLongError


@pytest.mark.parametrize("pieces", [[b"ok\n123456\nok"], [b"ok\n", b"123", b"456"]])
def test_frame_3_a_line_over_max_size_ends_the_stream(pieces):
    parser = LineParser(5)
    got = [line for piece in pieces[:-1] for line in parser.feed(piece)]
    with pytest.raises(TooLongError, match="a line is longer than 5 bytes") as caught:
        parser.feed(pieces[-1])
    assert got + caught.value.lines == [b"ok"]


@pytest.mark.parametrize(
    ("data", "payloads", "problem"),
    [
        (b"a\nb", [b"a", b"b"], None),
        (b"", [], None),
        (b"a\r\nb\rc\n\r\nd\r", [b"a", b"b\rc", b"", b"d"], None),
        (
            b"a\nb\n" + bytes(101) + b"\nc\n",
            [b"a", b"b"],
            "stdin: a line is longer than 100 bytes (max_size)",
        ),
    ],
)
def test_the_reader_reads_to_the_end_or_to_what_is_wrong(loop_thread, data, payloads, problem):
    received = Received()
    LineReader(io.BytesIO(data), "a", 100, received, loop_thread).start()
    assert received.ended.wait(60)
    assert (received.payloads, received.problem) == (payloads, problem)


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "wb") as writer:
        yield reader, writer


def test_a_slow_reader_fills_it_and_room_is_announced(loop_thread, pipe):
    reader, writer = pipe
    room = threading.Event()
    sink = StreamSink(writer, on_room=room.set)
    loop_thread.call(sink.start)
    count = 0
    while not loop_thread.call(lambda: sink.full):
        loop_thread.call(sink.write, [bytes(65535)])
        count += 1
    assert count <= 66
    assert not room.is_set()
    assert len(reader.read(count * 65536)) == count * 65536
    assert room.wait(60)
    assert not sink.full
    loop_thread.run(sink.drain(), 60)
    loop_thread.call(sink.close)


def test_a_reader_that_goes_away_is_noticed(loop_thread):
    reading, writing = os.pipe()
    os.close(reading)
    broken = []
    stream = os.fdopen(writing, "wb", buffering=0)
    sink = StreamSink(stream, on_broken=broken.append)
    loop_thread.call(sink.start)
    loop_thread.call(sink.write, [b"a"])
    loop_thread.run(asyncio.wait_for(sink.drain(), 60))
    assert broken == ["the outputs cannot be written: Broken pipe"]
    assert (sink.written, sink.pending) == (0, 1)
    loop_thread.call(sink.close)
    stream.close()
