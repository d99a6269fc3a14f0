"""Kafka sources and sinks in tests: no broker, records in, what would be sent out."""

import pytest
from small_steps import record
from small_topics import counted_by_timestamps, in_decimal
from small_windows import Total

import wallaroo
from wallaroo import KafkaRecord, testing
from wallaroo.errors import WallarooParameterError
from wallaroo.records import Assigned, Consumed, End, Unused
from wallaroo.testing.input import input_log_of


@wallaroo.encoder
def as_text(record):
    return f"{record.topic} {record.partition} {record.offset}", record.key


def application(**how):
    source = wallaroo.KafkaSourceConfig("in", "h:1", record, **how)
    sink = wallaroo.KafkaSinkConfig("out", "h:1", as_text)
    return wallaroo.build_application("a", wallaroo.source("s", source).to_sink(sink))


def log(given, **how):
    return input_log_of(application(**how), given, end=False)


def in_short(records):
    """A record as its partition and offset, unused numbers as a count, the rest as it is."""
    return [
        (one.record.partition, one.record.offset)
        if isinstance(one, Consumed)
        else one.numbers
        if isinstance(one, Unused)
        else ("end", one.partition)
        if isinstance(one, End)
        else [part for part, _, _ in one.partitions]
        for one in records
    ]


def at(partition, offset=-1):
    return KafkaRecord(b"", partition=partition, offset=offset)


def test_offsets_and_the_topic_are_filled_in_and_outputs_have_keys():
    given = {"s": [b"x", KafkaRecord(b"y", b"k", partition=1), KafkaRecord(b"z", topic="t")]}
    result = testing.run(application(), given)
    assert [(one.value, one.key) for one in result.output] == [
        (b"in 0 0", None),
        (b"in 1 0", b"k"),
        (b"t 0 1", None),
    ]
    assert [one.number for one in result.output] == [1, 2, 3]
    assert repr(result).splitlines()[2] == "  b'in 1 0', key b'k', at 0 ms, for record 2"


@pytest.mark.parametrize(
    ("given", "how", "expected"),
    [
        ({"s": [at(1), at(0), at(1)]}, {}, [[0, 1], (1, 0), (0, 0), (1, 1)]),
        ({"s": [at(0, 5), at(0, 9)]}, {}, [[0], (0, 5), 3, (0, 9)]),  # holes (kafka-1)
        ({"s": []}, {"partitions": [2, 0]}, [[0, 2]]),
        ([("s", at(0)), ("s", at(1))], {}, [[0, 1], (0, 0), (1, 0)]),
        (
            [Assigned("s", ((0, 0, None),)), Consumed("s", at(0)), Consumed("s", at(4))],
            {},
            [[0], (0, 0), [4], (4, 0)],  # an added partition (kafka-6)
        ),
        ({"s": [at(0, 1)]}, {"partitions": [0], "until": "end"}, [
            [0], (0, 1), ("end", 0), ("end", None)
        ]),
        ({"s": [at(1)]}, {"partitions": [0, 1], "until": "end"}, [
            [0, 1], ("end", 0), (1, 0), ("end", 1), ("end", None)
        ]),
    ],
)  # fmt: skip
def test_the_log_of_a_test_is_that_of_a_run(given, how, expected):
    assert in_short(log(given, **how)) == expected


def test_a_bounded_read_takes_a_thousand_offsets_of_each_partition_in_turn():
    """kafka-10: the order is known from offsets alone; offsets without a record count."""
    records = [at(1, offset) for offset in (0, 999, 1000, 2500)] + [at(0, 0), at(0, 1200)]
    taken = in_short(log({"s": records}, until="end"))
    assert taken == [
        [0, 1],
        *[(0, 0), 999],
        *[(1, 0), 998, (1, 999)],
        *[200, (0, 1200), ("end", 0)],
        *[(1, 1000), 999],
        *[500, (1, 2500), ("end", 1)],
        ("end", None),
    ]


@pytest.mark.parametrize(
    ("records", "how", "said"),
    [
        ([at(0, 3), at(0, 3)], {}, "partition 0 has the offset 3, and one before it has 3"),
        ([at(2)], {"partitions": [0, 1]}, "reads the partitions 0, 1, and a record is in partit"),
        (["x"], {}, "a record of Kafka is a wallaroo.KafkaRecord, or its value as bytes, not str"),
    ],
)
def test_what_no_topic_can_hold_is_refused(records, how, said):
    with pytest.raises(WallarooParameterError, match=said):
        log({"s": records}, **how)


def of(partition, seconds):
    return KafkaRecord(b"", timestamp=wallaroo.seconds(seconds), partition=partition)


@pytest.mark.parametrize("isolation", ["isolated", "trusting"])
class TestPartitionsAreSourcesOfTheirOwn:
    """kafka-9: the watermark of a Kafka source is the least of its partitions'."""

    def session(self, isolation, **how):
        return testing.Session(counted_by_timestamps(**how), isolation=isolation)

    def test_one_that_was_assigned_and_gives_nothing_holds_back(self, isolation):
        session = self.session(isolation, idle_after=wallaroo.seconds(5))
        session.assign("s", 0, 1)
        session.send("s", of(0, 1), of(0, 30))
        assert session.output == []
        assert session.open_windows
        session.advance(wallaroo.seconds(4))
        session.send("s", of(0, 31))
        assert session.output == []
        session.advance(wallaroo.seconds(1))
        assert [one.value for one in session.output] == [b"1"]

    def test_one_that_falls_silent_runs_on_alone(self, isolation):
        session = self.session(isolation, idle_after=wallaroo.seconds(5))
        session.send("s", of(0, 1), of(1, 8))
        session.advance(wallaroo.seconds(3))
        session.send("s", of(0, 20))
        session.advance(wallaroo.seconds(2))
        assert [one.value for one in session.output] == [b"2"]


@pytest.mark.parametrize("isolation", ["isolated", "trusting"])
def test_without_event_times_partitions_do_not_matter(isolation):
    """time-3: the watermark is the arrival time; outputs have it as their timestamp."""
    step = wallaroo.range_windows(wallaroo.seconds(10)).over(Total)
    source = wallaroo.KafkaSourceConfig("in", "h:1", record)
    sinks = [wallaroo.KafkaSinkConfig("out", "h:1", in_decimal)]
    application = wallaroo.build_application(
        "w", wallaroo.source("s", source).to(step).to_sinks(sinks)
    )
    session = testing.Session(application, start=wallaroo.seconds(3), isolation=isolation)
    session.assign("s", 0, 1, 2)
    session.send("s", of(2, 99))
    session.advance(wallaroo.seconds(7))
    assert [(one.value, one.timestamp) for one in session.output] == [(b"1", 9_999)]
