"""Rules of Kafka that need no broker, on both machines (kafka-2, kafka-7, kafka-13)."""

from __future__ import annotations

import pytest
from small_steps import Values, record
from small_topics import SECOND, counted_by_timestamps
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.machine import process
from wallaroo_reference.replay.describing import steps_json, steps_lines
from wallaroo_reference.replay.steps import Steps

import wallaroo
from wallaroo import KafkaOutput, KafkaRecord, testing
from wallaroo.kafka_records import Produced
from wallaroo.records import Assigned, Consumed, Record
from wallaroo.trace import Trace


@wallaroo.encoder
def as_text(message):
    return repr(message), "key"


# -- decoders (kafka-7) ----------------------------------------------------------------------------


def bounded(decoder, encoder, **how):
    source = wallaroo.KafkaSourceConfig("in", "h:1", decoder, **how.pop("source", {}))
    sink = wallaroo.KafkaSinkConfig("out", "h:1", encoder, **how)
    return wallaroo.build_application("b", wallaroo.source("s", source).to_sink(sink))


@wallaroo.encoder
def value_and_key(record):
    return record.value, record.key


def both(application, records):
    """What both machines make of records; they agree, and JSON holds it."""
    results = [
        testing.run(application, {"s": records}, isolation=mode)
        for mode in ("isolated", "trusting")
    ]
    traces = [result.trace.comparable() for result in results]
    assert traces[0] == traces[1]
    assert [letter.error for letter in results[0].dead_letters] == [
        letter.error for letter in results[1].dead_letters
    ]
    trace = results[0].trace
    assert Trace.from_json(trace.to_json()) == trace
    return results[0]


@wallaroo.kafka_decoder
def refused(record):
    raise ValueError(record.key)


def test_a_dead_letter_has_the_value_as_its_payload():
    records = [KafkaRecord(b"v", b"bad"), KafkaRecord(None, b"bad")]
    letters = both(bounded(refused, as_text), records).dead_letters
    assert [(letter.lineage, letter.reason, letter.payload) for letter in letters] == [
        ((1,), "decode", b"v"),
        ((2,), "decode", None),
    ]


# -- time (kafka-9) --------------------------------------------------------------------------------


def test_time_5_when_a_source_ends_so_do_all_its_partitions():
    times = [(0, 3), (1, 14), (0, 25), (1, 16)]  # partitions, event times in seconds
    given = [KafkaRecord(b"", timestamp=time * SECOND, partition=part) for part, time in times]
    assert [one.value for one in both(counted_by_timestamps(), given).output] == [b"1", b"2", b"1"]


# -- what an encoder returns (kafka-13) ------------------------------------------------------------


def sent(result, **how):
    """What is sent for an encoder's result, or the error of the dead letter."""

    @wallaroo.encoder
    def encode(_):
        return result

    done = both(bounded(Values, encode, **how), [b""])
    (letter,) = done.dead_letters or [None]
    if letter is not None:
        assert (letter.reason, letter.sink, done.output) == ("encode", 0, [])
        return letter.error
    (output,) = done.output or [None]
    return output


class Pair(tuple):
    """A subclass whose own iteration is not asked for."""

    def __iter__(self):
        raise AssertionError


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (None, None),
        (b"v", (b"v", None, 1, ())),  # the record's number, behind that of the assignment
        ("v\xe9", ("v\xe9".encode(), None, 1, ())),
        ((b"v", "21"), (b"v", b"21", 1_173_551_340 % 3, ())),
        ((b"v", None), (b"v", None, 1, ())),
        ((None, "k", 2), (None, b"k", 2, ())),
        (Pair(("v", b"k", None)), (b"v", b"k", 2, ())),
        (KafkaOutput(None), (None, None, 1, ())),
        (
            KafkaOutput("v", "k", 0, [("h", "x"), ("h", None)]),
            (b"v", b"k", 0, (("h", b"x"), ("h", None))),
        ),
        (KafkaOutput("v", headers={"h": b"x"}), (b"v", None, 1, (("h", b"x"),))),
        ((b"v", b""), (b"v", b"", 275_646_681 % 3, ())),
    ],
)
def test_what_is_sent(result, expected):
    output = sent(result, partitions=3)
    assert output == (None if expected is None else Produced(*expected, timestamp=0, number=1))


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (5, "not a int"),
        ((b"v",), "not a tuple of 1"),
        ((1, 2, 3, 4), "not a tuple of 4"),
        ((b"v", 5), "and a key is bytes, str or None, not a int"),
        ((bytearray(b"v"), b"k"), "and a value is bytes, str or None, not a bytearray"),
        ("\ud800", "UTF-8 refuses"),
        ((b"v", b"k", 3), "there is no partition 3: the topic has 3, counted from 0"),
        ((b"v", b"k", -1), "there is no partition -1"),
        ((b"v", b"k", True), "the number of a partition is an int, not a bool"),
        (KafkaOutput(b"v", headers="h"), "headers are pairs (name, value)"),
        (KafkaOutput(b"v", headers=5), "headers are pairs (name, value)"),
        (KafkaOutput(b"v", headers=[("h",)]), "headers are pairs (name, value)"),
        (KafkaOutput(b"v", headers=[(b"h", b"x")]), "headers are pairs (name, value)"),
        (KafkaOutput(b"v", headers=[("h", 5)]), "and a header is bytes, str or None"),
        ((b"12345", b"12345", None), "an output of 10 bytes is above the sink's limit of 9"),
    ],
)
def test_what_cannot_be_sent_is_a_dead_letter(result, said):
    assert said in sent(result, partitions=3, max_message_size=9)


def test_where_the_number_of_partitions_is_not_there_yet_none_is_chosen():
    assert sent((b"v", b"k")).partition is None
    assert sent((b"v", b"k", 2**31 - 1)).partition == 2**31 - 1
    assert "there is none below 0 or above" in sent((b"v", b"k", 2**31))


def test_what_is_done_with_a_record_can_be_explained():
    """`wallaroo explain` on a recording with whole records (kafka-2)."""
    noted = []
    steps = Steps()
    steps.on_step = noted.append
    application = bounded(record, value_and_key)
    machine = Interpreter(application, observer=steps)
    records: list[Record] = [
        Assigned("s", ((0, 0, None),)),
        Consumed("s", KafkaRecord(b"v", b"k", (("h", None),))),
    ]
    for one in [*records, Consumed("s", KafkaRecord(None, partition=1, offset=7))]:
        process(machine, application.sources, [one])
    text = "\n".join(steps_lines(noted))
    assert "record 0: source s reads partitions from 0 s" in text
    assert "record 1: partition 0, offset -1 of s at 0 s: b'v', key b'k'" in text
    assert "wrote b'v', key b'k', at 0 ms, for record 1" in text
    assert "record 2: partition 1, offset 7 of s at 0 s: None, key None" in text
    form = [one for one in steps_json(noted) if one["what"] == "frame"]
    assert [(one["payload"], one["record_key"], one["headers"]) for one in form] == [
        ("dg==", "aw==", [["h", None]]),
        (None, None, []),
    ]
