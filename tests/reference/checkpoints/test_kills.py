"""graph-4 on the reference engine: a generator that is killed, and started again."""

from __future__ import annotations

import json
from itertools import accumulate

from counted import Count, sink
from receiving import eventually
from served import BOTH

import wallaroo


class Numbers:
    """Gives 1 to 2000; every tenth cannot be pickled."""

    def initial_value(self):
        return 1

    def apply(self, value):
        number = value() if callable(value) else value
        if number == 2000:
            return None
        return number + 1 if (number + 1) % 10 else lambda: number + 1


@wallaroo.state_computation(name="total", state=Count)
def total(message, state):
    state.count += message
    return f"{message} {state.count}"


@BOTH
def test_graph_4_a_generator_goes_on_behind_its_last_record(serve, receiver, isolation, tmp_path):
    numbers = wallaroo.source("numbers", wallaroo.GenSourceConfig("numbers", Numbers()))
    pipeline = numbers.to(total).to_sink(sink(receiver.port))
    application = wallaroo.build_application("sums", pipeline)
    handle = serve(application, isolation, dead_letters=tmp_path / "letters")
    for kills in range(1, 4):
        eventually(lambda kills=kills: len(receiver.so_far) == kills and receiver.so_far[-1])
        handle.kill()
        handle = serve.again(handle)
    assert handle.wait(60).exit_code == 0
    numbers = [n for n in range(1, 2001) if n % 10]
    whole = [f"{n} {s}".encode() for n, s in zip(numbers, accumulate(numbers), strict=True)]
    got: list[bytes] = []
    for stretch in receiver.got(len(receiver.so_far)):
        lines = stretch.split(b"\n")[:-1]
        if lines:
            start = whole.index(lines[0])
            assert start <= len(got)
            got[start:] = lines
    assert got == whole
    letters = [json.loads(line) for line in (tmp_path / "letters").read_text().splitlines()]
    assert {letter["reason"] for letter in letters} == {"unportable"}
    assert {letter["lineage"][0] for letter in letters} == set(range(9, 2000, 10))
