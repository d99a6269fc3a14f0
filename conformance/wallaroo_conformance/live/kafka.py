"""Rules that only runs against Kafka's brokers can keep or break: a table of runs.

Each run has two topics of its own (`wallaroo_conformance.live.topics`).
"""

from __future__ import annotations

from collections.abc import Mapping

from wallaroo.engine import load_engine
from wallaroo_conformance.judge.law import Law
from wallaroo_conformance.live.kafka_run import KafkaRun, KafkaScenario
from wallaroo_conformance.live.served import home_of

_LAWS = {
    "kafka-1": "whoever has the log and the topic has the same sequence, after kills and restarts, "
    "too",
    "kafka-5": "a topic that lacks what comes next, or was made again, is refused by name; with "
    "--accept-gaps a run goes on with what is there",
    "kafka-6": "a partition that is added to a topic is read from its first record on",
    "kafka-10": "a bounded read gives the same bytes as without a broker",
    "kafka-11": "records of a transaction that is taken back are not read",
    "kafka-12": "brokers that cannot be reached are named and waited for",
    "kafka-15": "after kills and restarts readers of committed records see each output once",
    "kafka-16": "a run that a later one has shut out ends with exit 1 and says so; where brokers "
    "have forgotten a position, outputs come again only if that is accepted",
    "scale-2": "with another number of partitions, and on another engine, readers of committed "
    "records see each output once, and a run from the old checkpoint is refused",
}
KAFKA_LAWS: Mapping[str, Law] = {rule: Law(rule, "brokers", says) for rule, says in _LAWS.items()}
"""What must hold against brokers: one law for each rule."""

_KILLS = 4


# -- the table -------------------------------------------------------------------------------------


def _bounded(run: KafkaRun) -> None:
    run.topics.send(commit=True)
    run.topics.send(commit=False)
    run.topics.send()
    run.serve()
    run.end(stop=False)
    run.delivered(exact=True)


def _killed(run: KafkaRun) -> None:
    run.topics.send(commit=True)
    run.serve()
    for number in range(_KILLS):
        run.topics.send(commit=number % 2 == 0)
        if number % 2:
            run.delivered()
        run.kill_and_restart()
    run.topics.send()
    run.delivered()
    run.end()
    run.delivered()


def _grown(run: KafkaRun) -> None:
    run.topics.send()
    run.serve()
    run.delivered()
    run.topics.add_partition()
    run.topics.send()
    run.delivered()
    run.end()


def _cut(run: KafkaRun) -> None:
    _round(run)
    run.topics.delete_records(were_read=True)
    run.topics.send()
    run.topics.delete_records(were_read=False)
    run.refused("kafka-5", run.checkpoint, run.topics.read, "partition", "offset", "--accept-gaps")
    run.serve_from(run.checkpoint, accept_gaps=True)
    run.topics.send()
    run.delivered()
    run.end()


def _made_again(run: KafkaRun) -> None:
    _round(run)
    run.topics.make_again()
    run.topics.send()
    run.topics.send()  # so it has what stands where the run would go on
    run.refused("kafka-5", run.checkpoint, run.topics.read, "made again")


def _away(run: KafkaRun) -> None:
    run.topics.send()
    run.serve_before_brokers()
    run.end()


def _forgotten(run: KafkaRun) -> None:
    run.topics.send()
    run.serve()
    run.delivered()
    run.handle.kill()
    run.topics.delete_positions()
    repeated = run.refused_or_served("in/0", "--accept-repeats")
    if repeated:
        run.serve_from(run.checkpoint, accept_repeats=True)
    run.topics.send()
    run.delivered(repeated=repeated)
    run.end()


def _shut_out(run: KafkaRun) -> None:
    _round(run)
    copy = run.copied()
    run.serve()
    first = run.handle
    run.serve_from(copy)
    run.topics.send()
    run.delivered()
    run.end()
    run.handle = first
    said = run.ended(("kafka-16",), 1).problem or ""
    if "in/0" not in said or "another run" not in said:
        run.broken(("kafka-16",), f"it is not said that another run shuts it out: {said}")
    run.delivered()


def _moved(run: KafkaRun) -> None:
    _round(run)
    checkpoint, home = run.checkpoint, home_of(run.checkpoint)
    for name, engine, partitions in (("moved", run.other, 3), ("moved again", home, 1)):
        checkpoint = run.moved("scale-2", checkpoint, name, engine, partitions)
        run.topics.send()
        run.serve_from(checkpoint, None if engine == home else load_engine(engine))
        run.delivered()
        run.end()
    run.refused("scale-2", run.checkpoint, "in/0")
    run.delivered()


def _round(run: KafkaRun) -> None:
    run.topics.send()
    run.serve()
    run.delivered()
    run.end()


SCENARIOS = (
    KafkaScenario(("kafka-11", "kafka-10"), _bounded, "end", recovers=False),
    KafkaScenario(("kafka-6",), _grown, recovers=False),
    KafkaScenario(("kafka-15", "kafka-1"), _killed),
    KafkaScenario(("kafka-5",), _cut),
    KafkaScenario(("kafka-5",), _made_again),
    KafkaScenario(("kafka-12",), _away, recovers=False),
    KafkaScenario(("kafka-16",), _forgotten),
    KafkaScenario(("kafka-16",), _shut_out, two_at_once=True),
    KafkaScenario(("scale-2",), _moved),
)
