"""A run between two topics of its own, and what readers of the second one must see.

What must be in the second topic is what the reference says of the records in the first: byte by
byte if the read is bounded, else key by key, since then the engine chooses between partitions, and
each key stands in one partition.
"""

from __future__ import annotations

import logging
import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import wallaroo
from wallaroo.components import OwnState
from wallaroo.engine import Case, Engine, ServeOptions, load_engine
from wallaroo.errors import WallarooError
from wallaroo.kafka_records import partition_of
from wallaroo.testing.input import input_log_of
from wallaroo.topology import Application
from wallaroo_conformance.cases.operators.states import Notebook
from wallaroo_conformance.cases.operators.topics import keyed
from wallaroo_conformance.cases.operators.triples import ByLetter, RememberEach, triple
from wallaroo_conformance.live.door import Door, Told
from wallaroo_conformance.live.peers import wait_until
from wallaroo_conformance.live.served import ServedRun, lacking
from wallaroo_conformance.live.topics import WRITTEN, Topics

_INTERVAL = 60.0  # seconds between checkpoints: a kill comes between outputs and the next one


@dataclass(frozen=True)
class KafkaScenario:
    """A run.

    Args:
        rules: what it is about, the most particular first.
        script: what is done.
        until: where the source ends.
        recovers: the engine must recover.
        two_at_once: the engine must serve two runs in one process, so not be `one_at_a_time`.
    """

    rules: tuple[str, ...]
    script: Callable[[KafkaRun], None]
    until: str | None = None
    recovers: bool = True
    two_at_once: bool = False

    def refusal(self, engine: Engine) -> str:
        """Return why an engine cannot do it; empty: it can."""
        if self.two_at_once and getattr(engine, "one_at_a_time", False):
            return "it serves one run at a time"
        return lacking(engine, self.rules, recovers=self.recovers)


class KafkaRun(ServedRun):
    """An application that an engine serves from one topic to another; a context manager.

    Args:
        scenario: what is done.
        engine: the engine.
        brokers: their addresses.
        patience: seconds that any one thing may take.
        other: name of the engine that goes on with its checkpoint.

    Attributes:
        topics: the two topics.
    """

    def __init__(
        self, scenario: KafkaScenario, engine: Engine, brokers: str, patience: float, *, other: str
    ) -> None:
        super().__init__(
            *(engine, ServeOptions(stop_timeout=patience), patience),
            interval=_INTERVAL,
            recovers=engine.capabilities().recovery,
        )
        self.other = other
        self._rules = scenario.rules
        self._brokers = brokers
        self.topics = Topics(brokers, patience)
        self.application = _application(brokers, self.topics, scenario.until)

    def __enter__(self) -> Self:
        self.topics.make()
        return self

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "handle"):
            self.handle.kill()
        self.topics.delete()
        self._directory.cleanup()

    def copied(self) -> Path:
        """Return a copy of the checkpoint."""
        self.note("the checkpoint is copied")
        return Path(shutil.copytree(self.checkpoint, self.checkpoint.with_name("copy")))

    def serve_before_brokers(self) -> None:
        """Serve while nobody reaches the brokers, and let them be reached once that is said."""
        with Door(self._brokers) as door:
            self.application = _application(door.address, self.topics, None)
            self.note(f"serve, with brokers at {door.address}, where nobody listens")
            told = Told(door.address, door.open)
            logging.getLogger("wallaroo").addHandler(told)
            try:
                self.serve()
                said = "it is said that the brokers cannot be reached"
                self.topics.until(told.said.is_set, said)
                self.delivered()
            finally:
                logging.getLogger("wallaroo").removeHandler(told)

    def refused_or_served(self, *words: str) -> bool:
        """Serve from the checkpoint, and return whether that is refused, with these words."""
        try:
            self.serve()
        except WallarooError as error:
            if missing := [word for word in words if word not in str(error)]:
                self.broken(self._rules, f"it is not said {', '.join(missing)}: {error}")
            return True
        return False

    def end(self, *, stop: bool = True) -> None:
        """Wait for the end of the run, in order."""
        self.ended(self._rules, 0, stop=stop)

    def delivered(self, *, exact: bool = False, repeated: bool = False) -> None:
        """Wait until readers of committed records see what the reference says, once.

        Args:
            exact: partition by partition in their order; else key by key.
            repeated: some may have come again.
        """
        expected = self._expected()
        count = sum(map(len, expected.values()))
        found: Mapping[int, Sequence[Any]] = {}

        def are_there() -> bool:
            nonlocal found
            found = {
                number: [(one.key(), one.value(), one.timestamp()[1]) for one in messages]
                for number, messages in self.topics.messages(self.topics.written).items()
            }
            if repeated:
                found = {number: [*dict.fromkeys(sent)] for number, sent in found.items()}
            return sum(map(len, found.values())) >= count

        wait_until(are_there, self.patience)
        wanted, given = (dict(one) if exact else _by_key(one) for one in (expected, found))
        for place in {**wanted, **given}:
            right, got = wanted.get(place, []), given.get(place, [])
            if got != right:
                pairs = enumerate(zip(right, got, strict=False))
                differing = [at for at, (one, other) in pairs if one != other]
                same = (differing or [min(len(right), len(got))])[0]
                self.broken(
                    self._rules,
                    f"expected {len(right)} outputs at {place!r}, and {len(got)} are there; behind "
                    f"the first {same} come {got[same : same + 2]!r:.200}, not "
                    f"{right[same : same + 2]!r:.200}",
                )

    def _expected(self) -> dict[int, list[Any]]:
        """Return what the reference sends, by partition."""
        records = [
            wallaroo.KafkaRecord(
                *(one.value(), one.key(), (), one.timestamp()[1] * 1_000_000, self.topics.read),
                *(number, one.offset() or 0),
            )
            for number, there in self.topics.messages(self.topics.read).items()
            for one in [*self.topics.gone.get(number, ()), *there]
        ]
        bounded = _application(self._brokers, self.topics, "end")
        log = input_log_of(bounded, {"in": records}, end=True)
        [sent] = load_engine("reference").run(Case(bounded, log)).outputs.values()
        expected: dict[int, list[Any]] = {number: [] for number in range(WRITTEN)}
        for one in sent:
            place = partition_of(one.key, one.number, WRITTEN)
            expected[place].append((one.key, one.value, one.timestamp))
        return expected


def _application(brokers: str, topics: Topics, until: Any) -> Application:
    source = wallaroo.KafkaSourceConfig(
        topics.read, brokers, triple, event_time=wallaroo.kafka_timestamp, until=until
    )
    texts: Any = RememberEach("texts", OwnState(Notebook, "texts", None))
    pipeline: Any = wallaroo.source("in", source).key_by(ByLetter("letters")).to(texts)
    sink = wallaroo.KafkaSinkConfig(topics.written, brokers, keyed)
    return wallaroo.build_application("conformance", pipeline.to_sink(sink))


def _by_key(outputs: Mapping[int, Sequence[Any]]) -> dict[Any, Any]:
    found: dict[Any, list[Any]] = defaultdict(list)
    for number, sent in outputs.items():
        for one in sent:
            found[number, one[0]].append(one)
    return found
