"""Live runs on Spark that read a real broker: payloads go from it to the tasks (kafka-1)."""

from __future__ import annotations

import collections
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from receiving import Receiver, eventually

pytestmark = pytest.mark.alone

APPLICATION = str(Path(__file__).with_name("kafka_application.py"))
PATIENCE = 300.0  # seconds until Spark is up, on a machine with other work
SECRET = "nobody sees this"


def started(kafka, topic, receiver, *options, engine="spark", own=()):
    """Start a run of `kafka_application.py`; `own` are the application's options."""
    command = [sys.executable, "-m", "wallaroo", "run", APPLICATION, "--engine", engine, *options]
    command += ["--topic", topic, "--brokers", kafka.address, "--out", str(receiver.port), *own]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


def ended(process):
    """Return the exit code of a run and what it has said, once it has ended."""
    _, said = process.communicate(timeout=3 * PATIENCE)
    return process.returncode, said


def records(numbers, partitions=3):
    return [{"value": b"k%d %d" % (n % 5, n), "partition": n % partitions} for n in numbers]


def received(receiver):
    return b"".join(receiver.so_far)


def counted(data):
    """Return the numbers of each key's messages in the order of their counts, repeats left out."""
    counts = collections.defaultdict(dict)
    for line in data.decode().splitlines():
        _, key, number, count = line.split()
        assert counts[key].setdefault(int(count), int(number)) == int(number), line
    return {key: [some[count] for count in sorted(some)] for key, some in counts.items()}


def test_kafka_10_a_bounded_read_gives_the_bytes_of_the_reference(kafka, receiver):
    topic = kafka.topic(3)
    sent = [*records(range(4_500)), {"value": b"k0 bad", "partition": 2}, {"value": None}]
    kafka.send(topic, *sent[:2_000], **{"transactional.id": "leaves marks between the records"})
    kafka.send(topic, *sent[2_000:])
    other = Receiver()
    code, said = ended(started(kafka, topic, other, "--isolated", engine="reference"))
    assert code == 0, said
    code, said = ended(started(kafka, topic, receiver))
    assert code == 0, said
    assert received(receiver) == received(other)
    assert "kafka: 4,502 in, 4,500 out" in said
    assert "1 raised: kafka, count" in said
    other.close()


def test_kafka_1_whatever_is_killed_each_record_counts_once(kafka, receiver, tmp_path):
    """With a source of frames beside the topic, and in the first run with a broker alone."""
    topic, checkpoint = kafka.topic(3), tmp_path / "checkpoint"
    options = ("--checkpoint", str(checkpoint), "--batch-bytes", "20000")
    numbers = 0
    for kill in (True, True, False):
        kafka.send(topic, *records(range(numbers, numbers + 3_000)))
        numbers += 3_000
        run = started(kafka, topic, receiver, *options, own=["--live", "yes"])
        wanted = numbers - 2_000 * kill
        eventually(lambda wanted=wanted: received(receiver).count(b"\n") >= wanted, 3 * PATIENCE)
        if kill:
            os.killpg(run.pid, signal.SIGKILL)
            ended(run)
    eventually(lambda: sum(map(len, counted(received(receiver)).values())) == numbers, PATIENCE)
    run.send_signal(signal.SIGTERM)
    code, said = ended(run)
    assert code == 0, said
    found = counted(received(receiver))
    assert {key: sorted(some) for key, some in found.items()} == {
        f"k{key}": [*range(key, numbers, 5)] for key in range(5)
    }
    stored = b"".join(path.read_bytes() for path in checkpoint.rglob("*") if path.is_file())
    assert SECRET.encode() not in stored
