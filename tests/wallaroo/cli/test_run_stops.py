"""How ``wallaroo run`` ends: by signals, by user code, by a kill."""

import os
import signal
import socket
import time

import psutil
import pytest
from receiving import eventually
from running import APP

from wallaroo.cli.run import _Stopper
from wallaroo.engine import ServeOptions, load_engine
from wallaroo.frames import frame, frames


def test_a_second_signal_ends_it_at_once(run):
    process = run()
    used = psutil.Process(process.process.pid).cpu_times
    with process.connect() as sock:
        before = used().user
        sock.sendall(frame(b"hang"))
        eventually(lambda: used().user > before + 0.2)  # it is in user code
        process.process.send_signal(signal.SIGINT)
        while "stopping" not in process.errors:
            process.errors += process.process.stderr.readline()
        process.process.send_signal(signal.SIGINT)
        code, errors, _ = process.wait()
    assert code == 130
    assert "Traceback" not in errors
    assert "app was stopped at once: 1 in, 0 out, 0 outputs not delivered, 0 dead letters" in errors


FORKING = """
    if text == "fork and return":
        os.fork()
    if text == "fork and exit" and not os.fork():
        sys.exit(0)
    if text == "fork and stay" and not os.fork():
        # No print: another thread may have held the lock of sys.stderr at the fork.
        os.write(2, b"child %d\\n" % os.getpid())
        time.sleep(600)
    return text.upper()
"""


@pytest.fixture
def forking(run, app_file):
    app_file.write_text(
        APP.replace("    return text.upper()\n", FORKING, 1) + "\nimport os, time\n"
    )
    return run


@pytest.mark.parametrize("isolated", [[], ["--isolated"]])
@pytest.mark.parametrize("how", [b"fork and return", b"fork and exit"])
def test_a_forked_child_of_user_code_is_no_second_engine(forking, how, isolated):
    process = forking(*isolated)
    process.send("a", how, *["b"] * 100)
    process.process.send_signal(signal.SIGTERM)
    code, errors, received = process.wait()
    assert (code, received) == (0, b"A\n" + how.upper() + b"\n" + b"B\n" * 100)
    said = [line for line in errors.splitlines() if "came back into the engine" in line]
    assert len(said) == 1
    assert said[0].startswith("wallaroo: pipeline p, message 1 or one after it: a process forked ")
    assert "forked in obey (" in said[0]


def test_frame_4_a_forked_child_holds_no_connection_open(forking):
    process = forking()
    with process.connect() as sock:
        sock.sendall(frames([b"fork and stay"]))
        line = ""
        while not line.startswith("child "):
            line = process.process.stderr.readline()
        child = int(line.split()[1])
        try:
            while process.received != b"FORK AND STAY\n":
                time.sleep(0.005)
            process.process.kill()
            with pytest.raises(ConnectionResetError):
                sock.recv(1)
            process.process.wait()  # its last descriptors may go after the connection
            socket.create_server(("127.0.0.1", process.port)).close()
        finally:
            os.kill(child, signal.SIGKILL)
    assert process.wait()[0] == -signal.SIGKILL


def test_stop_1_a_signal_while_the_engine_starts_is_not_lost(app, capfd):
    stopper = _Stopper()
    with stopper.listening():
        stopper.starts()
        os.kill(os.getpid(), signal.SIGTERM)
        handle = load_engine("reference").serve(app(sinks=0), ServeOptions())
        stopper.serves(handle)
        summary = handle.wait(60)
    assert summary is not None
    assert summary.exit_code == 0
    assert "stopping" in capfd.readouterr().err
