"""Live runs on Spark that read a real broker: payloads go from it to the tasks (kafka-1)."""

from __future__ import annotations

import collections
import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from receiving import Receiver, eventually

from wallaroo.cli.main import main

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


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as made:
        return made.getsockname()[1]


def send_frames(port, payloads):
    """Send frames once somebody listens, and return when they are taken (frame-4)."""

    def connected():
        with contextlib.suppress(OSError):
            return socket.create_connection(("127.0.0.1", port), 10)

    made = []
    eventually(lambda: made.append(connected()) or made[-1], PATIENCE)
    with made[-1] as sock:
        for payload in payloads:
            sock.sendall(struct.pack(">I", len(payload)) + payload)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""


def received(receiver):
    return b"".join(receiver.so_far)


def counted(data):
    """Return the numbers of each key's messages in the order of their counts, repeats left out."""
    counts = collections.defaultdict(dict)
    for line in data.decode().splitlines():
        _, key, number, count = line.split()
        assert counts[key].setdefault(int(count), int(number)) == int(number), line
    return {key: [some[count] for count in sorted(some)] for key, some in counts.items()}


@pytest.mark.timeout(900)
def test_kafka_10_a_bounded_read_gives_the_bytes_of_the_reference(kafka, receiver):
    """Though records grow, so that the micro-batch that is planned is cut."""
    topic = kafka.topic(3)
    kafka.send(topic, *records(range(900)), **{"transactional.id": "leaves marks between records"})
    large = [{**one, "value": one["value"] + b"x" * 100_000} for one in records(range(900, 920))]
    last = [{"value": b"k0 bad", "partition": 2}, {"value": None}]
    kafka.send(topic, *large, *last, **{"compression.type": "lz4"})
    other = Receiver()
    code, said = ended(started(kafka, topic, other, "--isolated", engine="reference"))
    assert code == 0, said
    code, said = ended(started(kafka, topic, receiver, "--batch-bytes", "500000"))
    assert code == 0, said
    assert receiver.everything() == other.everything()
    assert "It is cut to" in said
    assert "kafka: 922 in, 920 out" in said
    assert "1 raised: kafka, count" in said
    other.close()


@pytest.mark.timeout(1200)  # two starts of Spark
def test_kafka_5_a_gap_in_what_is_planned_may_be_accepted_and_a_topic_made_again_not(
    kafka, tmp_path
):
    topic, checkpoint = kafka.topic(3), tmp_path / "checkpoint"
    kafka.send(topic, *records(range(30)))
    receiver = Receiver()
    receiver.close()  # so that the first micro-batch is not committed
    options = ("--checkpoint", str(checkpoint))
    run = started(kafka, topic, receiver, *options)
    eventually((checkpoint / "spark" / "offsets" / "0").exists, 2 * PATIENCE)
    os.killpg(run.pid, signal.SIGKILL)
    ended(run)
    admin, place = kafka.admin(), TopicPartition(topic, 1, 4)
    admin.delete_records([place])[place].result(30)
    gap = "partition 1: offset 0 is wanted, and the partition has offsets 4 to 9 now"
    code, said = ended(started(kafka, topic, receiver, *options))
    assert (code, f"{gap}; run with --accept-gaps" in said) == (1, True), said
    receiver = Receiver(receiver.port)
    code, said = ended(started(kafka, topic, receiver, *options, "--accept-gaps"))
    assert (code, f"{gap}; what is missing is left out" in said) == (0, True), said
    numbers = {int(line.split()[2]) for line in receiver.everything().decode().splitlines()}
    assert numbers == {*range(30)} - {1, 4, 7, 10}
    assert not any((checkpoint / "input").glob("*.log"))  # Spark's own offset log is the log
    stored = b"".join(path.read_bytes() for path in checkpoint.rglob("*") if path.is_file())
    assert SECRET.encode() not in stored  # kafka-17
    assert main(["checkpoint", str(checkpoint), "--verify"]) == 0

    admin.delete_topics([topic])[topic].result(30)
    kafka.topic(3, topic)
    code, said = ended(started(kafka, topic, receiver, *options))
    assert (code, "it was made again" in said) == (1, True), said
    receiver.close()


@pytest.mark.timeout(1200)  # two starts of Spark
def test_kafka_1_whatever_is_killed_each_record_counts_once(kafka, receiver, tmp_path):
    """Frames beside a topic: the input log names the offsets. See test_kafka_sink.py, too."""
    topic, checkpoint, port = kafka.topic(3), tmp_path / "checkpoint", free_port()
    numbers, own = 0, ["--live", "yes", "--tcp", str(port)]
    for kill in (True, False):
        kafka.send(topic, *records(range(numbers, numbers + 3_000)))
        run = started(kafka, topic, receiver, "--checkpoint", str(checkpoint), own=own)
        send_frames(port, [b"tcp k9 %d" % n for n in range(numbers, numbers + 100)])
        numbers += 3_000
        wanted = {f"k{key}": {*range(key, numbers, 5)} for key in range(5)}
        wanted["k9"] = {*range(100)} if kill else {*range(100), *range(3_000, 3_100)}

        def all_there(run=run, wanted=wanted, kill=kill):
            assert run.poll() is None, run.stderr.read()
            found = {key: {*some} for key, some in counted(received(receiver)).items()}
            if kill:  # some records are not processed, or not committed
                return len(found.get("k0", ())) > 100 and found.get("k9") == wanted.get("k9")
            return found == wanted

        eventually(all_there, 2 * PATIENCE)
        if kill:
            os.killpg(run.pid, signal.SIGKILL)
            ended(run)
    run.send_signal(signal.SIGTERM)
    code, said = ended(run)
    assert code == 0, said
    assert any((checkpoint / "input").glob("*.log"))
