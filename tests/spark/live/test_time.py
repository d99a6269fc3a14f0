"""Time in a run served on Spark: ticks, ends, generators, and a clock that the test owns."""

import io
import socket
from pathlib import Path

import pytest
from counted import Count as Counted
from counted import first_word, send, sink, source
from live_on_spark import is_idle
from receiving import eventually
from small_windows import Total
from standing_clock import NOON, SECOND, Clock, time_of
from wallaroo_conformance.live.peers import SinkPeer
from wallaroo_reference.replay.feeding import Input
from wallaroo_reference.replay.rerunning import Lines, Rerun
from wallaroo_spark.jvm.session import session
from wallaroo_spark.live.options import SparkOptions
from wallaroo_spark.live.serve import Server

import wallaroo
from wallaroo.engine import ServeOptions
from wallaroo.loading import load_module
from wallaroo.metrics.registry import Registry
from wallaroo.metrics.snapshot import snapshot
from wallaroo.testing import Session
from wallaroo.transport.recording import RecordedLog

EXAMPLES = Path(__file__).parents[3] / "examples"

shared = pytest.mark.xdist_group("spark")  # in the session that all such tests share

TEN_SECONDS = wallaroo.range_windows(wallaroo.seconds(10))
PATIENCE = 250.0


class Count(Total):
    """Counts the messages of a window, and says when it begins."""

    def output(self, key, count, window):
        return f"{key or 'all'} from {(window.start - NOON) // SECOND}: {count}"


class Numbers:
    """Gives 0, 1, 2, … up to `count`; then it raises."""

    def __init__(self, count):
        self.count = count

    def initial_value(self):
        return 0

    def apply(self, last):
        if last + 1 < self.count:
            return last + 1
        raise ValueError("no more")


@wallaroo.state_computation(name="number", state=Counted)
def number(message, state):
    state.count += 1
    return f"{message} number {state.count}"


def built(port, *pipelines):
    ended = [pipeline.to_sink(sink(port)) for pipeline in pipelines]
    return wallaroo.build_application("app", *ended)


@pytest.fixture
def serve():
    """Serve an application on a clock of the test's, and make sure that it has ended."""
    handles = []

    def start(application, clock, checkpoint=None, record=None, **options):
        options = {"partitions": 2, "stop_timeout": PATIENCE, **options}
        small = {} if record is None else {"log_bytes": 800}  # several files, deleted elsewhere
        own = SparkOptions.given({"checkpoint": checkpoint, "record": record, **small})
        handles.append(Server(application, ServeOptions(**options), own, clock=clock))
        return handles[-1]

    yield start
    for handle in handles:
        handle.stop()
        handle.wait(PATIENCE)


def processed(handle):
    """Wait until all that was received is processed; return the number of batches."""
    eventually(lambda: handle.progress().details["backlog"] == 0, PATIENCE)
    return handle.progress().details["batches"]


def figures(registry):
    """Return the figures, with sources, steps and partitions by name."""
    registry.tick()
    found = snapshot(registry)
    for kind in ("sources", "steps", "partitions"):
        found[kind] = {one["name"]: one for one in found[kind]}
    return found


def written(handle, number):
    eventually(lambda: handle.progress().written == number, PATIENCE)


def stopped(handle):
    handle.stop()
    return handle.wait(PATIENCE)


@shared
def test_time_1_a_tick_comes_when_something_is_due_and_only_then(serve, receiver):
    session()
    clock = Clock()
    silent = source("silent", event_time=time_of, idle_after=wallaroo.seconds(30))
    by_event = source("e", event_time=time_of, idle_after=wallaroo.seconds(2))
    pipelines = [
        source().key_by(first_word).to(TEN_SECONDS.over(Count)),
        by_event.merge(silent).to(TEN_SECONDS.over(type("Merged", (Count,), {}))),
    ]
    handle = serve(built(receiver.port, *pipelines), clock)
    send(handle, "a", "b")
    clock.now += 9 * SECOND
    send(handle, "a")
    clock.now -= 3600 * SECOND
    send(handle, "b")  # it arrives at the time of the one before
    before = processed(handle)
    assert handle.progress().written == 0
    clock.now = NOON + 10 * SECOND
    written(handle, 2)
    assert processed(handle) == before + 1
    send(handle, "x 1", "x 12", to="e")
    before = processed(handle)
    clock.now = NOON + 29 * SECOND  # `e` is idle, and `silent` holds back still
    send(handle, "c")  # nothing but this begins a batch
    assert processed(handle) == before + 1
    clock.now = NOON + 30 * SECOND  # due together: the key c, and what `silent` has held back
    written(handle, 5)
    send(handle, "x 33", to="e")
    processed(handle)
    clock.now += 86_400 * SECOND
    written(handle, 6)
    before = processed(handle)
    clock.now += 86_400 * SECOND
    assert handle.wait(0.3) is None
    assert processed(handle) == before
    assert handle.progress().details["windows"] == 0
    summary = stopped(handle)
    assert (summary.exit_code, summary.open_windows, summary.dead_letters) == (0, 0, {})
    p, e = sorted(receiver.got(2))
    assert p == b"a from 0: 2\nb from 0: 2\nc from 20: 1\n"
    assert e == b"all from 0: 1\nall from 10: 1\nall from 30: 1\n"


def visits_of_the_example(port):
    """The pipeline of `examples/sessions.py`, with a sink at that port whose peer remembers."""
    sessions = load_module(EXAMPLES / "sessions.py").module
    config = wallaroo.TCPSourceConfig(
        "127.0.0.1", 0, sessions.decode_line, event_time=sessions.time_of
    )
    windows = wallaroo.session_windows(sessions.GAP).with_delay(sessions.DELAY)
    return (
        wallaroo.source("Requests", config)
        .key_by(sessions.client_of)
        .to(windows.over(sessions.Visits))
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", port, sessions.encode_visit, resume=True))
    )


@pytest.mark.alone
def test_recover_1_and_sink_9_after_a_kill_state_time_and_streams_go_on(serve, receiver, tmp_path):
    clock, checkpoint, visited = Clock(), tmp_path / "checkpoint", SinkPeer(remembers=True)
    numbers = wallaroo.source("g", wallaroo.GenSourceConfig(Numbers(100)))
    counted = source().key_by(first_word).to(TEN_SECONDS.over(Count))
    numbered = source("n").key_by(first_word).to(number)
    app = wallaroo.build_application(
        "app",
        *(each.to_sink(sink(receiver.port)) for each in (counted, numbers, numbered)),
        visits_of_the_example(visited.address[1]),
    )
    log = list(load_module(EXAMPLES / "access_log.py").module.generate(400, seed=1))
    registry = Registry(app, "spark")
    handle = serve(app, clock, checkpoint, metrics=registry)
    send(handle, *log[:250], to="Requests")
    send(handle, "a", "b", "a")
    send(handle, "x", "y", to="n")
    eventually(lambda: is_idle(handle, checkpoint), PATIENCE)
    before = handle.progress()
    assert (before.dead_letters, before.details["windows"] > 2) == (1, True)
    told = figures(registry)
    assert (told["sources"]["n"]["frames"], told["steps"]["number"]["calls"]) == (2, 2)
    assert (told["partitions"]["number"]["entities"], told["kept"]["restarts"]) == (2, 0)
    windows = told["steps"]["Count"]["windows"]
    assert (windows["open"], windows["busiest"][0]["key"]) == (2, "'a'")
    with socket.create_connection(handle.addresses["p"], timeout=60) as open_still:
        open_still.sendall(b"\0")  # half a header, so nothing that the restart would process
        handle.kill()
        with pytest.raises(ConnectionResetError):
            open_still.recv(1)
    assert handle.wait().problem == "it was killed"
    clock.now += 10 * SECOND
    again = handle.restart()
    assert again.addresses == handle.addresses
    try:
        written(again, 2)  # and nothing of the generator, which has ended
        send(again, "x", to="n")
        processed(again)
        # "x" and "y" have one partition number; of the other nothing is known yet.
        assert figures(registry)["partitions"]["number"]["entities"] is None
        send(again, "z", to="n")
        send(again, *log[250:], to="Requests")
        processed(again)
        told = figures(registry)
        assert (told["sources"]["n"]["frames"], told["partitions"]["number"]["visits"]) == (2, 2)
        assert (told["partitions"]["number"]["entities"], told["kept"]["restarts"]) == (3, 1)
        assert (told["steps"]["Count"]["windows"]["open"], told["backlog"]) == (0, 0)
        summary = stopped(again)
    finally:
        again.kill()
    assert (summary.exit_code, summary.dead_letters) == (0, {})
    assert summary.open_windows == 0  # none is lost: they are in the checkpoint
    lines = sorted(b"".join(receiver.got(6)).decode().splitlines())
    numbered = ["x number 1", "x number 2", "y number 1", "z number 1"]
    assert lines == sorted([*map(str, range(100)), "a from 0: 2", "b from 0: 1", *numbered])
    session = Session(app, start=NOON)
    session.send("Requests", *log)
    assert visited.missing(session.outputs["Requests", 0]) == ""
    assert before.written - 102 > 0
    visited.close()


@shared
def test_time_5_ends_of_stdin_and_of_generators_let_all_windows_fire(serve, reference, tmp_path):
    """And a recording of the run gives the same when it is run again."""
    session()
    told = []
    for engine in ("spark", "reference"):
        out = io.BytesIO()
        timed = {"event_time": time_of, "idle_after": wallaroo.hours(1)}
        windows = TEN_SECONDS.with_slide(wallaroo.seconds(5)).with_late_data_policy("drop")
        lines = source(**timed).key_by(first_word).to(windows.over(Count))
        numbers = wallaroo.source("g", wallaroo.GenSourceConfig(Numbers(100)))
        app = built(1, lines, numbers)
        options = {"stdin": io.BytesIO(b"a 1\nb 2\na 11\na 3\nb 25\n"), "stdout": out}
        if engine == "spark":
            summary = serve(app, Clock(), record=tmp_path / "r", **options).wait(PATIENCE)
        else:
            summary = reference.serve(app, ServeOptions(**options)).wait(PATIENCE)
        assert (summary.exit_code, summary.open_windows, summary.problem) == (0, 0, None)
        told.append((sorted(out.getvalue().splitlines()), summary.late, summary.dead_letters))
    assert told[0] == told[1]
    assert told[0][2] == {("g", None, "raised"): 1}
    assert run_again(app, tmp_path / "r") == told[0]


def run_again(app, directory):
    """Return the outputs, late messages and dead letters of a recording of Spark."""
    assert len(list((directory / "input").glob("*.log"))) > 1
    log, out = RecordedLog(directory), io.BytesIO()
    again = Rerun(app, Input(log, 0, log.following), on_error="skip")
    again.run([Lines(out, None)], lambda: None)
    return sorted(out.getvalue().splitlines()), again.machine.late, again.dead_letters
