"""Rules of Kafka that need no broker: both machines give the same, at any cut (kafka-6 to -14)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.lives import Kept
from wallaroo_reference.machine import process
from wallaroo_reference.replay.describing import steps_json, steps_lines
from wallaroo_reference.replay.steps import Steps

import wallaroo
from wallaroo import KafkaOutput, KafkaRecord, testing
from wallaroo.engine import Case, load_engine
from wallaroo.kafka_records import Produced
from wallaroo.records import Assigned, Consumed, End, Frame, Record, Tick, Unused
from wallaroo.trace import Trace

SECOND = 10**9


@wallaroo.kafka_decoder
def whole(record):
    if record.key == b"bad":
        raise ValueError("bad")
    return None if record.key == b"none" else (record.partition, record.offset)


class Values:
    def decode(self, value):
        return value


class Collect:
    def initial_accumulator(self):
        return []

    def update(self, message, accumulator):
        accumulator.append(message)

    def combine(self, earlier, later):
        return earlier + later

    def output(self, key, accumulator):
        return accumulator


@wallaroo.encoder
def as_text(message):
    return repr(message), "key"


@wallaroo.encoder
def framed(message):
    return repr(message)


def windowed(idle_after, event_time, delay, merged):
    """Windows over a Kafka source, perhaps merged with one over TCP, to sinks of both kinds."""
    tcp = wallaroo.TCPSourceConfig(
        "127.0.0.1", 0, wallaroo.decoder(header_length=4, length_fmt=">I")(lambda payload: payload)
    )
    config = wallaroo.KafkaSourceConfig(
        "in", "h:1", whole, event_time=event_time, idle_after=idle_after
    )
    step = wallaroo.range_windows(4 * SECOND).with_slide(2 * SECOND).with_delay(delay)
    source = wallaroo.source("kafka", config)
    if merged:
        source = source.merge(wallaroo.source("tcp", tcp))
    return wallaroo.build_application(
        "both",
        source.to(step.over(Collect)).to_sinks(
            [
                wallaroo.KafkaSinkConfig("out", "h:1", as_text, partitions=3),
                wallaroo.TCPSinkConfig("127.0.0.1", 1, framed),
            ]
        ),
    )


_partitions = st.integers(0, 1)
_records = st.builds(
    lambda partition, seconds, key: KafkaRecord(
        b"v", key, timestamp=None if seconds is None else seconds * SECOND, partition=partition
    ),
    _partitions,
    st.sampled_from([None, *range(20)]),
    st.sampled_from([None] * 9 + [b"bad", b"none"]),
)
_steps = st.one_of(
    *[st.builds(lambda record: Consumed("kafka", record), _records)] * 12,
    st.builds(lambda ones: Assigned("kafka", tuple((p, 0, None) for p in sorted(ones))),
              st.sets(_partitions, min_size=1)),
    st.builds(lambda partition: End("kafka", partition=partition), _partitions),
    st.builds(lambda numbers: Unused("kafka", numbers), st.integers(1, 3)),
    st.just(Frame("tcp", b"f")),
    st.just(End("tcp")),
    st.just(Tick(0)),
)  # fmt: skip


_applications = st.builds(
    windowed,
    st.sampled_from([None, 2 * SECOND, 5 * SECOND]),
    st.sampled_from([None, *[wallaroo.kafka_timestamp] * 3]),
    st.sampled_from([0, SECOND]),
    st.booleans(),
)


@st.composite
def runs(draw):
    """Records whose arrival times grow, in pieces that arrive at one time."""
    application = draw(_applications)
    made, now, ended = [], 0, set()
    for step in draw(st.lists(_steps, min_size=5, max_size=30)):
        partition = getattr(getattr(step, "record", step), "partition", None)
        if partition in ended and not isinstance(step, End):
            continue  # it gives nothing more
        if application.sources.keys() == {"kafka"} and getattr(step, "source", "") == "tcp":
            continue
        if isinstance(step, End) and step.source == "kafka":
            ended.add(step.partition)
        now += draw(st.sampled_from([0, 0, SECOND, 3 * SECOND]))
        made.append(type(step)(**{**{k: getattr(step, k) for k in step.__slots__}, "at": now}))
    return application, made


@given(runs())
def test_the_machines_agree_on_partitions_and_time(run):
    application, log = run
    reference = load_engine("reference")
    isolated = reference.run(Case(application, log))
    trusting = reference.run(Case(application, log, isolation="trusting"))
    assert isolated.comparable() == trusting.comparable()
    whens = [
        testing.Session(application, isolation=mode)._stepper for mode in ("isolated", "trusting")
    ]
    for record in log:
        for stepper in whens:
            stepper.take(record)
        assert len({stepper.due() for stepper in whens}) == 1


@given(runs(), st.integers(0, 25), st.booleans())
def test_a_machine_goes_on_from_the_times_of_another(run, cut, other_way):
    application, log = run
    first, then = (Compiled, Interpreter) if other_way else (Interpreter, Compiled)
    before, after = first(application, keeps=True), then(application, keeps=True)
    kept = Kept(before)
    for record in log[:cut]:
        process(before, application.sources, [record])
    kept.take(before)
    kept.put(after)
    for record in log[cut:]:
        process(before, application.sources, [record])
        process(after, application.sources, [record])
    for sink, outputs in before.outputs.items():
        assert after.outputs[sink] == outputs[len(outputs) - len(after.outputs[sink]) :]
    assert after.moment() == before.moment()


# -- decoders (kafka-7) ----------------------------------------------------------------------------


def bounded(decoder, encoder, **how):
    source = wallaroo.KafkaSourceConfig("in", "h:1", decoder, **how.pop("source", {}))
    sink = wallaroo.KafkaSinkConfig("out", "h:1", encoder, **how)
    return wallaroo.build_application("b", wallaroo.source("s", source).to_sink(sink))


@wallaroo.kafka_decoder
def fields(record):
    return record


@wallaroo.encoder
def value_and_key(record):
    return record.value, record.key


@wallaroo.encoder
def itself(message):
    return message


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


def test_a_dead_letter_has_the_value_as_its_payload():
    records = [KafkaRecord(b"v", b"bad"), KafkaRecord(None, b"bad")]
    letters = both(bounded(whole, as_text), records).dead_letters
    assert [(letter.lineage, letter.reason, letter.payload) for letter in letters] == [
        ((1,), "decode", b"v"),
        ((2,), "decode", None),
    ]


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
    application = bounded(fields, value_and_key)
    machine = Interpreter(application, observer=steps)
    records: list[Record] = [
        Assigned("s", ((0, 0, None),)),
        Consumed("s", KafkaRecord(b"v", b"k", (("h", None),))),
    ]
    for record in [*records, Consumed("s", KafkaRecord(None, partition=1, offset=7))]:
        process(machine, application.sources, [record])
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
