"""A live run's figures are those that are known from outside."""

import socket
import threading
import time

import pytest
from counted import Count, line, number, text, whole
from ports import free_port
from receiving import eventually, read_all
from served import BOTH
from small_steps import words

import wallaroo
from wallaroo.frames import frames
from wallaroo.keys import partition_number
from wallaroo.metrics.probes import Probes
from wallaroo.metrics.registry import Registry
from wallaroo.metrics.snapshot import snapshot
from wallaroo.transport.input_log import InputLog, InputLogFullError


@wallaroo.computation(name="whole numbers")
def numbers(message):
    return int(message)


@wallaroo.computation(name="slow")
def slow(message):
    time.sleep(0.005)
    return message


@pytest.fixture
def start(receiver, serve):
    """Serve an application with figures; sends frames to its only source."""
    runs = []

    def start(builder, isolation="trusting", port=None, on_followed=None, **options):
        application = builder.to_sink(
            wallaroo.TCPSinkConfig("127.0.0.1", port or receiver.port, line)
        ).build()
        registry = Registry(application, "reference", partitions=options.get("partitions", 1))
        registry.on_followed = on_followed
        handle = serve(application, isolation=isolation, metrics=registry, **options)
        runs.append(Run(handle, registry))
        return runs[-1]

    yield start
    for run in runs:
        run.end()


class Run:
    def __init__(self, handle, registry):
        self.handle = handle
        self.registry = registry
        self.sock = socket.create_connection(next(iter(handle.addresses.values())))

    def send(self, payloads):
        self.sock.sendall(frames(payloads))

    def end(self):
        self.sock.close()
        self.handle.stop()
        summary = self.handle.wait(60)
        return summary, self.figures()

    def until(self, shows):
        """Wait until the figures show something; the time is pytest's to bound."""
        while not shows(self.figures()):
            time.sleep(0.01)

    def figures(self):
        self.registry.tick()
        return snapshot(self.registry)


def builder(*steps):
    made = wallaroo.ApplicationBuilder("app").new_pipeline(
        "p", wallaroo.TCPSourceConfig("127.0.0.1", 0, text)
    )
    for step in steps:
        made = step(made)
    return made


def of(figures, kind, name):
    (found,) = [one for one in figures[kind] if one["name"] == name]
    return found


@BOTH
def test_counts_are_those_that_were_sent_received_and_failed(start, receiver, isolation):
    run = start(
        builder(
            lambda b: b.to(words),
            lambda b: b.to(numbers),
            lambda b: b.to_state_partition(number, Count, "counts", whole),
        ),
        isolation,
    )
    payloads = [b"1 2 3", b"1 x", b"\xff", b"", b"1 1 y 7"]
    run.send(payloads)
    summary, figures = run.end()
    assert summary.exit_code == 0
    source, sink = of(figures, "sources", "p"), of(figures, "sinks", "p/0")
    assert (source["frames"], source["bytes"]) == (5, len(frames(payloads)))
    assert source["dead_letters"] == {"decode": 1}
    assert source["sent"] == 4
    assert of(figures, "steps", "words")["received"] == 4
    assert of(figures, "steps", "words")["sent"] == 9
    assert of(figures, "steps", "whole numbers")["received"] == 9
    assert of(figures, "steps", "whole numbers")["sent"] == 7
    assert of(figures, "steps", "whole numbers")["dead_letters"] == {"raised": 2}
    assert of(figures, "steps", "number")["calls"] == 7
    assert sink["written"] == 7
    assert sink["bytes"] == len(receiver.data) == 7 * 4
    assert figures["dead_letters"] == 3
    assert [letter["reason"] for letter in figures["last_dead_letters"]] == [
        "raised",
        "decode",
        "raised",
    ]
    (partition,) = figures["partitions"]
    assert (partition["entities"], partition["visits"]) == (4, 7)
    assert partition["busiest"][0] == {"key": "1", "number": 0, "visits": 4, "share": 4 / 7}
    assert partition["visits_by_number"] == {0: 7}
    assert (partition["numbers"], partition["skew"]) == (1, None)
    assert not figures["sampling"]["estimate"]


class Lasts:
    """Gives a window's last message on."""

    def initial_accumulator(self):
        return None

    def update(self, message, last):
        return message

    def output(self, key, last):
        return last


@BOTH
def test_windows_show_for_which_keys_messages_come(start, isolation):
    each, never = wallaroo.count_windows(1), wallaroo.range_windows(wallaroo.days(40_000))
    run = start(
        builder(
            lambda b: b.to_window(each.over(Lasts()), whole),
            lambda b: b.to_window(never.over(Lasts()), whole, "never"),
        ),
        isolation,
        partitions=2,
    )
    run.send([b"a", b"b", b"a", b"a"])
    _, figures = run.end()
    at = partition_number("a", 2)
    for step in figures["steps"]:
        keys = step["windows"]
        hottest = {"key": "'a'", "number": at, "visits": 3, "share": 3 / 4}
        assert keys["busiest"][0] == hottest
        assert keys["visits_by_number"][at] >= 3
        assert keys["busiest_numbers"][0]["busiest"][0] == hottest


@BOTH
def test_a_step_that_sleeps_shows_how_long(start, isolation):
    began = time.monotonic()
    run = start(builder(lambda b: b.to(slow)), isolation)
    run.send([b"a"] * 20)
    run.until(lambda figures: of(figures, "sources", "p")["latency"]["whole"]["max"])
    _, figures = run.end()
    step = of(figures, "steps", "slow")
    assert step["time"]["count"] == 20
    assert step["time"]["p50"] >= 0.005 * 0.99
    assert step["seconds"] >= 20 * 0.005
    assert step["seconds"] <= run.registry.busy_seconds <= time.monotonic() - began
    assert step["seconds"] > 10 * of(figures, "sources", "p")["seconds"]
    # What arrived with it waited for those before.
    assert of(figures, "sources", "p")["latency"]["whole"]["max"] >= 20 * 0.005 * 0.99


def test_a_stalled_sink_shows_it_and_then_how_long_it_took(start):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        run = start(builder(), port=listener.getsockname()[1])
        peer, _ = listener.accept()
        sender = threading.Thread(target=run.send, args=([b"x" * 100_000] * 400,))
        sender.start()
        eventually(lambda: run.figures()["sinks"][0]["full"])
        figures = run.figures()
        assert not figures["ready"]
        assert figures["not_ready"][0].startswith("sources are not read: sink p/0 is slow")
        assert figures["verdict"]["level"] == "bad"
        assert "sources are held back" in figures["verdict"]["text"]
        assert figures["sources"][0]["backlog"] == figures["backlog"]
        stalled = time.monotonic()
        time.sleep(0.3)
        stall = time.monotonic() - stalled
        reader = threading.Thread(target=read_all, args=(peer,))
        reader.start()
        sender.join()
        eventually(lambda: run.figures()["sinks"][0]["written"] == 400)
        _, figures = run.end()
        reader.join()
        peer.close()
    sink = of(figures, "sinks", "p/0")
    assert figures["sources"][0]["backlog"] == figures["backlog"] == 0
    assert sink["written"] == 400
    assert sink["latency"]["whole"]["max"] >= stall
    assert sink["latency"]["whole"]["count"] == 400


def test_a_disk_that_takes_nothing_is_why_sources_are_not_read(start, tmp_path, monkeypatch):
    full = threading.Event()
    full.set()
    append = InputLog.append

    def appended(self, *arguments):
        if full.is_set():
            raise InputLogFullError("no room")
        return append(self, *arguments)

    monkeypatch.setattr(InputLog, "append", appended)
    run = start(builder(), options={"checkpoint": tmp_path / "c"})
    run.send([b"a"])
    why = "the disk does not take the input log"
    eventually(lambda: run.figures()["not_ready"] == [f"sources are not read: {why}"])
    # Until the sink has its connection, the verdict says that.
    eventually(lambda: run.figures()["verdict"]["text"] == f"Sources are held back: {why}.")
    full.clear()
    eventually(lambda: run.figures()["ready"])
    eventually(lambda: run.figures()["sinks"][0]["written"] == 1)


def test_a_sink_that_is_away_is_named(start):
    port = free_port()
    run = start(builder(), port=port, stop_timeout=0.1)
    run.send([b"x"])
    eventually(lambda: run.figures()["sinks"][0]["waiting"] == 1)
    verdict = run.figures()["verdict"]
    assert verdict["text"] == (
        f"Sink p/0 is away: nobody listens at 127.0.0.1:{port}; 1 output waits."
    )
    assert run.figures()["sinks"][0]["waiting_for"] > 0
    run.registry.tick()
    assert run.registry.lines.last()["values"]["latency max"] > 0


def test_what_is_not_looked_at_is_represented_by_what_is(start, receiver, monkeypatch):
    looks = []

    def seldom(self, source, records):
        looks.append(records)
        self._credit = 1e9 if len(looks) % 3 == 1 else -1e9
        return look(self, source, records)

    look = Probes.should_look
    monkeypatch.setattr("wallaroo.metrics.probes.Probes.should_look", seldom)
    run = start(builder(lambda b: b.to(words)))
    for sent in range(1, 31):
        run.send([b"a b c d"])
        eventually(lambda sent=sent: len(looks) == sent)
    eventually(lambda: of(run.figures(), "steps", "words")["calls"] == 30)  # the last two as well
    _, figures = run.end()
    assert figures["sampling"] == {"looked_at": 10, "left_out": 20, "estimate": True}
    assert of(figures, "steps", "words")["sent"] == 120
    assert figures["sinks"][0]["written"] == 120  # exact, whatever is looked at
    assert len(receiver.data) == 240


def test_without_figures_nothing_is_measured(receiver, serve):
    application = (
        builder(lambda b: b.to(words))
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", receiver.port, line))
        .build()
    )
    handle = serve(application)
    assert type(handle._run.machine).__name__ == "Compiled"
    assert handle._run.feeder.watch is None


@BOTH
def test_with_a_checkpoint_figures_are_right_before_and_after_a_restart(
    start, receiver, isolation, tmp_path
):
    def run():
        steps = (
            lambda p: p.to(slow),
            lambda p: p.to_state_partition(number, Count, "counts", whole),
        )
        own = {"checkpoint": tmp_path / "c", "checkpoint_interval": 0.01}
        return start(builder(*steps), isolation, options=own)

    first = run()
    first.send([b"a", b"b", b"a"])
    first.until(lambda found: of(found, "sources", "p")["latency"]["whole"]["count"] == 3)
    first.until(lambda found: found["kept"]["checkpoint_written"] is not None)
    found = first.figures()
    took = of(found, "sources", "p")["latency"]["whole"]
    assert took["max"] >= 0.005
    assert found["kept"]["log_written"] <= found["time"]
    assert found["kept"]["checkpoint_bytes"] > 1000
    assert found["kept"]["restarts"] == 0
    first.end()
    second = run()
    second.send([b"a", b"\xff"])
    second.until(lambda found: of(found, "sinks", "p/0")["latency"]["whole"]["count"] == 1)
    second.until(lambda found: of(found, "sinks", "p/0")["calls"] == 1)
    found = second.figures()
    assert found["kept"]["restarts"] == 1
    assert (found["backlog"], found["dead_letters"]) == (0, 1)
    assert of(found, "sources", "p")["frames"] == 2
    assert found["partitions"][0]["entities"] == 2
    assert of(found, "sinks", "p/0")["written"] == 1
    assert of(found, "steps", "slow")["time"]["p50"] >= 0.005 * 0.99
    eventually(lambda: receiver.so_far == [b"a 1\nb 1\na 2\n", b"a 3\n"])


@BOTH
def test_records_of_a_source_without_headers_are_followed(start, isolation):
    followed = []
    run = start(builder(), isolation, on_followed=followed.append)
    run.send([b"a", b"b"])
    eventually(lambda: run.figures() and followed)
    assert (followed[0].source, followed[0].sequence, followed[0].context) == ("p", 0, ())
    assert run.end()[0].exit_code == 0
