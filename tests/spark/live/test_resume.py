"""What a restart knows when the input log has dropped what Spark has committed."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from counted import line, text
from wallaroo_spark.live.offset_log import OffsetLog
from wallaroo_spark.live.resume import (
    Resume,
    read_resume,
    resume_of,
    write_resume,
)

import wallaroo
from wallaroo.records import Assigned, End, Tick, Value
from wallaroo.transport.generators import Generators
from wallaroo.transport.identity import CheckpointError
from wallaroo.transport.input_log import InputLog
from wallaroo.transport.logged import LoggedSource, TopicPosition, after, at_the_end_of, encoded
from wallaroo.transport.resumption import Stream
from wallaroo.transport.stamps import UNSTAMPED


class Numbers:
    """Gives 0, 1, 2, … up to 9; those of `odd` cannot be pickled."""

    def __init__(self, odd=()):
        self.odd = odd

    def initial_value(self):
        return self.value(0)

    def apply(self, last):
        number = last() if callable(last) else last
        return None if number == 9 else self.value(number + 1)

    def value(self, number):
        return (lambda: number) if number in self.odd else number


class Kept:
    """Stands for the engine's part: keeps what it receives."""

    def __init__(self, records):
        self.receive_records = records.extend


def source(generator):
    pipeline = wallaroo.source("g", wallaroo.GenSourceConfig(generator))
    return wallaroo.build_application("app", pipeline.done()).sources


@pytest.fixture
def log(tmp_path):
    opened = InputLog.open(tmp_path / "log", 1 << 20, file_bytes=200)
    yield opened
    opened.close()


@pytest.mark.parametrize("odd", [(), (3, 4), (0, 1, 2, 3, 4), range(10)])
@pytest.mark.parametrize("seen", [0, 1, 4, 5, 9])
def test_graph_4_a_generator_goes_on_where_the_log_ended_though_that_is_dropped(log, odd, seen):
    made = []
    generators = Generators(source(Numbers(odd)), Kept(made), clock=lambda: 7)
    generators._some("g", generators._running["g"], float("inf"))
    assert len(made) == 11
    shown = [one.value() if callable(one.value) else one.value for one in made[:10]]
    assert shown == list(range(10))
    logged = [Value("g", encoded(one.value)) for one in made[:seen]]
    log.append_records([*logged[: seen // 2], Tick(8), *logged[seen // 2 :]])
    log.sync()
    half = log.next_sequence // 2
    before = after({}, log.runs(0, half))
    log.drop_before(half)
    known = at_the_end_of(log, half, before)
    rest = []
    again = Generators(source(Numbers(odd)), Kept(rest), lambda: 7, known)
    again._some("g", again._running["g"], float("inf"))
    assert [type(one) for one in rest] == [Value] * (10 - seen) + [End]
    assert shown[seen:] == [one.value() if callable(one.value) else one.value for one in rest[:-1]]


def test_graph_4_a_generator_that_has_ended_stays_so(log):
    log.append_records([Value("g", encoded(0)), End("g", 5, "ValueError", "no more")])
    log.sync()
    known = at_the_end_of(log, 0, {})
    assert known == {"g": LoggedSource(ended=True, last=encoded(0), behind=0)}
    again = Generators(source(Numbers()), Kept([]), lambda: 7, known)
    assert (again._running, again.received) == ({}, {"g": 0})


@pytest.mark.parametrize("cut", range(6))
def test_kafka_3_a_topic_goes_on_where_the_log_ended_though_that_is_dropped(tmp_path, cut):
    log = filled(OffsetLog(Path("not needed here")))
    write_resume(tmp_path / "resume", Resume(cut, 7, after({}, log.runs(0, cut))), UNSTAMPED)
    log.drop_before(cut)
    resume = read_resume(tmp_path / "resume")
    assert at_the_end_of(log, resume.sequence, resume.sources)["s"] == LoggedSource(
        position=TopicPosition("id", {0: 3, 1: 45, 2: 0}, 10, {0: 8}, {0: 5, 1: 40}),
        partitions={2: LoggedSource(ended=True)},
    )


def filled(log):
    log.append_records([Assigned("s", ((0, 5, 8), (1, 40, None)), 10, "id")])
    log.append_offsets("s", 0, 5, 7, 11)
    log.append_offsets("s", 1, 40, 44, 11)
    # A gap was accepted, and it led back; a partition was added, and has ended.
    log.append_records([Assigned("s", ((0, 3, None), (2, 0, None)), 12, "id")])
    log.append_records([End("s", 13, partition=2)])
    return log


def test_recover_1_the_file_is_read_as_it_was_written(tmp_path, log):
    path = tmp_path / "resume"
    assert read_resume(path) is None
    log.append_records([Value("g", encoded({"a": 1})), End("p")])
    written = Resume(2, 10**19, after({}, log.runs(0, 2)))
    write_resume(path, written, UNSTAMPED)
    assert read_resume(path) == written
    assert path.stat().st_mode & 0o77 == 0


@pytest.mark.parametrize("text", ["", "{}", '{"sequence": 1, "due": "x", "sources": {}}', "[1]"])
def test_recover_1_a_damaged_file_is_refused(tmp_path, text):
    path = tmp_path / "resume"
    path.write_text(text)
    with pytest.raises(CheckpointError, match="resume is damaged"):
        read_resume(path)


def test_graph_4_a_value_of_another_version_is_refused(log):
    log.append_records([Value("g", b"pno pickle")])
    (known,) = after({}, log.runs(0, 1)).values()
    with pytest.raises(CheckpointError, match="value of a generator cannot be read back"):
        known.value()


def test_sink_9_a_micro_batch_that_spark_did_not_commit_is_numbered_as_before(tmp_path):
    path, kept = tmp_path / "resume", ("p", 0)
    said = Resume(9, None, {}, {kept: Stream(2, b"cdef")}, {kept: 4})
    write_resume(path, said, UNSTAMPED)
    assert read_resume(path) == said
    assert said.streams_at(9) == said.streams_at(12) == {kept: Stream(2, b"cdef")}
    assert said.streams_at(5) == {kept: Stream(2, b"cd")}


def test_sink_9_resume_may_be_turned_on_later_and_off_again(tmp_path):
    def app(*, resume):
        source = wallaroo.TCPSourceConfig("127.0.0.1", 0, text)
        sink = wallaroo.TCPSinkConfig("127.0.0.1", 1, line, resume=resume)
        return wallaroo.build_application("app", wallaroo.source("p", source).to_sink(sink))

    checkpoint = SimpleNamespace(resume=tmp_path / "resume")  # Spark has committed something
    assert resume_of(checkpoint, app(resume=False)) is None
    assert resume_of(checkpoint, app(resume=True)) == Resume()
    said = Resume(9, None, {}, {("p", 0): Stream(2, b"cdef")}, {("p", 0): 4})
    write_resume(checkpoint.resume, said, UNSTAMPED)
    assert resume_of(checkpoint, app(resume=False)) == said, "what it says now must be written"
    write_resume(checkpoint.resume, Resume(10), UNSTAMPED)
    assert resume_of(checkpoint, app(resume=False)) is None
