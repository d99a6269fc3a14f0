"""Live runs on Spark that read a real broker: payloads go from it to the tasks (kafka-1).

A topic alone, whose log is Spark's own; test_kafka_sink.py has frames beside one.
"""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from confluent_kafka import TopicPartition
from live_on_spark import PATIENCE, jvm_of
from ports import free_port
from receiving import Receiver, eventually

from wallaroo.cli.main import main

pytestmark = pytest.mark.alone

APPLICATION = str(Path(__file__).with_name("kafka_application.py"))
SECRET = "nobody sees this"


def started(kafka, topic, port, *options, engine="spark"):
    """Start a run of `kafka_application.py`."""
    command = [sys.executable, "-m", "wallaroo", "run", APPLICATION, "--engine", engine, *options]
    command += ["--topic", topic, "--brokers", kafka.address, "--out", str(port)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def ended(process):
    """Return the exit code of a run and what it has said, once it has ended."""
    _, said = process.communicate(timeout=3 * PATIENCE)
    return process.returncode, said


def records(numbers, partitions=3):
    return [{"value": b"k%d %d" % (n % 5, n), "partition": n % partitions} for n in numbers]


@pytest.mark.nightly(
    "three starts of Spark; engines share what says where to begin, and test_kafka_sink.py has "
    "topics each time"
)
@pytest.mark.timeout(1200)
def test_kafka_5_and_10_a_bounded_read_goes_on_though_what_was_planned_has_a_gap(kafka, tmp_path):
    """It gives the bytes of the reference, though records grow, so that the plan is cut."""
    topic, checkpoint = kafka.topic(3), tmp_path / "checkpoint"
    kafka.send(topic, *records(range(900)), **{"transactional.id": "leaves marks between records"})
    large = [{**one, "value": one["value"] + b"x" * 100_000} for one in records(range(900, 920))]
    last = [{"value": b"k0 bad", "partition": 2}, {"value": None, "partition": 0}]
    kafka.send(topic, *large, *last, **{"compression.type": "lz4"})
    port = free_port()  # where nobody listens, so that the first micro-batch is not committed
    options = ("--checkpoint", str(checkpoint), "--batch-bytes", "500000")
    run = started(kafka, topic, port, *options)
    eventually((checkpoint / "spark" / "offsets" / "0").exists, 2 * PATIENCE)
    jvm = jvm_of(run.pid)
    run.kill()
    eventually(lambda: not psutil.pid_exists(jvm))  # it does not outlive the run
    ended(run)
    admin, place = kafka.admin(), TopicPartition(topic, 1, 4)
    admin.delete_records([place])[place].result(30)
    gap = "partition 1: offset 0 is wanted, and the partition has offsets 4 to 307 now"
    code, said = ended(started(kafka, topic, port, *options))
    assert (code, f"{gap}; run with --accept-gaps" in said) == (1, True), said
    receiver = Receiver(port)
    code, said = ended(started(kafka, topic, port, *options, "--accept-gaps"))
    assert (code, f"{gap}; what is missing is left out" in said) == (0, True), said
    assert "It is cut to" in said
    assert "1 raised: kafka, count" in said
    other = Receiver()
    code, said = ended(started(kafka, topic, other.port, "--isolated", engine="reference"))
    assert (code, "kafka: 918 in, 916 out" in said) == (0, True), said
    assert receiver.everything() == other.everything()
    assert not any((checkpoint / "input").glob("*.log"))  # Spark's own offset log is the log
    stored = b"".join(path.read_bytes() for path in checkpoint.rglob("*") if path.is_file())
    assert SECRET.encode() not in stored  # kafka-17
    assert main(["checkpoint", str(checkpoint), "--verify"]) == 0
    for one in (receiver, other):
        one.close()
