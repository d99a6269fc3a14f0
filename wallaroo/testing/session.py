r"""Step through an application in a test: send, let time pass, look (time-1, window-11).

No ports, no threads, no sleeping: time is a number that the test moves on.

>>> import wallaroo
>>> from wallaroo.testing import Session
>>> class Count:
...     def initial_accumulator(self):
...         return 0
...     def update(self, message, accumulator):
...         return accumulator + 1
...     def output(self, key, accumulator, window):
...         return f"{accumulator} up to {window.end // 10**9} s\n"
>>> @wallaroo.decoder(header_length=4, length_fmt=">I")
... def decode(payload):
...     return payload
>>> @wallaroo.encoder
... def encode(text):
...     return text
>>> application = wallaroo.build_application(
...     "counting",
...     wallaroo.source("hits", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
...     .to(wallaroo.range_windows(wallaroo.seconds(10)).over(Count))
...     .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)),
... )
>>> session = Session(application)
>>> session.send("hits", b"a", b"b")
>>> session.advance(wallaroo.seconds(12))
>>> session.output
[b'2 up to 10 s\n']
"""

from __future__ import annotations

from typing import Any

from wallaroo.config import GenSourceConfig
from wallaroo.engine import Case, Isolation, OnError, Stepper, load_engine
from wallaroo.errors import WallarooParameterError
from wallaroo.generating import generate
from wallaroo.kafka import KafkaSourceConfig
from wallaroo.keys import Key
from wallaroo.records import Assigned, Consumed, End, Record, Tick
from wallaroo.testing.input import Topics, record_of, refuse_unknown
from wallaroo.testing.results import Result, result_of
from wallaroo.times import duration
from wallaroo.topology import Application, SinkId
from wallaroo.trace import DeadLetter, OpenWindow
from wallaroo.user_code.slips import slips_logged

_STEPPING = "reference"  # says when something is due for engines that cannot


class Session:
    """An application that is run step by step.

    Args:
        application: what to run.
        engine: an installed engine's name. One that cannot be stepped runs the log so far whenever
            it is asked for results, which are a function of the log.
        start: the time at which the session begins, in nanoseconds since 1970.
        isolation: as for `wallaroo.testing.run`.
        on_error: as for `wallaroo.testing.run`.

    Raises:
        WallarooParameterError: there is no such `isolation` or `on_error`.
        EngineNotFoundError: there is no such engine.
        UnsupportedTopology: the engine cannot run this application (build-2).
    """

    def __init__(
        self,
        application: Application,
        engine: str = "reference",
        start: int = 0,
        *,
        isolation: Isolation = "isolated",
        on_error: OnError = "skip",
    ) -> None:
        refuse_unknown(isolation, on_error)
        application = slips_logged(application, pairs=isolation == "trusting")
        self._application = application
        self._engine = load_engine(engine)
        self._engine.check(application)
        self._how: dict[str, Any] = {"isolation": isolation, "on_error": on_error}
        stepping = self._engine if hasattr(self._engine, "stepper") else load_engine(_STEPPING)
        self._stepper: Stepper = stepping.stepper(application, **self._how)  # type: ignore[attr-defined]
        self._own_stepper = stepping is self._engine
        self._now = duration("Session(…): start", start, least=0)
        self._log: list[Record] = []
        self._ended: set[str] = set()
        self._topics = Topics(application)
        self._result: Result | None = None

    @property
    def now(self) -> int:
        """The session's time, in nanoseconds since 1970."""
        return self._now

    def send(self, source: str, *payloads: Any) -> None:
        """Let frames of a source arrive now; to a generator source, give values.

        To a Kafka source, give `wallaroo.KafkaRecord`s, or values. Unless `assign` has said which
        partitions it reads, they are those that the source lists, or that the first call has
        records of; others are added when their first record comes (kafka-6).

        Raises:
            WallarooParameterError: there is no such source, it has ended, or a payload is not
                bytes.
        """
        given = [record_of(self._application, source, (self._now, payload)) for payload in payloads]
        if source in self._ended:
            raise WallarooParameterError(f"source {source!r} has ended; it gives nothing more")
        consumed = [record for record in given if isinstance(record, Consumed)]
        for record in self._topics.read(consumed) if consumed else given:
            self._take(record)

    def assign(self, source: str, *partitions: int) -> None:
        """Let a Kafka source read these partitions from now on.

        Those of the first call hold its watermark back; one that is added later does so from its
        first record on (kafka-6, kafka-9).

        Raises:
            WallarooParameterError: there is no such source, or it is not one of Kafka.
        """
        node = self._application.sources.get(source)
        if node is None or not isinstance(node.config, KafkaSourceConfig):
            raise WallarooParameterError(f"{source!r} is not a Kafka source")
        added = tuple([(partition, 0, None) for partition in partitions])
        self._take(self._topics.assigned(Assigned(source, added, self._now)))

    def generate(self, source: str) -> None:
        """Let a generator source give all that it gives, now (graph-4).

        Raises:
            WallarooParameterError: there is no such source, it is not a generator, or it has ended.
        """
        node = self._application.sources.get(source)
        if node is None or not isinstance(node.config, GenSourceConfig) or source in self._ended:
            raise WallarooParameterError(f"{source!r} is not a generator source, or it has ended")
        self._ended.add(source)
        for record in generate(source, node.config.generator, lambda: self._now):
            self._take(record)

    def advance(self, nanoseconds: int) -> None:
        """Let time pass: one tick at each time at which time alone makes something due (time-1).

        Raises:
            WallarooParameterError: it is not a duration.
        """
        end = self._now + duration("advance(…): the time", nanoseconds, least=0)
        while (due := self._stepper.due()) is not None and due <= end:
            self._now = max(self._now, due)
            self._take(Tick(self._now))
        self._now = end

    def end(self, source: str | None = None) -> None:
        """End a source, or all that have not ended: they give nothing more (time-3).

        Raises:
            WallarooParameterError: there is no such source.
        """
        sources = self._application.sources
        if source is not None and source not in sources:
            raise WallarooParameterError(
                f"there is no source {source!r}; there are {', '.join(map(repr, sources))}"
            )
        for name in sources if source is None else [source]:
            if name not in self._ended:
                self._ended.add(name)
                self._take(End(name, self._now))

    @property
    def result(self) -> Result:
        """All that `wallaroo.testing.run` returns, as of now."""
        if self._result is None:
            if self._own_stepper:
                trace = self._stepper.trace()
            else:
                case = Case(self._application, list(self._log), **self._how)
                trace = self._engine.run(case)
            self._result = result_of(self._application, trace)
        return self._result

    @property
    def outputs(self) -> dict[SinkId, list[Any]]:
        """The outputs of each sink so far."""
        return self.result.outputs

    @property
    def output(self) -> list[Any]:
        """The outputs of the application's only sink so far.

        Raises:
            ValueError: it has none, or several.
        """
        return self.result.output

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """The dead letters so far."""
        return self.result.dead_letters

    @property
    def entities(self) -> dict[str, dict[Key, Any]]:
        """The state entities, as of the last record."""
        return self.result.entities

    @property
    def open_windows(self) -> list[OpenWindow]:
        """The open windows, by step, key and start."""
        return self.result.open_windows

    def _take(self, record: Record) -> None:
        self._log.append(record)
        self._result = None
        self._stepper.take(record)
