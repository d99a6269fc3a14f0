"""Records that are left out are marked where they stand, and nothing else is changed."""

from dataclasses import dataclass, replace
from typing import Any

from drawn_runs import any_numbers, every_kind, in_a_log, one_by_one, records_of, some_bytes
from hypothesis import given
from hypothesis import strategies as st

from wallaroo.kafka_records import KafkaRun
from wallaroo.records import Consumed
from wallaroo.transport.input_log import LoggedRun, RecordKind
from wallaroo.transport.log_format import in_groups
from wallaroo.transport.skipping import (
    SkippedPayload,
    skipped,
    skipped_consumed,
    skipped_of_topic,
)

WHY = "it is left out, as --skip-record %d says"


def mark(payload: Any) -> str | None:
    """Return why a payload is left out; `None`: it is not."""
    return payload.why if type(payload) is SkippedPayload else None


@given(in_a_log(every_kind), any_numbers)
def test_of_a_log_frames_and_values_are_marked_and_all_records_stay(runs, numbers):
    found = [*skipped(runs, numbers)]
    before, after = [*one_by_one(runs)], [*one_by_one(found)]
    assert after == before
    for number, _, kind, _, payload in after:
        wanted = number in numbers and kind in (RecordKind.FRAME, RecordKind.VALUE)
        assert mark(payload) == (WHY % number if wanted else None)
    assert not [run for run in found if len(run.payloads) != 1 and any(map(mark, run.payloads))]


@given(st.lists(records_of(1), min_size=1, max_size=6), st.integers(0, 9), any_numbers)
def test_of_records_that_are_logged_whole_the_values_are_marked(records, first, numbers):
    ((kind, source, at, payloads),) = in_groups([Consumed("s", one, 5) for one in records])
    found = skipped_consumed(LoggedRun(source, first, payloads, kind, at), numbers)
    for number, (record, one) in enumerate(zip(records, found, strict=True), first):
        left_out = number in numbers
        assert one == (replace(record, value=record.value or b"") if left_out else record)
        assert mark(one.value) == (WHY % number if left_out else None)


@dataclass
class Message:
    """A record as Kafka's client gives it."""

    at: int
    data: bytes | None

    def offset(self):
        return self.at

    def value(self):
        return self.data

    def key(self):
        return b"key of %d" % self.at


held = st.lists(st.none() | st.tuples(some_bytes), min_size=1, max_size=6)


@given(held, st.integers(0, 9), st.integers(0, 30), any_numbers)
def test_kafka_1_of_what_was_read_of_a_topic_the_values_are_marked(held, first, begin, numbers):
    messages = [Message(at, *one) for at, one in enumerate(held, begin) if one is not None]
    run = KafkaRun(2, begin, begin + len(held) - 1, messages)
    found = skipped_of_topic(first, run, numbers)
    assert found[:3] == run[:3]
    for message, one in zip(messages, found.messages, strict=True):
        number = first + message.at - begin
        left_out = number in numbers
        assert (one.offset(), one.key()) == (message.offset(), message.key())
        assert one.value() == (message.data or b"" if left_out else message.data)
        assert mark(one.value()) == (WHY % number if left_out else None)
