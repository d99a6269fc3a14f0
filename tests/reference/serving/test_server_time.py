"""What a served application says of late messages, and its generators."""

import socket
import threading

import pytest
from counted import first_word, send, sink, source
from receiving import eventually
from served import stopped
from small_windows import Total

import wallaroo


class Numbers:
    """Gives 0, 1, 2, … up to `count`."""

    def __init__(self, count):
        self.count = count
        self.made = 0

    def initial_value(self):
        return 0

    def apply(self, last):
        self.made = last + 1
        return self.made if self.made < self.count else None


def generated(numbers):
    return wallaroo.source("g", wallaroo.GenSourceConfig(numbers))


def built(receiver, pipeline):
    return wallaroo.build_application("app", pipeline.to_sink(sink(receiver.port)))


def test_window_6_what_is_late_is_counted_in_the_summary(serve, receiver):
    windows = wallaroo.range_windows(wallaroo.seconds(10)).with_slide(wallaroo.seconds(5))
    counted = windows.with_late_data_policy("drop").over(Total)
    pipeline = source(event_time=lambda message: wallaroo.seconds(int(message))).to(counted)
    handle = serve(built(receiver, pipeline))
    send(handle, "12", "1", "8")  # 5 to 15 is open still, and 8 lies in it
    summary = stopped(handle)
    assert summary.late == {("Total", "dropped"): 1, ("Total", "partly"): 1}
    assert summary.dead_letters == {}


@pytest.mark.parametrize("isolation", ["trusting", "isolated"])
def test_time_5_windows_that_are_open_at_a_stop_are_counted(serve, receiver, isolation):
    windows = wallaroo.range_windows(wallaroo.days(40_000)).over(Total)
    pipeline = source().key_by(first_word).to(windows)
    handle = serve(built(receiver, pipeline), isolation=isolation)
    send(handle, "1", "2", "1", "3")
    assert stopped(handle).open_windows == 3


def test_graph_4_a_run_of_generators_ends_by_itself(serve, receiver):
    handle = serve(built(receiver, generated(Numbers(1_000))))
    summary = handle.wait(60)
    assert receiver.data == b"".join(b"%d\n" % number for number in range(1_000))
    assert (summary.exit_code, summary.received) == (0, {"g": 1_000})


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
            taken.wait(60)
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
        reader.join(60)
        peer.close()
    assert (summary.exit_code, summary.written) == (0, {("g", 0): 2_000})
