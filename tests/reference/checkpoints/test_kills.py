"""recover-1 and recover-2 on the reference engine: kills, and restarts from the checkpoint."""

from __future__ import annotations

import json
from itertools import accumulate

from counted import Count, counting, send, sink
from receiving import eventually
from served import BOTH
from wallaroo_reference.checkpoints.store import Store

import wallaroo


def position(tmp_path):
    """Return how many records the stored state knows."""
    store = Store(tmp_path / "c" / "reference", read_only=True)
    head = store.head()
    store.close()
    return 0 if head is None else head.moment.sequence


def stopped(handle):
    handle.stop()
    summary = handle.wait(60)
    assert summary is not None
    assert summary.problem is None
    return summary


@BOTH
def test_stop_1_a_stop_in_order_leaves_nothing_to_repeat(serve, receiver, isolation, tmp_path):
    application = counting(receiver.port)
    handle = serve(application, isolation, own={"checkpoint_interval": 1000})
    send(handle, *"abcab")
    stopped(handle)
    assert position(tmp_path) == 5
    handle = serve(application, isolation)
    stopped(handle)
    assert receiver.everything() == b"a 1\nb 1\nc 1\na 2\nb 2\n"


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
