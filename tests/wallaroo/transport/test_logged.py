"""Where sources go on, whatever a log says of them and wherever it is cut."""

import json
from dataclasses import dataclass, field

from drawn_runs import (
    UNREADABLE,
    any_numbers,
    assigned,
    every_kind,
    in_a_log,
    named,
    one_by_one,
    values,
)
from hypothesis import given
from hypothesis import strategies as st

from wallaroo.records import Assigned, Consumed, End
from wallaroo.transport.log_format import LoggedRun, RecordKind
from wallaroo.transport.logged import LoggedSource, TopicPosition, after, at_the_end_of
from wallaroo.transport.skipping import skipped


class Log:
    """A log in memory, of which a few records are read at once."""

    first_sequence = 0

    def __init__(self, runs, at_once):
        self._runs, self._at_once = runs, at_once
        self.next_sequence = sum(len(run.payloads) for run in runs)

    def end_within(self, from_sequence, *, max_bytes, max_records=None):
        return from_sequence + self._at_once

    def runs(self, from_sequence, to_sequence):
        parts = [run.part(from_sequence, to_sequence) for run in self._runs]
        return [part for part in parts if part.payloads]


@dataclass
class Model:
    """What is known of a source, record by record."""

    ended: bool = False
    last: bytes = b""
    behind: int = 0
    topic: str | None = None
    at: int = 0
    offsets: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] | None = None
    partitions: set[int] = field(default_factory=set)

    def assigned(self, record):
        firsts = {number: first for number, first, _ in record.partitions}
        ends = {number: end for number, _, end in record.partitions if end is not None}
        if ends and not self.ends:  # what is read is bounded from here on
            self.starts, self.at = firsts, record.at
        self.topic, self.at = record.topic, self.at or record.at
        self.offsets |= firsts
        self.ends |= ends

    def read(self, partition, offset):
        self.topic = self.topic or ""
        self.offsets[partition] = offset + 1

    @property
    def source(self):
        """It as the product has it."""
        position = None
        if self.topic is not None:
            ends = self.ends or None
            position = TopicPosition(self.topic, self.offsets, self.at, ends, self.starts)
        partitions = {number: LoggedSource(ended=True) for number in self.partitions}
        return LoggedSource(self.ended, self.last, self.behind, position, partitions)


def expected(runs, numbers):
    """Return what is known at the end of a log, by source."""
    models = {name: Model() for name in ("frames", "made", "topic")}
    for number, source, kind, at, content in one_by_one(runs):
        if kind is RecordKind.TICK:
            continue
        model = models[source]
        if kind is RecordKind.OFFSETS:
            model.read(*content)
            continue
        if kind is RecordKind.VALUE:
            there = content != UNREADABLE and number not in numbers
            model.last, model.behind = (content, 0) if there else (model.last, model.behind + 1)
        (record,) = LoggedRun(source, number, [content], kind, at).records()
        match record:
            case Assigned():
                model.assigned(record)
            case Consumed(record=read):
                model.read(read.partition, read.offset)
            case End(partition=None):
                model.ended = True
            case End(partition=int(partition)):
                model.partitions.add(partition)
    return {name: model.source for name, model in models.items()}


def stored(sources):
    """Return what a checkpoint says of sources, read back."""
    forms = json.loads(json.dumps({name: source.form for name, source in sources.items()}))
    return {name: LoggedSource.from_form(*form) for name, form in forms.items()}


of_a_topic = named | assigned
runs = in_a_log(every_kind) | in_a_log(of_a_topic) | in_a_log(values)


@given(runs, any_numbers, st.integers(0, 20), st.integers(1, 5))
def test_kafka_3_and_graph_4_what_is_known_at_the_end_of_a_log(runs, numbers, cut, at_once):
    log = Log(runs, at_once)
    cut = min(cut, log.next_sequence)
    before = after({}, skipped(log.runs(0, cut), numbers))
    found = at_the_end_of(log, cut, stored(before), numbers)
    for name, source in expected(runs, numbers).items():
        assert found.get(name, LoggedSource()) == source
    assert stored(found) == found
