"""Runs from a topic to a topic, with a real broker: what readers of committed records get."""

import base64
import json
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from counted import send, sink, source, text
from receiving import eventually
from running import WALLAROO_RUN, wallaroo

from wallaroo import KafkaRecord, KafkaSourceConfig, build_application, kafka_decoder, testing
from wallaroo import source as source_of
from wallaroo.kafka_records import partition_of
from wallaroo.loading import load_application

pytestmark = pytest.mark.xdist_group("Kafka")  # one broker for all of them

COUNTING = Path(__file__).parents[3] / "benchmarks" / "kafka_counting.py"


class Application:
    """Counts the records of a topic by key, into another topic."""

    def __init__(self, kafka, folder, partitions=3):
        self.kafka = kafka
        self.checkpoint = folder / "checkpoint"
        self.source, self.sink = kafka.topic(partitions), kafka.topic(2)
        self._sent = 0
        self.live = folder / "live.py"
        self.live.write_text(COUNTING.read_text().replace(', until="end"', ""))

    @property
    def own(self):
        """The application's own options."""
        return [
            *("--kafka_source_topic", self.source, "--kafka_sink_topic", self.sink),
            *("--kafka_source_brokers", self.kafka.address),
            *("--kafka_sink_brokers", self.kafka.address),
        ]

    def run(self, *options, file=COUNTING):
        return wallaroo("run", file, *self.own, *options, data="")

    def send(self, count, **options):
        """Send numbers; each of five keys has a partition."""
        numbers = range(self._sent, self._sent + count)
        self._sent += count
        records = [{"value": b"k%d %d" % (n % 5, n), "partition": n % 5 % 3} for n in numbers]
        self.kafka.send(self.source, *records, **options)

    def check(self):
        """Check that each number is counted once, and that keys have their order."""
        counts = {}
        for partition, messages in self.kafka.records(self.sink).items():
            for message in messages:
                key, number, count = message.value().decode().split()
                assert message.key() == key.encode()
                counts.setdefault((key, partition), []).append((int(number), int(count)))
        assert sorted(key for key, _ in counts) == [f"k{n}" for n in range(5)]  # no key has two
        for (key, _), some in counts.items():
            numbers = range(int(key[1:]), self._sent, 5)
            assert some == [(number, index) for index, number in enumerate(numbers, 1)]


@pytest.fixture
def app(kafka, tmp_path):
    return Application(kafka, tmp_path)


def test_kafka_10_a_bounded_read_counts_what_is_there(app):
    app.send(3_000)
    done = app.run("--checkpoint", str(app.checkpoint))
    assert done.returncode == 0, done.stderr
    assert "3,000 in, 3,000 out" in done.stderr
    app.check()
    again = app.run("--checkpoint", str(app.checkpoint))
    assert again.returncode == 0, again.stderr
    assert "every source has ended in an earlier run" in again.stderr
    app.check()


def test_kafka_2_a_recording_holds_the_records_and_needs_no_broker(app, tmp_path):
    app.send(50, **{"transactional.id": "a sender"})
    recording = tmp_path / "recording"
    assert app.run("--record", str(recording)).returncode == 0
    app.source = app.sink = "gone"
    again = wallaroo("rerun", recording, COUNTING, *app.own, data="")
    assert again.returncode == 0, again.stderr
    assert "50" in again.stdout + again.stderr


def test_a_run_gives_what_a_test_without_a_broker_gives(app, kafka):
    """kafka-7, kafka-10, kafka-13: values, keys and partitions; what is filtered is counted."""
    app.send(2_500)
    kafka.send(app.source, {"key": b"k1", "value": None, "partition": 1})
    done = app.run()
    assert done.returncode == 0, done.stderr
    assert "count: 1 record without a value filtered" in done.stderr
    records = [
        KafkaRecord(message.value(), message.key(), partition=partition, offset=message.offset())
        for partition, messages in kafka.records(app.source).items()
        for message in messages
    ]
    application = load_application(COUNTING, app.own)
    sent = testing.run(application, {"count": records}).output
    assert all(one.partition is None for one in sent)  # the topic has not been asked
    expected = {0: [], 1: []}
    for one in sent:
        expected[partition_of(one.key, one.number, 2)].append((one.key, one.value))
    got = kafka.records(app.sink)
    assert expected == {
        partition: [(message.key(), message.value()) for message in messages]
        for partition, messages in got.items()
    }
    assert all(expected.values())


@kafka_decoder
def key_of(record):
    return record.key.decode()


def test_kafka_7_records_without_a_value_count_where_they_are_filtered(serve, receiver, kafka):
    lines = []
    for name, decoder, value in (("a", text, None), ("b", text, b"v"), ("c", key_of, None)):
        topic = kafka.topic()
        kafka.send(topic, {"key": b"k", "value": value})
        config = KafkaSourceConfig(topic, kafka.address, decoder, until="end")
        lines.append(source_of(name, config).to_sink(sink(receiver.port)))
    summary = serve(build_application("app", *lines)).wait(60)
    assert summary.exit_code == 0
    assert summary.tombstones == {"a": 1}


def test_kafka_13_a_partition_that_the_topic_does_not_have_is_a_dead_letter(app, tmp_path):
    """The number of partitions is asked before the first record is processed."""
    text = COUNTING.read_text().replace(
        'message.partition(" ")[0]\n\n\ndef app',
        'None, int(message.partition(" ")[2])\n\n\ndef app',
    )
    (tmp_path / "choosing.py").write_text(text)
    app.send(4)
    done = app.run(file=tmp_path / "choosing.py")
    assert done.returncode == 0, done.stderr
    assert "4 in, 2 out" in done.stderr
    assert "there is no partition 2: the topic has 2, counted from 0" in done.stderr
    assert [len(some) for some in app.kafka.records(app.sink).values()] == [1, 1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stop_1_a_start_that_waits_for_brokers_ends_at_a_signal(tmp_path, number):
    silent = socket.create_server(("127.0.0.1", 0))
    silent.settimeout(60)

    class Away:
        address = f"127.0.0.1:{silent.getsockname()[1]}"

        def topic(self, _partitions):
            return "t"

    app = Application(Away(), tmp_path)
    words = [*WALLAROO_RUN, app.live, *app.own]
    with silent, subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as run:
        silent.accept()[0].close()  # it asks the brokers
        run.send_signal(number)
        assert run.wait(60) == 130
        assert "Traceback" not in run.stderr.read()


@pytest.mark.parametrize("further", [(), ("--isolated",), ("--record",)])
def test_the_trace_of_a_record_goes_on_to_its_outputs(app, kafka, tmp_path, further):
    collector = pytest.importorskip("collector")
    parent = ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    first = {"value": b"k1 1", "headers": [parent, ("x", b"")], "partition": 0}
    kafka.send(app.source, first, {"value": b"k1 2", "partition": 0})
    options = [*further, *([str(tmp_path / "recording")] * (further == ("--record",)))]
    with collector.Collector() as made:
        done = app.run("--otel", made.url, *options)
        assert done.returncode == 0, done.stderr
        traces = {span.trace_id.hex() for span in made.spans}
    assert parent[1][3:35].decode() in traces
    some = [message for each in kafka.records(app.sink).values() for message in each]
    headers = {message.value(): message.headers() for message in some}
    assert headers == {b"k1 1 1": [parent], b"k1 2 2": None}


@pytest.mark.parametrize("whole", [False, True])
def test_a_record_that_ends_each_restart_is_left_out(app, tmp_path, whole):
    """Its dead letter says where it stands in the topic."""
    leaving = '    if "2" in message:\n        raise SystemExit\n    state.count += 1\n'
    text = COUNTING.read_text().replace("    state.count += 1\n", leaving)
    if whole:
        text = text.replace('until="end"', 'until="end", event_time=wallaroo.kafka_timestamp')
    (tmp_path / "leaving.py").write_text(text)
    letters = tmp_path / "dead.jsonl"
    options = ["--checkpoint", app.checkpoint, "--dead-letters", letters]
    if whole:
        options += ["--record", tmp_path / "recording"]
    values = [b"k 0", b"k 1", b"k 2", b"k 3"]
    app.kafka.send(app.source, *[{"value": value, "partition": 1} for value in values])

    def run(*further):
        return app.run(*options, *further, file=tmp_path / "leaving.py")

    ended = run()
    assert ended.returncode == 1
    assert (
        "leave this message out with --skip-record 5" in ended.stderr
    )  # two partitions have ended
    done = run("--skip-record", "5")
    assert done.returncode == 0, done.stderr
    (letter,) = [json.loads(line) for line in letters.read_text().splitlines()]
    assert (letter["topic"], letter["partition"], letter["offset"]) == (app.source, 1, 2)
    assert base64.b64decode(letter["payload"]) == b"k 2"
    some = [message for each in app.kafka.records(app.sink).values() for message in each]
    assert [message.value() for message in some] == [b"k 0 1", b"k 1 2", b"k 3 3"]
    if whole:
        recorded = [tmp_path / "recording", tmp_path / "leaving.py", *app.own]
        again = wallaroo("rerun", *recorded, "--skip-record", "5", data="")
        assert again.returncode == 0, again.stderr


def test_kafka_12_a_source_of_frames_goes_on_while_the_brokers_of_another_are_away(
    serve, receiver, kafka
):
    topic = kafka.topic()
    records = source_of("k", KafkaSourceConfig(topic, kafka.address, text))
    lines = [one.to_sink(sink(receiver.port)) for one in (records, source("p"))]
    handle = serve(build_application("two", *lines))

    def came(word):
        eventually(lambda: word in b"".join(receiver.so_far).split())

    kafka.send(topic, {"value": b"before"})
    came(b"before")
    kafka.kill()
    try:
        send(handle, "meanwhile")
        came(b"meanwhile")
    finally:
        kafka.start()  # other tests have it too, though none at this time
    kafka.send(topic, {"value": b"after"})
    came(b"after")
    handle.stop()
    assert handle.wait(60).exit_code == 0
