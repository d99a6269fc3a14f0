"""Kafka to Kafka, exactly once: the part of `recovery.py` that kills a run and a real broker.

A sender fills a topic, the run counts and windows it into two others. In the end a run to the end
of the topic goes on with the checkpoint; one more, which nobody kills, reads the whole topic anew.
What readers of committed records get must be the same bytes, in each partition (kafka-14, -15).
"""

from __future__ import annotations

import argparse
import contextlib
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import cycle, islice, zip_longest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from confluent_kafka import Consumer, Producer, TopicPartition
from facts import Figures
from kafka_broker import Broker, broker
from recovery_cluster import Machines
from recovery_kafka_app import PARTITIONS
from recovery_runs import TARGETS, Run, kill_again

APPLICATION = Path(__file__).parent / "recovery_kafka_app.py"
_KEYS = 97
_AWAY = 5.0  # seconds that a broker is away, at most


class Sender:
    """Sends rising numbers to a topic, each once.

    Attributes:
        sent: how many numbers were given to the client.
        paused: none are due, but those that are sent at once.
    """

    def __init__(self, kafka: Broker, topic: str, rate: int) -> None:
        self.sent = 0
        self.paused = False
        self._running = True
        self._at_once = 0
        self._topic = topic
        self._rate = rate
        self._begin = int(time.time() * 1000)
        self._producer = Producer(
            {
                "bootstrap.servers": kafka.address,
                "enable.idempotence": True,
                "message.timeout.ms": 0,
                "log_level": 2,
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def at_once(self, number: int) -> None:
        """Send so many numbers as fast as it can, beside those that are due."""
        self._at_once += number

    def end(self) -> None:
        """Send no more, and wait until all that was sent is there."""
        self._running = False
        self._thread.join()
        self._producer.flush()

    def _run(self) -> None:
        due, before = 0.0, time.monotonic()
        while self._running:
            now = time.monotonic()
            due += 0.0 if self.paused else (now - before) * self._rate
            before = now
            while self.sent < due + self._at_once:
                key = self.sent % _KEYS
                at = self._begin + self.sent * 1000 // self._rate
                value = f"{key} {self.sent}"
                try:
                    self._producer.produce(
                        self._topic, value, partition=key % PARTITIONS, timestamp=at
                    )
                except BufferError:  # the broker is away
                    break
                self.sent += 1
            self._producer.poll(0.01)


class Reader:
    """Counts the committed records of a topic, in a thread."""

    def __init__(self, kafka: Broker, topic: str) -> None:
        self.count = 0
        self._consumer = Consumer(
            {"bootstrap.servers": kafka.address, "group.id": "counts", "log_level": 2}
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            messages = self._consumer.consume(1_000, 0.05)
            self.count += sum([message.error() is None for message in messages])


class Work:
    """The topics, and the commands that run the application on them.

    Args:
        kafka: the broker.
        engine: the options that name the engine and its checkpoint.
    """

    def __init__(self, kafka: Broker, engine: Sequence[str]) -> None:
        self._kafka = kafka
        self.source, *topics = [kafka.topic(PARTITIONS) for _ in range(5)]
        self.sinks, self.expected = topics[:2], topics[2:]
        self.live = self._command(self.sinks, engine)

    def finish(self, log: Path) -> int:
        """Go on to the end of the topic, then read it anew; return an exit code."""
        anew = self._command(self.expected, ["--engine", "reference"])
        with log.open("ab") as out:
            for command in (self.live, anew):
                done = subprocess.run([*command, "--bounded"], stderr=out, stdout=out, check=False)
                if done.returncode:
                    break
        return done.returncode

    def compare(self) -> tuple[int, list[str]]:
        """Return how many outputs an undisturbed run has made, and where readers get others."""
        count, faults = 0, []
        for topic, expected in zip(self.sinks, self.expected, strict=True):
            got = self._kafka.records(topic)
            for partition, records in self._kafka.records(expected).items():
                count += len(records)
                pairs = zip_longest(map(_bytes, got[partition]), map(_bytes, records))
                place = f"{topic}, partition {partition}"
                faults += [
                    f"{place}, output {index}: {mine}, and it should be {right}"
                    for index, (mine, right) in enumerate(pairs)
                    if mine != right
                ]
        return count, faults

    def _command(self, sinks: Sequence[str], engine: Sequence[str]) -> list[str]:
        return [
            *(sys.executable, "-m", "wallaroo", "run", str(APPLICATION), *engine, "--"),
            *("--brokers", self._kafka.address, "--source", self.source),
            *("--counts", sinks[0], "--windows", sinks[1]),
        ]


def kill(options: argparse.Namespace, engine: Sequence[str], directory: Path) -> int:
    """Kill a run, then its broker, again and again; return an exit code.

    Args:
        options: those of `recovery.py`.
        engine: the options that name the engine and its checkpoint.
        directory: for the log.
    """
    log = directory / "log"
    with contextlib.ExitStack() as up:
        kafka = up.enter_context(broker())
        machines = None
        if options.cluster:
            machines = up.enter_context(contextlib.closing(Machines(directory, options)))
        work = Work(kafka, [*engine, *(machines.options if machines else ())])
        reader = Reader(kafka, work.sinks[0])
        sender = Sender(kafka, work.source, options.rate)
        run = machines.run(work.live, log) if machines else Run(work.live, log)

        def kill_broker(_: str) -> bool:
            kafka.kill()
            time.sleep(random.uniform(0.0, _AWAY))
            kafka.start()
            return True

        kinds = (
            machines.victims(run, sender)
            if machines
            else [(target, run.kill_and_start) for target in TARGETS[options.engine]]
        )
        victims: list[tuple[str, Callable[[str], bool]]] = [
            *islice(cycle(kinds), options.seed - 1, options.seed - 1 + options.kills),
            *[("broker", kill_broker)] * options.broker_kills,
        ]
        try:
            killed, went_on = kill_again(
                run, victims, reader, options, lambda: f"{sender.sent} sent, {reader.count} counted"
            )
            sender.end()
            code = run.stop() or work.finish(log)
        finally:
            if run.process.poll() is None:
                run.kill("all")
        outputs, faults = work.compare()
    for said, times in Counter(run.ended).items():
        print(f"runs that ended by themselves: {times} times {said}")
    for fault in faults[:5]:
        print(f"FAULT: {fault}")
    print(f"kills: {dict(killed)}; last exit code {code}; log in {directory}")
    print(f"sent {sender.sent}; outputs {outputs}; of these wrong {len(faults)}")
    figures = Figures(__file__)
    for name, number in (*killed.items(), ("outputs", outputs), ("faults", len(faults))):
        figures.add(f"{options.engine}/{name}", number, "count")
    figures.write(options.json)
    return 1 if faults or run.ended or code or not went_on else 0


def _bytes(record: Any) -> tuple[bytes, bytes, int]:
    return record.key(), record.value(), record.timestamp()[1]
