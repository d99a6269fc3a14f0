"""The reference engine as a filter: lines from stdin, outputs to stdout."""

import io
import os

import pytest
from counted import text
from served import application, shout

import wallaroo
from wallaroo.errors import WallarooParameterError


def test_stdin_and_stdout_stand_in_for_source_and_sinks(serve):
    out = io.BytesIO()
    handle = serve(application(0, ("to", shout), sinks=2), stdin=io.BytesIO(b"a\n\nb"), stdout=out)
    summary = handle.wait(60)
    assert sorted(out.getvalue().split(b"\n")) == sorted([b"A", b"", b"B"] * 2 + [b""])
    assert (summary.exit_code, summary.received) == (0, {"p": 3})
    assert summary.written == {("p", 0): 3, ("p", 1): 3}


def test_stdin_stands_in_for_one_source_only(serve, receiver):
    builder = wallaroo.ApplicationBuilder("app")
    for name in ("p", "q"):
        builder.new_pipeline(name, wallaroo.TCPSourceConfig("127.0.0.1", 0, text)).to(shout).done()
    with pytest.raises(WallarooParameterError, match="only source; this one has 2: p, q"):
        serve(builder.build(), stdin=io.BytesIO())


def test_stdin_faster_than_stdout_is_held_back(serve):
    reading, writing = os.pipe()
    lines = b"0123456789" * 100 + b"\n"
    lines *= 12_000
    stdin = io.BytesIO(lines)
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "wb", 0) as writer:
        handle = serve(application(0, ("to", shout)), stdin=stdin, stdout=writer, stop_timeout=0.1)
        assert handle.wait(1) is None, "it waits for whoever reads its output"
        assert stdin.tell() < len(lines)
        got = bytearray()
        while len(got) < len(lines):
            got += reader.read1(1 << 20)
        summary = handle.wait(60)
    assert got == lines
    assert summary.exit_code == 0
