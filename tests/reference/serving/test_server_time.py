"""Time in a served application: ticks, ends, generators, and a clock that the test owns."""

from __future__ import annotations

import io
import socket
import threading

import pytest
from counted import send, sink, source
from receiving import eventually
from served import stopped
from standing_clock import NOON, SECOND, Clock
from wallaroo_reference.engine import ReferenceEngine
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.serving.server import Server

import wallaroo
from wallaroo.engine import ServeOptions


class Count:
    def initial_accumulator(self):
        return 0

    def update(self, message, count):
        return count + 1

    def combine(self, earlier, later):
        return earlier + later

    def output(self, key, count, window):
        return f"{(window.start - NOON) // SECOND}: {count}"


def seconds_of(message):
    return NOON + int(message.split()[0]) * SECOND


TEN_SECONDS = wallaroo.range_windows(wallaroo.seconds(10))


class Numbers:
    """Gives 0, 1, 2, … up to `count`; raises `error` in its place."""

    def __init__(self, count, error=None):
        self.count = count
        self.error = error
        self.made = 0

    def initial_value(self):
        return 0

    def apply(self, last):
        self.made = last + 1
        if self.made < self.count:
            return self.made
        if self.error is not None:
            raise self.error
        return None


def generated(numbers):
    return wallaroo.source("g", wallaroo.GenSourceConfig(numbers))


def built(receiver, pipeline):
    return wallaroo.build_application("app", pipeline.to_sink(sink(receiver.port)))


@pytest.fixture
def serve():
    """Serve an application on a clock of the test's, and make sure that it has ended."""
    handles = []

    def start(application, clock=None, **options):
        if clock is None:
            handle = ReferenceEngine().serve(application, ServeOptions(**options))
        else:
            handle = Server(
                application, lambda: Interpreter(application), ServeOptions(**options), clock=clock
            )
        handles.append(handle)
        return handle

    yield start
    for handle in handles:
        if handle.wait(0) is None:
            handle.kill()


def test_time_1_a_tick_lets_a_window_fire_without_further_input(serve, receiver):
    clock = Clock()
    handle = serve(built(receiver, source().to(TEN_SECONDS.over(Count))), clock)
    send(handle, "a", "b")
    clock.now += 9 * SECOND
    send(handle, "c")
    assert handle.progress().written + handle.progress().pending == 0
    clock.now += SECOND
    eventually(lambda: handle.progress().written == 1)
    summary = stopped(handle)
    assert receiver.data == b"0: 3\n"
    assert (summary.exit_code, summary.open_windows) == (0, 0)


def test_time_5_the_end_of_stdin_ends_its_source_and_all_windows_fire(serve):
    out = io.BytesIO()
    pipeline = source(event_time=seconds_of).to(TEN_SECONDS.over(Count)).to_sink(sink(1))
    application = wallaroo.build_application("app", pipeline)
    handle = serve(application, stdin=io.BytesIO(b"1\n2\n11\n"), stdout=out)
    summary = handle.wait(20)
    assert out.getvalue() == b"0: 2\n10: 1\n"
    assert (summary.exit_code, summary.open_windows) == (0, 0)


def test_time_5_a_stop_ends_no_source_and_says_what_was_open(serve, receiver):
    pipeline = source(event_time=seconds_of).to(TEN_SECONDS.over(Count))
    handle = serve(built(receiver, pipeline))
    send(handle, "1", "12", "25")
    summary = stopped(handle)
    assert receiver.data == b"0: 1\n10: 1\n"
    assert (summary.exit_code, summary.open_windows) == (0, 1)


def test_window_6_what_is_late_is_counted_in_the_summary(serve, receiver):
    windows = TEN_SECONDS.with_slide(wallaroo.seconds(5)).with_late_data_policy("drop")
    pipeline = source(event_time=seconds_of).to(windows.over(Count))
    handle = serve(built(receiver, pipeline))
    send(handle, "12", "1", "8")  # 5 to 15 is open still, and 8 lies in it
    summary = stopped(handle)
    assert summary.late == {("Count", "dropped"): 1, ("Count", "partly"): 1}
    assert summary.dead_letters == {}


def test_graph_4_a_run_of_generators_ends_by_itself(serve, receiver):
    handle = serve(built(receiver, generated(Numbers(1_000))))
    summary = handle.wait(20)
    assert receiver.data == b"".join(b"%d\n" % number for number in range(1_000))
    assert (summary.exit_code, summary.received) == (0, {"g": 1_000})


def test_dead_3_system_exit_in_a_generator_ends_the_run(serve, receiver):
    handle = serve(built(receiver, generated(Numbers(5, SystemExit("now"))).merge(source())))
    summary = handle.wait(20)
    assert receiver.data == b"0\n1\n2\n3\n4\n"
    assert summary.exit_code == 1
    assert "SystemExit ended the run: pipeline g" in summary.problem
    assert summary.dead_letters == {}


def test_graph_4_a_listening_source_keeps_the_run_alive(serve, receiver):
    handle = serve(built(receiver, generated(Numbers(3)).merge(source())))
    eventually(lambda: handle.progress().written == 3)
    assert handle.wait(0) is None
    send(handle, "more")
    assert stopped(handle).exit_code == 0
    assert receiver.data == b"0\n1\n2\nmore\n"


def test_graph_4_a_generator_waits_for_a_sink_that_takes_nothing(serve):
    @wallaroo.computation(name="large")
    def large(number):
        return "x" * (1 << 16)

    numbers = Numbers(2_000)  # 128 MiB of outputs
    with socket.create_server(("127.0.0.1", 0)) as listener:
        receiver = type("Peer", (), {"port": listener.getsockname()[1]})
        handle = serve(built(receiver, generated(numbers).to(large)))
        peer, _ = listener.accept()
        taken = threading.Event()

        def read():
            taken.wait(20)
            while peer.recv(1 << 20):
                pass

        reader = threading.Thread(target=read)
        reader.start()
        eventually(lambda: handle.progress().pending > 0)
        before = -1
        while before != numbers.made:  # until it makes nothing more
            before = numbers.made
            assert handle.wait(0.2) is None
        assert numbers.made < 1_000
        assert handle.progress().pending << 16 < 64 << 20
        taken.set()
        summary = handle.wait(60)
        reader.join(20)
        peer.close()
    assert (summary.exit_code, summary.written) == (0, {("g", 0): 2_000})
