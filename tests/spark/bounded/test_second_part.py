"""Graphs, keys, time and windows on Spark: the reference's answers, in batches and at any cut."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

import wallaroo
from wallaroo.engine import Case, TaskFault
from wallaroo.records import End, Frame, Record, Tick, Value
from wallaroo.trace import Trace

pytestmark = pytest.mark.xdist_group("spark")

BAD_TIMES = (None, -1, 1.5, "raise", 2**63)


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return json.loads(payload)


def event_time(message):
    message["seen"] = True
    if message["t"] == "raise":
        raise KeyError("t")
    return message["t"]


@wallaroo.encoder
def encode(message):
    return f"{json.dumps(message)}\n"


@wallaroo.key_extractor
def letter(message):
    message["seen"] = True
    return message["k"]


@wallaroo.key_extractor
def item(message):
    return message["i"]


@wallaroo.computation_multi(name="three")
def three(message):
    return [{**message, "i": 0}, None, {**message, "i": 2}]


@wallaroo.computation(name="plain")
def plain(message):
    return {**message, "i": 7}


class Numbers:
    def __init__(self):
        self.count = 0


@wallaroo.state_computation(name="first", state=Numbers)
def first(message, numbers):
    numbers.count += 1
    if message["k"] == "bad":
        raise ValueError(message)
    return {**message, "first": numbers.count}


@wallaroo.state_computation_multi(name="second", state=Numbers, state_name="first")
def second(message, numbers):
    numbers.count += 10
    return None if message["i"] else [{**message, "second": numbers.count}]


@wallaroo.state_computation(name="fading", state=Numbers, expire_after=20)
def fading(message, numbers):
    numbers.count += 1
    if message["k"] == "bad":
        raise ValueError(message)
    return {**message, "fading": numbers.count}


@wallaroo.state_computation(name="counting", state=Numbers)
def counting(message, numbers):
    numbers.count += 1
    if numbers.count % 3 == 0:
        raise ValueError(message)
    return {**message, "counted": numbers.count}


class Generates:
    def initial_value(self):
        return {"k": "g", "t": 1}

    def apply(self, last):
        return None


def tcp(**timed):
    return wallaroo.TCPSourceConfig("127.0.0.1", 0, decode, **timed)


def sink():
    return wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)


def graph():
    """A generator merged into two branches of one source, with one state for both sides."""
    left = wallaroo.source("left", tcp(event_time=event_time))
    right = wallaroo.source("right", wallaroo.GenSourceConfig(Generates()))
    several = left.to(three).key_by(letter).to(first)
    one = left.merge(right).to(plain).key_by(letter)
    whole = several.merge(one).key_by(item).to(second)
    return wallaroo.build_application(
        "graph", one.to_sink(sink()), whole.collect().to_sinks([sink(), sink()])
    )


def fades():
    pipeline = wallaroo.source("left", tcp()).key_by(letter).to(fading)
    return wallaroo.build_application("fades", pipeline.to_sink(sink()))


class Listed:
    def __init__(self, name):
        self._name = name

    def name(self):
        return self._name

    def initial_accumulator(self):
        return []

    def update(self, message, accumulator):
        if message["t"] == 13:
            raise ValueError("unlucky")
        accumulator.append(message["t"])

    def combine(self, earlier, later):
        if len(later) > 4:
            raise ValueError("too much")
        return earlier + later

    def output(self, key, accumulator, window):
        if len(accumulator) == 5:
            raise ValueError("five")
        bounds = [window.start, window.end]
        return {"k": key, "t": window.start, "i": 0, "all": accumulator, "window": bounds}


class Large(Listed):
    def output(self, key, accumulator, window):
        if len(accumulator) < 6:
            raise ValueError("few")
        return super().output(key, accumulator, window)


def windows(policy, late="dead-letter"):
    """Windows of every kind, chained and merged; the state before them is that behind them."""
    left = wallaroo.source("left", tcp(event_time=event_time, idle_after=30))
    right = wallaroo.source("right", wallaroo.GenSourceConfig(Generates()))
    both = left.merge(right).key_by(letter).to(first)
    slides = wallaroo.range_windows(12).with_slide(4).with_delay(2).with_late_data_policy(policy)
    gaps = wallaroo.session_windows(3).with_delay(1).with_late_data_policy(late)
    counts = wallaroo.count_windows(3).with_timeout(25)
    sliding = both.to(slides.over(Listed("slides")))
    chained = sliding.to(second).to(counts.over(Listed("counts")))
    tumbling = chained.collect().to(wallaroo.range_windows(50).over(Listed("tumbles")))
    sessions = both.to(gaps.over(Listed("gaps")))
    ends = [one.to_sink(sink()) for one in (sliding, chained, tumbling, sessions)]
    return wallaroo.build_application("windows", *ends)


def chained():
    """Window steps in a row, with keys of their own: each is spread over shards."""
    timed = wallaroo.source("left", tcp(event_time=event_time)).to(three).key_by(letter)
    slides = timed.to(wallaroo.range_windows(12).with_slide(4).over(Large("slides")))
    tumbling = slides.key_by(item).to(wallaroo.range_windows(8).with_delay(9).over(Listed("all")))
    counted = tumbling.key_by(letter).to(counting)
    gaps = timed.to(wallaroo.session_windows(3).over(Large("gaps"))).to(plain)
    ends = [one.to_sink(sink()) for one in (slides, counted, gaps)]
    return wallaroo.build_application("chained", *ends)


def log(seed, *generators) -> list[Record]:
    """Return records of source ``left``, and of generators, with ticks and an end."""
    draw = random.Random(seed)
    records: list[Record] = []
    at = 0
    for _ in range(40):
        at += draw.choice((0, 0, 1, 3, 25))
        message = {"k": draw.choice(("a", "b", "bad", 3)), "t": draw.randrange(50)}
        if draw.random() < 0.1:
            message["t"] = draw.choice(BAD_TIMES)
        if draw.random() < 0.1:
            records.append(Tick(at))
        elif generators and draw.random() < 0.3:
            records.append(Value(generators[0], message, at))
        else:
            records.append(Frame("left", json.dumps(message).encode(), at))
    return [*records, *[End(name, at, "ValueError", "it failed") for name in generators]]


def cases(application, *generators, seed=1):
    """Return a log of the application with and without cuts, partitions, and a stop."""
    case = Case(application, log(seed, *generators), options={"segment_bytes": 60})
    return [
        case,
        replace(case, batches=(1, 0, 17), partitions=3),
        replace(case, batches=(20,), isolation="isolated", on_error="stop"),
        replace(case, on_error="stop", partitions=2),
    ]


def serialize(value):
    if value == "secret":
        raise ValueError("not that one")
    return json.dumps(vars(value) if isinstance(value, Numbers) else value).encode()


def deserialize(blob):
    value = json.loads(blob)
    if isinstance(value, dict) and "count" in value and len(value) == 1:
        numbers = Numbers()
        numbers.count = value["count"]
        return numbers
    return value


CODEC = wallaroo.topology.Codec(serialize, deserialize)


def cases_with_a_codec():
    coded = replace(graph(), codec=CODEC)
    return [
        *cases(coded, "right"),
        *cases(replace(windows("drop"), codec=CODEC), "right"),
        Case(coded, [Frame("left", b'"secret"'), Value("right", object, 1)]),
    ]


def cases_with_windows():
    dropping = cases(windows("drop", "fire-per-message"), "right", seed=0)
    ended = [*dropping[0].records, End("left", 10**6)]
    return [
        *dropping,
        *cases(windows("place-in-oldest-window"), "right"),
        replace(dropping[0], input_log=ended, batches=(3, 17)),
    ]


def cases_with_windows_in_a_row():
    """The end lets windows of all keys fire in one turn; the output of some raises."""
    whole = cases(chained(), seed=2)
    return [replace(one, input_log=[*one.records, End("left", 10**6)]) for one in whole]


APPLICATIONS = {
    "graphs": lambda: cases(graph(), "right"),
    "states that expire": lambda: cases(fades()),
    "windows": cases_with_windows,
    "windows in a row": cases_with_windows_in_a_row,
    "a codec": cases_with_a_codec,
}


@pytest.fixture(scope="module")
def traces(spark_engine):
    """All cases with their traces, by the name of what they are about; run in one job."""
    named = [(name, case) for name, make in APPLICATIONS.items() for case in make()]
    found: dict[str, list[tuple[Case, Trace]]] = {name: [] for name in APPLICATIONS}
    made = spark_engine.run_many([case for _, case in named])
    for (name, case), trace in zip(named, made, strict=True):
        found[name].append((case, trace))
    return found


@pytest.mark.parametrize("name", APPLICATIONS)
def test_order_2_the_second_part(traces, reference, name):
    for case, found in traces[name]:
        assert found.comparable() == reference.run(case).comparable(), case


def test_recover_1_windows_when_tasks_die(spark_engine, reference):
    faults = (TaskFault(batch=0, stage=1), TaskFault(batch=1, stage=2, attempts=2))
    case = cases(windows("dead-letter"), "right")[1]
    found = spark_engine.run(replace(case, faults=faults))
    assert found.comparable() == reference.run(case).comparable()
