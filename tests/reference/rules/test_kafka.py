"""Rules of Kafka that need no broker: both machines give the same, at any cut (kafka-6 to -14)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wallaroo
from wallaroo import KafkaOutput, KafkaRecord, testing
from wallaroo.engine import Case, load_engine
from wallaroo.errors import UnsupportedTopology
from wallaroo.kafka_records import Produced
from wallaroo.records import Assigned, Consumed, End, Frame, Tick, Unused
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.engine import _Stepper
from wallaroo_reference.isolated.interpreter import Interpreter

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
    before = _Stepper(first(application, keeps=True), application, 0)
    for record in log[:cut]:
        before.take(record)
    moment = before._machine.moment()
    after = then(application, keeps=True)
    for mine, its in zip(after.cells(), before._machine.cells(), strict=True):
        cells = [(its.named(one), its.packed(one)) for one in its.identities()]
        mine.unpack([(name, value) for name, value in cells if value is not None])
    after.go_on_from(moment)
    later = _Stepper(after, application, 0)
    after.sequence = moment.sequence
    for record in log[cut:]:
        before.take(record)
        later.take(record)
    for sink, outputs in before._machine.outputs.items():
        assert after.outputs[sink] == outputs[len(outputs) - len(after.outputs[sink]) :]
    assert after.moment() == before._machine.moment()
