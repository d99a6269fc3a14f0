"""recover-1 and recover-2 on the reference engine: kills, and restarts from the checkpoint."""

from __future__ import annotations

import json
from itertools import accumulate

import dead_letter_kills
import pytest
from counted import Count, counting, send, sink, source
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
    summary = handle.wait(20)
    assert summary is not None
    assert summary.problem is None
    return summary


@BOTH
def test_recover_1_state_is_there_after_a_kill(serve, receiver, isolation):
    handle = serve(counting(receiver.port), isolation, own={"checkpoint_interval": 1000})
    send(handle, "a", "b", "a")
    eventually(lambda: receiver.so_far == [b"a 1\nb 1\na 2\n"])
    handle.kill()
    handle = serve.again(handle)
    send(handle, "a", "c")
    stopped(handle)
    # Nothing was stored yet, so all is done again, and sent again.
    assert receiver.got(2)[1] == b"a 1\nb 1\na 2\na 3\nc 1\n"


@BOTH
def test_recover_2_what_a_checkpoint_knows_is_not_repeated(serve, receiver, isolation, tmp_path):
    handle = serve(counting(receiver.port), isolation)
    send(handle, "a", "b", "a")
    eventually(lambda: position(tmp_path) == 3)
    handle.kill()
    handle = serve.again(handle)
    send(handle, "a", "c")
    stopped(handle)
    assert receiver.got(2) == [b"a 1\nb 1\na 2\n", b"a 3\nc 1\n"]


@BOTH
def test_stop_1_a_stop_in_order_leaves_nothing_to_repeat(serve, receiver, isolation, tmp_path):
    application = counting(receiver.port)
    handle = serve(application, isolation, own={"checkpoint_interval": 1000})
    send(handle, *"abcab")
    stopped(handle)
    assert position(tmp_path) == 5
    handle = serve(application, isolation)
    stopped(handle)
    assert b"".join(receiver.so_far) == b"a 1\nb 1\nc 1\na 2\nb 2\n"


@wallaroo.computation(name="joined")
def joined(message):
    return f"{message[0]} {message[1]}"


@wallaroo.key_extractor
def first_letter(message):
    return message[0]


def second(message):
    return int(message[1:]) * 1_000_000_000


class Letters:
    def initial_accumulator(self):
        return []

    def update(self, message, accumulator):
        accumulator.append(message)

    def combine(self, earlier, later):
        return earlier + later

    def output(self, key, accumulator):
        return f"{key}: {' '.join(accumulator)}"


def windowed(receiver, windows):
    pipeline = source(event_time=second).key_by(first_letter).to(windows.over(Letters))
    return wallaroo.build_application("windowed", pipeline.to_sink(sink(receiver.port)))


WINDOWS = {
    "range": (
        wallaroo.range_windows(wallaroo.seconds(10)).with_slide(wallaroo.seconds(5)),
        b"a: a1 a3\na: a1 a3 a6\nb: b6\n",
    ),
    "session": (wallaroo.session_windows(wallaroo.seconds(4)), b"a: a1 a3 a6\nb: b6\n"),
    "count": (wallaroo.count_windows(3), b"a: a1 a3 a6\n"),
}


@BOTH
@pytest.mark.parametrize("kind", WINDOWS)
def test_recover_1_open_windows_live_on(serve, receiver, isolation, kind, tmp_path):
    windows, wanted = WINDOWS[kind]
    handle = serve(windowed(receiver, windows), isolation)
    for number, message in enumerate(["a1", "a3", "b6", "a6", "c12"], 1):
        send(handle, message)
        if number != 2:  # the second is in the log only
            eventually(lambda number=number: position(tmp_path) == number)
        handle.kill()
        handle = serve.again(handle)
    assert stopped(handle).open_windows == 0  # they are in the checkpoint
    assert b"".join(receiver.so_far) == wanted


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
    assert handle.wait(20).exit_code == 0
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


@BOTH
def test_time_1_ticks_are_logged(serve, receiver, isolation):
    windows = wallaroo.range_windows(wallaroo.milliseconds(20)).over(Letters)
    pipeline = source().key_by(first_letter).to(windows).to_sink(sink(receiver.port))
    application = wallaroo.build_application("ticking", pipeline)
    handle = serve(application, isolation, own={"checkpoint_interval": 1000})
    send(handle, "a1")
    eventually(lambda: receiver.so_far == [b"a: a1\n"])  # nobody sent anything: a tick
    handle.kill()
    handle = serve.again(handle)
    stopped(handle)
    assert receiver.so_far == [b"a: a1\n", b"a: a1\n"]


@pytest.mark.parametrize("most", [400_000, 40_000])
def test_recover_2_dead_letter_files_are_rotated_while_runs_are_killed(tmp_path, most):
    pauses = [0.0, 0.01, 0.05, 0.2, 0.0]
    dead_letter_kills.check(tmp_path, "reference", most=most, pauses=pauses, patience=30)
