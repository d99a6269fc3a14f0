"""What a served application holds in memory is bounded, whatever one message makes."""

import pytest
from ports import free_port
from receiving import eventually
from served import BOTH, application, connect, stopped

import wallaroo
from wallaroo.frames import frames


@BOTH
@pytest.mark.parametrize("calm", [0, 2000])
def test_memory_is_bounded_where_a_few_bytes_make_many(serve, isolation, calm):
    @wallaroo.computation_multi(name="multiply")
    def multiply(message):
        return [message] if message == "calm" else [message * 1000] * 2000

    port = free_port()
    handle = serve(application(port, ("to", multiply)), isolation=isolation, stop_timeout=0.2)
    with connect(handle) as sock:
        # 6 kB of input would make 2 GB of outputs, each message 2 MB.
        sock.sendall(frames([b"calm"] * calm + [b"x"] * 1000))
        eventually(lambda: handle.progress().pending > calm)
        summary = stopped(handle)
    # Sinks are full at 16 MiB; beyond it there is what one message made.
    undelivered = summary.undelivered[("p", 0)]
    assert undelivered - calm <= (16 << 20) / 1000 + 2 * 2000
    assert summary.exit_code == 1


@BOTH
@pytest.mark.parametrize("deep", [False, True])
def test_a_single_message_that_makes_too_much_ends_the_run_and_is_named(
    serve, receiver, isolation, deep, monkeypatch
):
    monkeypatch.setattr("wallaroo_reference.serving.feeder.MOST_OF_A_MESSAGE", 8 << 20)

    @wallaroo.computation_multi(name="multiply")
    def multiply(message):
        return [message] if message in "ab" else [message * 1000] * (100 if deep else 1000)

    steps = [("to", multiply)]
    if deep:
        again = wallaroo.computation_multi(name="again")(lambda message: [message] * 65)
        steps = [("to", multiply), ("to", again)]
    handle = serve(application(receiver.port, *steps), isolation=isolation)
    data = [b"a", b"b", b"boom boom boom", b"a"]
    with connect(handle) as sock:
        sock.sendall(frames(data))
        summary = handle.wait(60)
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
    times = 65 if deep else 1
    assert receiver.data == b"a\n" * times + b"b\n" * times
    assert summary.exit_code == 1
    assert summary.problem.startswith(
        "one message made more than 8 MiB of outputs, which is more than the engine holds at once: "
        f"pipeline p, step {'again, message 2.' if deep else 'multiply, message 2. The '}"
    )


class Nothing:
    """A state with nothing in it."""


@BOTH
@pytest.mark.parametrize("with_state", [False, True])
def test_a_generator_without_end_ends_the_run_and_is_named(
    serve, receiver, isolation, with_state, monkeypatch
):
    monkeypatch.setattr("wallaroo_reference.serving.feeder.MOST_OF_A_MESSAGE", 8 << 20)

    def items(message):
        yield message
        while message == "endless":
            yield "x" * 1000

    if with_state:
        given = wallaroo.state_computation_multi(name="give")(lambda m, state: (items(m), True))
        step = ("to_stateful", given, Nothing, "state")
    else:
        step = ("to", wallaroo.computation_multi(name="give")(items))
    handle = serve(application(receiver.port, step), isolation=isolation)
    with connect(handle) as sock:
        sock.sendall(frames([b"a", b"endless", b"b"]))
        summary = handle.wait(60)
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
    assert receiver.data == b"a\n"
    assert summary.exit_code == 1
    assert summary.problem.startswith("one result gave more than 8 MiB of messages, which is more")
    assert "had not ended: pipeline p, step give, message 1." in summary.problem
