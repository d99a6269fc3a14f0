"""The reference engine live: real sockets, bad senders, absent sinks."""

from pathlib import Path

import pytest
from counted import Count, number
from receiving import eventually
from served import application, connect, send, shout, stopped

from wallaroo.errors import WallarooParameterError
from wallaroo.frames import frame, frames


def test_a_full_disk_under_the_dead_letters_ends_the_run(serve, receiver):
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    handle = serve(application(receiver.port, ("to", shout)), dead_letters=full)
    with connect(handle) as sock:
        sock.sendall(frames([b"a", b"\xff", b"b"]))
        summary = handle.wait(60)
    assert summary.exit_code == 1
    assert summary.problem == (
        "dead letters cannot be written to /dev/full: No space left on device; the last 1 are not "
        "in it, from message 1 on"
    )
    assert receiver.data == b"A\nB\n"


def test_kill_and_restart_listens_where_it_was_and_begins_anew(serve, receiver):
    handle = serve(application(receiver.port, ("to_stateful", number, Count, "s")))
    send(handle, frames([b"a", b"a"]))
    eventually(lambda: handle.progress().written == 2)
    handle.kill()
    assert handle.wait(60).problem == "it was killed"
    again = handle.restart()
    assert again.addresses == handle.addresses
    send(again, frame(b"a"))
    assert stopped(again).exit_code == 0
    assert receiver.got(2) == [b"a 1\na 2\n", b"a 1\n"]


def test_a_sink_at_port_0_is_refused_before_anything_listens(serve):
    with pytest.raises(WallarooParameterError, match=r"sink p/0 cannot connect to 127.0.0.1:0"):
        serve(application(0))
