"""How it goes, in a sentence: the sentence names what is in the way."""

import math

import pytest
from builder_parts import sink, source
from small_windows import Total

import wallaroo
from wallaroo.metrics.figures import DISK_IS_FULL, LOG_IS_FULL, TopicPlace
from wallaroo.metrics.registry import Registry
from wallaroo.metrics.snapshot import snapshot
from wallaroo.metrics.verdict import duration, not_ready
from wallaroo.monitor.text import as_lines
from wallaroo.trace import DeadLetter, Reason


@wallaroo.computation(name="look up")
def look_up(message):
    return message


@wallaroo.computation(name="show")
def show(message):
    return message


LETTER = DeadLetter((1,), "orders", "orders", "look up", 0, None, None, Reason.RAISED, "E", "", b"")


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def registry(clock):
    pipeline = wallaroo.source("orders", source())
    windows = wallaroo.range_windows(wallaroo.seconds(1)).over(Total)
    pipeline = pipeline.to(look_up).to(windows).to_sink(sink())
    application = wallaroo.build_application("app", pipeline)
    registry = Registry(application, "reference", clock=clock, monotonic=clock)
    registry.state = "running"
    registry.thread = 1
    registry.sinks["orders", 0].connected = True
    registry.tick()
    return registry


@pytest.fixture
def said(registry, clock):
    """The sentence, after a second in which so many frames came."""

    def said(frames=1000):
        clock.now += 1
        registry.sources["orders"].frames += frames
        registry.tick()
        found = snapshot(registry)["verdict"]
        node = found["node"]
        kind = None if node is None else type(registry.application.nodes[node]).__name__
        return found["level"], found["text"], kind

    return said


def test_all_is_well(registry, said):
    assert said(0) == ("good", "It waits for its first message.", None)
    registry.busy_seconds += 0.5
    level, text, _ = said(1000)
    assert (level, text) == (
        "good",
        "It keeps up with 500 messages a second, and is busy for 25% of the time.",
    )


def test_what_waits_is_told_when_nothing_comes(registry, said):
    registry.thread, registry.backlog, registry.processed = None, 5_000, 300
    text = "Nothing comes now; 5,000 messages wait, and 300 a second are processed."
    assert said(0) == ("good", text, None)


@pytest.mark.parametrize("frames", [0, 1000])
@pytest.mark.parametrize("thread", [None, 1])
def test_it_is_not_good_when_messages_wait_and_none_is_processed(
    registry, said, clock, frames, thread
):
    registry.thread, registry.backlog, registry.processed = thread, 6_000, 300
    said(frames)
    clock.now += 10
    text = "Nothing was processed for 11 s, and 6,000 messages wait."
    assert said(frames) == ("warning", text, None)
    clock.now += 266 * 86400
    text = "Nothing was processed for 266 days, and 6,000 messages wait."
    assert said(frames) == ("bad", text, None)
    registry.processed += 1
    assert "Nothing was processed" not in said(frames)[1]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (2.5e-9, "2.5 ns"),
        (0.0123, "12.3 ms"),
        (119, "119 s"),
        (200, "3 min 20 s"),
        (7200, "2 h"),
        (9000, "2 h 30 min"),
        (2.3e7, "266 days"),
        (-200, "-3 min 20 s"),
    ],
)
def test_durations_are_in_the_units_of_people(seconds, text):
    assert duration(seconds) == text


def test_two_steps_of_one_name_are_told_apart():
    builder = wallaroo.ApplicationBuilder("app")
    builder.new_pipeline("orders", source()).to(look_up).to(look_up).to(show).to_sink(sink())
    builder.new_pipeline("offers", source()).to(look_up).to_sink(sink())
    application = builder.build()
    registry = Registry(application, "reference")
    registry.state = "running"
    figures = snapshot(registry)
    labels = [one["label"] for one in figures["steps"]]
    assert sorted(labels) == [
        "look up (of offers)",
        "look up (step 1 of orders)",
        "look up (step 2 of orders)",
        "show",
    ]
    assert all(any(label in line for line in as_lines(figures)) for label in labels)


def test_a_full_sink_holds_sources_back(registry, said):
    sink = registry.sinks["orders", 0]
    sink.full, sink.waiting = True, 12_400
    sink.oldest = registry.monotonic() - 2
    assert said() == (
        "bad",
        "Sink orders/0 is slow; 12,400 outputs wait, the oldest for 3 s; sources are held back.",
        "Sink",
    )


def test_a_sink_that_takes_nothing_is_named_however_few_outputs_wait(registry, said):
    sink = registry.sinks["orders", 0]
    sink.waiting, sink.oldest = 3, registry.monotonic() - 6
    text = "Sink orders/0 is slow: 3 outputs wait, the oldest for 7 s."
    assert said() == ("warning", text, "Sink")
    sink.written += 2
    assert "It keeps up" in said()[1]
    assert not_ready(registry) == []


def test_a_sink_for_which_the_input_log_is_full_is_why_sources_are_not_read(registry, said):
    sink = registry.sinks["orders", 0]
    sink.waiting, sink.oldest = 3, registry.monotonic() - 2
    registry.held_back = LOG_IS_FULL
    assert said()[:2] == (
        "bad",
        "Sink orders/0 is slow; 3 outputs wait, the oldest for 3 s; sources are held back.",
    )
    assert not_ready(registry) == [
        "sources are not read: sink orders/0 is slow, and 3 outputs wait for it"
    ]


def test_a_sink_is_not_blamed_for_a_disk_that_takes_nothing(registry):
    sink = registry.sinks["orders", 0]
    sink.waiting, sink.oldest = 3, registry.monotonic() - 2
    registry.held_back = DISK_IS_FULL
    assert not_ready(registry) == [f"sources are not read: {DISK_IS_FULL}"]


def test_a_log_that_is_full_is_told(registry, said):
    registry.held_back, registry.backlog = LOG_IS_FULL, 70
    registry.sinks["orders", 0].waiting = 3  # it was given them just now
    registry.sinks["orders", 0].oldest = registry.monotonic() + 1
    text = "Sources are held back: the input log is full. 70 messages wait."
    assert said() == ("warning", text, None)
    assert not_ready(registry) == ["sources are not read: the input log is full"]


def test_the_slowest_step_is_named_when_there_is_no_time_left(registry, said):
    registry.busy_seconds += 0.95
    registry.nodes[1].time.add([5_000_000] * 170)
    registry.backlog = 300
    assert said() == (
        "warning",
        "Step look up is the slowest: it takes 85% of the time, 5 ms a message. 300 messages wait.",
        "Step",
    )
    registry.left_out = 1
    assert "it takes about " in snapshot(registry)["verdict"]["text"]


def test_failing_messages_are_told(registry, said):
    registry.add_dead_letters([LETTER] * 100)
    assert said(1000) == (
        "bad",
        "Messages fail at step look up (raised): 100.0 dead letters a second, of 1,000 frames.",
        "Step",
    )


def test_failing_messages_are_told_before_what_is_only_slow(registry, said):
    registry.busy_seconds += 0.95
    registry.nodes[1].time.add([5_000_000] * 170)
    registry.add_dead_letters([LETTER] * 100)
    assert said(1000)[1].startswith("Messages fail at step look up (raised): ")


def test_a_source_that_holds_windows_back_is_named(registry, said):
    windows = registry.windows[2]
    windows.open, windows.held_by = 3, "orders"
    windows.note_times(1_000_000_000, 5)
    windows.note_times(41_000_000_000, 5)
    level, text, kind = said()
    assert (level, kind) == ("warning", "Step")
    assert text.startswith(
        "The windows of Total wait for source orders: their watermark has not moved for 40 s."
    )
    registry.sources["orders"].silent = (1, 2)
    assert "wait for partitions 1 and 2 of source orders: their watermark" in said()[1]


def test_a_watermark_stands_from_the_first_record_on(registry):
    windows = registry.windows[2]
    windows.note_times(0, -math.inf)
    windows.note_times(1_700_000_000_000_000_000, -math.inf)
    assert windows.stands == 0


def test_what_is_left_of_a_topic_is_told_with_the_time_that_it_takes(registry, said):
    registry.sources["orders"].places = {0: TopicPlace(10, 40_010), 1: TopicPlace(7, None)}
    level, text, kind = said(1000)
    assert (level, kind) == ("warning", "Source")
    assert text == (
        "Source orders is 40,000 records behind the end of its topic; at 1,000 a second it reads "
        "them in 40 s."
    )


def test_an_engine_whose_threads_are_elsewhere_may_not_keep_up(registry, said):
    registry.thread = None
    registry.backlog, registry.processed = 5_000, 200
    registry.phases = {"addBatch": 0.25, "walCommit": 0.03, "triggerExecution": 0.3}
    assert said(1000)[:2] == (
        "warning",
        "It processes 200 of 1,000 messages a second, and 5,000 wait. "
        "Of a micro-batch, addBatch takes most: 250 ms.",
    )
