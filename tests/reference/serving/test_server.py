"""The reference engine live: real sockets, bad senders, absent sinks, every way to stop."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import threading
import time
from pathlib import Path

import pytest
from receiving import Receiver, eventually
from wallaroo_reference.engine import ReferenceEngine

import wallaroo
from wallaroo.engine import ServeOptions
from wallaroo.errors import WallarooParameterError
from wallaroo.frames import frame, frames
from wallaroo.transport.dead_letters import DeadLetterFileError
from wallaroo.transport.listener import ListenError

BOTH = pytest.mark.parametrize("isolation", ["trusting", "isolated"])


@wallaroo.decoder(header_length=4, length_fmt=">I")
def text(payload):
    return payload.decode()


@wallaroo.encoder
def line(message):
    return f"{message}\n"


@wallaroo.computation(name="shout")
def shout(message):
    return message.upper()


class Count:
    def __init__(self):
        self.count = 0


@wallaroo.state_computation(name="number")
def number(message, state):
    state.count += 1
    return f"{message} {state.count}", True


@wallaroo.partition
def whole(message):
    return message


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def serve():
    """Serve an application and make sure that it has ended."""
    handles = []

    def start(application, **options):
        handles.append(ReferenceEngine().serve(application, ServeOptions(**options)))
        return handles[-1]

    yield start
    for handle in handles:
        if handle.wait(0) is None:
            handle.kill()


def application(port, *steps, decoder=text, encoder=line, sinks=1, **options):
    builder = wallaroo.ApplicationBuilder("app").new_pipeline(
        "p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decoder, **options)
    )
    for method, *arguments in steps:
        getattr(builder, method)(*arguments)
    return builder.to_sinks([wallaroo.TCPSinkConfig("127.0.0.1", port, encoder)] * sinks).build()


def connect(handle, source="p"):
    return socket.create_connection(handle.addresses[source], timeout=20)


def send(handle, data, source="p"):
    """Send, half-close, and wait until the source has closed its side too."""
    with connect(handle, source) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""


def stopped(handle, seconds=20.0):
    handle.stop()
    summary = handle.wait(seconds)
    assert summary is not None
    return summary


@BOTH
def test_messages_go_in_and_come_out(serve, receiver, isolation, capsys):
    handle = serve(
        application(
            receiver.port, ("to", shout), ("to_state_partition", number, Count, "counts", whole)
        ),
        isolation=isolation,
    )
    send(handle, frames([b"a", b"b", b"a", b""]))
    summary = stopped(handle)
    assert receiver.data == b"A 1\nB 1\nA 2\n 1\n"
    assert summary.exit_code == 0
    assert summary.received == {"p": 4}
    assert summary.written == {("p", 0): 4}
    assert summary.undelivered == {("p", 0): 0}
    assert (summary.dead_letters, summary.problem) == ({}, None)
    host, port = handle.addresses["p"]
    assert capsys.readouterr().err == f"source p listening on {host}:{port}\n"


def test_frame_1_cut_at_every_byte_the_outputs_are_the_same(serve, receiver):
    handle = serve(application(receiver.port, ("to", shout)))
    stream = frames([b"ab", b"", b"c"])
    for cut in range(len(stream) + 1):
        with connect(handle) as sock:
            sock.sendall(stream[:cut])
            time.sleep(0.002)
            sock.sendall(stream[cut:])
    eventually(lambda: handle.progress().received == 3 * (len(stream) + 1))
    stopped(handle)
    assert receiver.data == b"AB\n\nC\n" * (len(stream) + 1)


def test_frame_3_garbage_harms_no_other_connection(serve, receiver, caplog):
    handle = serve(application(receiver.port, ("to", shout)))
    with connect(handle) as good:
        good.sendall(frame(b"one"))
        with pytest.raises(ConnectionResetError):
            send(handle, frame(b"two") + b"\xff\xff\xff\xff")
        good.sendall(frame(b"three"))
        eventually(lambda: handle.progress().written == 3)
    summary = stopped(handle)
    assert sorted(receiver.data.split()) == [b"ONE", b"THREE", b"TWO"]
    assert summary.dropped_frames == {"p": 1}
    assert summary.exit_code == 0
    assert "source p: header ff ff ff ff claims a payload of 4294967295 bytes" in caplog.text


def test_frame_4_a_half_closed_connection_is_closed_once_all_is_sequenced(serve, receiver):
    handle = serve(application(receiver.port, ("to", shout)))
    send(handle, frames([b"x"] * 10_000) + b"\0\0")
    assert handle.progress().received == 10_000
    summary = stopped(handle)
    assert receiver.data == b"X\n" * 10_000
    assert summary.dropped_frames == {"p": 1}


def _raising(*_):
    raise ValueError("no")


def _if_bad(result):
    """Return a function that does `result(message)` for the message "bad"."""

    def function(message):
        return result(message) if message == "bad" else message

    return function


def _decoding(payload):
    return payload.decode() if payload != b"bad" else _raising()


def _stateful(message, state):
    return _if_bad(lambda _: 5)(message) if message == "bad" else (message, True)


def computing(function):
    return ("to", wallaroo.computation(name="step")(function))


def multi(function):
    return ("to", wallaroo.computation_multi(name="step")(function))


def routed(function, method="to_state_partition", keys=None):
    last = wallaroo.state_computation(name="step")(_stateful_identity)
    return (method, last, Count, "counts", wallaroo.partition(function), keys)


def _stateful_identity(message, state):
    return message, True


BAD_MESSAGES = [
    ("decode", {"decoder": wallaroo.decoder(4, ">I")(_decoding)}, []),
    ("raised", {}, [computing(_if_bad(_raising))]),
    ("raised", {}, [multi(lambda m: [m] if m != "bad" else (_raising() for _ in "x"))]),
    ("bad-result", {}, [multi(lambda m: [m] if m != "bad" else m)]),
    (
        "bad-result",
        {},
        [("to_stateful", wallaroo.state_computation(name="step")(_stateful), Count, "s")],
    ),
    ("raised", {}, [routed(_if_bad(_raising))]),
    ("bad-key", {}, [routed(_if_bad(lambda _: 1.5))]),
    ("bad-key", {}, [routed(_if_bad(lambda _: True))]),
    ("bad-key", {}, [routed(lambda m: -1 if m == "bad" else 1, "to_state_partition_u64")]),
    ("unknown-key", {}, [routed(_if_bad(lambda _: "zzz"), keys=["one", "two"])]),
    ("encode", {"encoder": wallaroo.encoder(_if_bad(_raising))}, []),
    ("encode", {"encoder": wallaroo.encoder(_if_bad(lambda _: 5))}, []),
    ("encode", {"encoder": wallaroo.encoder(_if_bad(lambda _: "\ud800"))}, []),
]


@BOTH
@pytest.mark.parametrize(("reason", "edges", "steps"), BAD_MESSAGES)
def test_dead_2_one_bad_message_harms_no_other(
    serve, receiver, isolation, reason, edges, steps, tmp_path
):
    path = tmp_path / "dead.jsonl"
    handle = serve(
        application(receiver.port, *steps, **({"encoder": wallaroo.encoder(_plain)} | edges)),
        isolation=isolation,
        dead_letters=path,
    )
    send(handle, frames([b"one", b"bad", b"two"]))
    summary = stopped(handle)
    assert receiver.data == b"onetwo"
    assert summary.exit_code == 0
    step = "step" if steps else None
    assert summary.dead_letters == {("p", step, reason): 1}
    (entry,) = map(json.loads, path.read_text().splitlines())
    assert (entry["lineage"][0], entry["reason"], entry["step"]) == (1, reason, step)


def _plain(message):
    return message


def test_decode_1_bytes_that_are_not_utf_8_are_a_dead_letter(serve, receiver, caplog):
    handle = serve(application(receiver.port, ("to", shout)))
    send(handle, frames([b"a", b"\xff\xfe", b"b"]))
    summary = stopped(handle)
    assert receiver.data == b"A\nB\n"
    assert summary.dead_letters == {("p", None, "decode"): 1}
    assert "dead letter: pipeline p, decoder, decode (UnicodeDecodeError), message 1:" in (
        caplog.text
    )


def test_200_connections_at_once_one_of_them_sending_garbage(serve, receiver):
    handle = serve(application(receiver.port, ("to", shout)))
    socks = [connect(handle) for _ in range(200)]
    for index, sock in enumerate(socks):
        sock.sendall(b"\xff" * 100 if index == 13 else frames([b"m%d" % index] * 5))
    eventually(lambda: handle.progress().received == 199 * 5)
    for sock in socks:
        sock.close()
    summary = stopped(handle)
    assert len(receiver.data.split()) == 199 * 5
    assert summary.dropped_frames == {"p": 1}
    assert summary.exit_code == 0


def test_sink_2_each_sink_has_a_connection_of_its_own_even_to_one_address(serve, receiver):
    handle = serve(application(receiver.port, ("to", shout), sinks=3))
    send(handle, frames([b"a", b"b"]))
    summary = stopped(handle)
    assert receiver.got(3) == [b"A\nB\n"] * 3
    assert summary.written == {("p", index): 2 for index in range(3)}


def test_state_8_pipelines_share_a_partition_and_one_sequence(serve, receiver, tmp_path):
    builder = wallaroo.ApplicationBuilder("app")
    for name in ("p", "q"):
        builder.new_pipeline(name, wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
        builder.to_state_partition(number, Count, "counts", whole)
        builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", receiver.port, line))
    handle = serve(builder.build(), dead_letters=tmp_path / "dead")
    for sequence in range(6):
        send(handle, frame(b"x"), "pq"[sequence % 2])
    send(handle, frame(b"\xff"), "q")
    summary = stopped(handle)
    assert sorted(receiver.got(2)) == [b"x 1\nx 3\nx 5\n", b"x 2\nx 4\nx 6\n"]
    assert summary.received == {"p": 3, "q": 4}
    assert json.loads((tmp_path / "dead").read_text())["lineage"] == [6]


def test_sink_3_a_sink_that_is_away_for_a_while_under_load_misses_nothing(serve, receiver):
    port = receiver.port
    receiver.close()
    handle = serve(application(port, ("to", shout)))
    total = 50_000
    sending = threading.Thread(
        target=send, args=(handle, frames([b"%06d" % n for n in range(total)]))
    )
    sending.start()
    time.sleep(0.5)
    again = Receiver(port)
    sending.join()
    summary = stopped(handle)
    again.close()
    assert again.data == b"".join([b"%06d\n" % n for n in range(total)])
    assert (summary.written, summary.exit_code) == ({("p", 0): total}, 0)


def test_sink_3_without_its_sink_it_stops_reading(serve):
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    handle = serve(application(port, ("to", shout)), stop_timeout=0.2)
    sock = connect(handle)
    sock.setblocking(False)
    data = memoryview(frames([bytes(1000)] * 100))
    sent, quiet_since = 0, time.monotonic()
    while time.monotonic() - quiet_since < 0.5:
        try:
            sent += sock.send(data[sent % len(data) :])
            quiet_since = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
        assert sent < 200_000_000, "it never stops reading"
    received = handle.progress().received
    summary = stopped(handle)
    assert summary.received["p"] >= received > 1000
    assert summary.exit_code == 1
    assert summary.undelivered[("p", 0)] > 1000
    assert "the stop was given up after 0.2 s" in summary.problem
    sock.close()


def test_stop_1_under_load_what_was_received_is_delivered(serve, receiver):
    handle = serve(application(receiver.port, ("to", shout)))
    going = threading.Event()
    going.set()

    def load():
        with connect(handle) as sock, contextlib.suppress(OSError):
            while going.is_set():
                sock.sendall(frames([b"message"] * 500))

    senders = [threading.Thread(target=load) for _ in range(3)]
    for sender in senders:
        sender.start()
    eventually(lambda: handle.progress().received > 5000)
    summary = stopped(handle)
    going.clear()
    for sender in senders:
        sender.join()
    assert summary.exit_code == 0
    assert summary.written[("p", 0)] == summary.received["p"] > 5000
    assert receiver.data == b"MESSAGE\n" * summary.received["p"]


def test_stop_1_without_anything_received(serve, receiver):
    summary = stopped(serve(application(receiver.port, ("to", shout))))
    assert (summary.exit_code, summary.received) == (0, {"p": 0})


def test_stop_1_user_code_that_never_returns_is_given_up(serve, receiver):
    release = threading.Event()

    @wallaroo.computation(name="hang")
    def hang(message):
        release.wait()
        return message

    handle = serve(application(receiver.port, ("to", hang)), stop_timeout=0.1)
    with connect(handle) as sock:
        sock.sendall(frame(b"a"))
        eventually(lambda: handle.progress().received == 1)
        summary = stopped(handle)
        release.set()
    assert summary.exit_code == 1
    assert summary.problem == "user code has not returned since the stop was asked for"


@pytest.fixture
def hanging(serve, receiver, monkeypatch):
    """A server in user code from the first message on, before its start is over; its release."""
    entered, release = threading.Event(), threading.Event()

    @wallaroo.computation(name="hang")
    def hang(_):
        entered.set()
        release.wait()

    class Terminal(io.StringIO):
        """A sender reads the address there, and is quicker than the server's start."""

        def write(self, text):
            if "listening on" in text:
                host, _, port = text.split()[-1].rpartition(":")
                with socket.create_connection((host, int(port))) as sock:
                    sock.sendall(frame(b"a"))
                    entered.wait(20)
            return super().write(text)

    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr", Terminal())
        handle = serve(application(receiver.port, ("to", hang)), stop_timeout=0.1)
    yield handle, release
    release.set()


def test_stop_1_user_code_that_never_returns_from_the_first_message_is_given_up(hanging):
    summary = stopped(hanging[0])
    assert summary.problem == "user code has not returned since the stop was asked for"


def test_a_kill_before_the_start_is_over_ends_the_run(hanging):
    handle, release = hanging
    handle.kill()
    release.set()
    assert handle.wait(20).problem == "it was killed"


@BOTH
def test_dead_3_system_exit_ends_the_run_and_names_the_step(serve, receiver, isolation, tmp_path):
    @wallaroo.computation(name="leave")
    def leave(message):
        if message == "bye":
            raise SystemExit(3)
        if message == "bad":
            raise ValueError
        return message

    handle = serve(
        application(receiver.port, ("to", leave)),
        isolation=isolation,
        dead_letters=tmp_path / "dead",
    )
    with connect(handle) as sock:
        sock.sendall(frames([b"a", b"bad", b"b", b"bye", b"c"]))
        summary = handle.wait(20)
    assert receiver.data == b"a\nb\n"
    assert summary.exit_code == 1
    assert summary.problem == (
        "SystemExit ended the run: pipeline p, step leave, message 3 (dead-3)"
    )
    assert summary.dead_letters == {("p", "leave", "raised"): 1}
    assert len((tmp_path / "dead").read_text().splitlines()) == 1


@BOTH
def test_dead_4_on_error_stop_delivers_exactly_what_precedes(serve, receiver, isolation):
    handle = serve(application(receiver.port, ("to", shout)), isolation=isolation, on_error="stop")
    with connect(handle) as sock:
        sock.sendall(frames([b"a", b"b", b"\xff", b"c"]) * 50)
        summary = handle.wait(20)
    assert receiver.data == b"A\nB\n"
    assert summary.exit_code == 1
    assert summary.problem == (
        "the first dead letter ended the run, as --on-error stop says: pipeline p, decoder, "
        "message 2 (dead-4)"
    )
    assert summary.dead_letters == {("p", None, "decode"): 1}


@BOTH
def test_dead_4_on_error_stop_names_the_encoder(serve, receiver, isolation):
    picky = wallaroo.encoder(_if_bad(_raising))
    handle = serve(
        application(receiver.port, encoder=picky, sinks=2), isolation=isolation, on_error="stop"
    )
    with connect(handle) as sock:
        sock.sendall(frame(b"bad"))
        summary = handle.wait(20)
    assert ": pipeline p, encoder of sink 0, message 0 (dead-4)" in summary.problem


def test_a_full_disk_under_the_dead_letters_ends_the_run(serve, receiver):
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    handle = serve(application(receiver.port, ("to", shout)), dead_letters=full)
    with connect(handle) as sock:
        sock.sendall(frames([b"a", b"\xff", b"b"]))
        summary = handle.wait(20)
    assert summary.exit_code == 1
    assert summary.problem == (
        "dead letters cannot be written to /dev/full: No space left on device; the last 1 are not "
        "in it, from message 1 on"
    )
    assert receiver.data == b"A\nB\n"


def test_isolated_mode_reports_findings_in_the_summary(serve, receiver):
    @wallaroo.state_computation(name="forget")
    def forget(message, state):
        state.count += 1
        return message, False

    handle = serve(
        application(receiver.port, ("to_stateful", forget, Count, "s")), isolation="isolated"
    )
    send(handle, frames([b"a"] * 3))
    (finding,) = stopped(handle).findings
    assert (finding.kind.value, finding.step) == ("unflagged-mutation", "forget")


def test_kill_and_restart_listens_where_it_was_and_begins_anew(serve, receiver):
    handle = serve(application(receiver.port, ("to_stateful", number, Count, "s")))
    send(handle, frames([b"a", b"a"]))
    eventually(lambda: handle.progress().written == 2)
    handle.kill()
    assert handle.wait(20).problem == "it was killed"
    again = handle.restart()
    assert again.addresses == handle.addresses
    send(again, frame(b"a"))
    assert stopped(again).exit_code == 0
    assert receiver.got(2) == [b"a 1\na 2\n", b"a 1\n"]


def test_a_port_in_use_says_which_and_leaves_nothing_behind(serve, receiver):
    handle = serve(application(receiver.port))
    host, port = handle.addresses["p"]
    taken = wallaroo.ApplicationBuilder("app")
    taken.new_pipeline("again", wallaroo.TCPSourceConfig(host, port, text)).to(shout).done()
    with pytest.raises(ListenError, match=f"source again cannot listen on {host}:{port}"):
        serve(taken.build())
    engines = [each for each in threading.enumerate() if each.name == "wallaroo-reference"]
    assert len(engines) == 1


def test_a_sink_at_port_0_is_refused_before_anything_listens(serve):
    with pytest.raises(WallarooParameterError, match=r"sink p/0 cannot connect to 127.0.0.1:0"):
        serve(application(0))


def test_a_file_for_dead_letters_that_cannot_be_opened_is_refused(serve, receiver, tmp_path):
    with pytest.raises(DeadLetterFileError, match="Is a directory"):
        serve(application(receiver.port), dead_letters=tmp_path)


def test_stdin_and_stdout_stand_in_for_source_and_sinks(serve):
    out = io.BytesIO()
    handle = serve(application(0, ("to", shout), sinks=2), stdin=io.BytesIO(b"a\n\nb"), stdout=out)
    summary = handle.wait(20)
    assert sorted(out.getvalue().split(b"\n")) == sorted([b"A", b"", b"B"] * 2 + [b""])
    assert (summary.exit_code, summary.received) == (0, {"p": 3})
    assert summary.written == {("p", 0): 3, ("p", 1): 3}


def test_stdin_stands_in_for_one_source_only(serve, receiver):
    builder = wallaroo.ApplicationBuilder("app")
    for name in ("p", "q"):
        builder.new_pipeline(name, wallaroo.TCPSourceConfig("127.0.0.1", 0, text)).to(shout).done()
    with pytest.raises(WallarooParameterError, match="only source; this one has 2: p, q"):
        serve(builder.build(), stdin=io.BytesIO())


def test_frame_3_a_line_over_max_size_ends_the_run_with_what_was_before(serve):
    out = io.BytesIO()
    stdin = io.BytesIO(b"ok\n" + b"x" * 100 + b"\nafter\n")
    handle = serve(application(0, ("to", shout), max_size=10), stdin=stdin, stdout=out)
    summary = handle.wait(20)
    assert out.getvalue() == b"OK\n"
    assert summary.exit_code == 1
    assert summary.problem == "stdin: a line is longer than 10 bytes (max_size)"


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
        summary = handle.wait(20)
    assert got == lines
    assert summary.exit_code == 0


def test_a_reader_of_stdout_that_goes_away_ends_the_run(serve):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb", buffering=0) as writer:
        handle = serve(application(0), stdin=io.BytesIO(b"a\n" * 1000), stdout=writer)
        summary = handle.wait(20)
    assert summary.exit_code == 1
    assert summary.problem == "the outputs cannot be written: Broken pipe"


def test_the_end_of_stdin_waits_for_a_sink_that_makes_progress_and_no_other(serve, receiver):
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    handle = serve(application(port), stdin=io.BytesIO(b"a\nb\n"), stop_timeout=0.2)
    summary = handle.wait(20)
    assert summary.exit_code == 1
    assert summary.undelivered == {("p", 0): 2}


def test_progress_tells_what_is_going_on(serve, receiver):
    handle = serve(application(receiver.port))
    send(handle, frames([b"a", b"\xff"]))
    eventually(lambda: handle.progress().written == 1)
    progress = handle.progress()
    assert (progress.received, progress.pending, progress.dead_letters) == (2, 0, 1)
    stopped(handle)


@BOTH
@pytest.mark.parametrize("calm", [0, 2000])
def test_memory_is_bounded_where_a_few_bytes_make_many(serve, isolation, calm):
    @wallaroo.computation_multi(name="multiply")
    def multiply(message):
        return [message] if message == "calm" else [message * 1000] * 2000

    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    handle = serve(application(port, ("to", multiply)), isolation=isolation, stop_timeout=0.2)
    with connect(handle) as sock:
        # 6 kB of input would make 2 GB of outputs, each message 2 MB.
        sock.sendall(frames([b"calm"] * calm + [b"x"] * 1000))
        eventually(lambda: handle.progress().pending > calm)
        summary = stopped(handle)
    # Sinks are full at 16 MiB; beyond it there is what one message made.
    undelivered = summary.undelivered[("p", 0)]
    assert undelivered - calm <= (16 << 20) / 2000 + 2 * 2000
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
        summary = handle.wait(20)
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
    times = 65 if deep else 1
    assert receiver.data == b"a\n" * times + b"b\n" * times
    assert summary.exit_code == 1
    assert summary.problem.startswith(
        "one message made more than 8 MiB of outputs, which is more than the engine holds at once: "
        f"pipeline p, step {'again, message 2.' if deep else 'multiply, message 2. What was made'}"
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
        summary = handle.wait(30)
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
    assert receiver.data == b"a\n"
    assert summary.exit_code == 1
    assert summary.problem.startswith("one result gave more than 8 MiB of messages, which is more")
    assert "had not come to its end: pipeline p, step give, message 1." in summary.problem
