"""A timed case: an application with graphs, keys and windows, and its records, as one value.

Times and durations are small numbers of nanoseconds, so that edges of windows are met often. A step
finds its origin by counting back from itself, modulo the number of nodes, so that a case with any
step left out is still a case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from wallaroo.engine import Isolation, OnError
from wallaroo.records import End, Frame, Record, Tick, Value
from wallaroo.trace import canonical_json
from wallaroo_conformance.cases.timed.marks import CODED
from wallaroo_conformance.cases.timed.operators import ALTERING, decoded

FORMAT = "wallaroo-timed-case/1"

SOURCES = ("first", "second", "third")

Form: TypeAlias = Literal["pipelines", "builder"]
WindowKind: TypeAlias = Literal["range", "session", "count"]
What: TypeAlias = Literal["frame", "tick", "end", "failed", "exited"]


@dataclass(frozen=True)
class SourceSpec:
    """A source.

    Args:
        event_time: name of its function, `None`: event times are arrival times.
        idle_after: nanoseconds.
        generator: its frames are a generator's values.
    """

    event_time: str | None = "own_time"
    idle_after: int | None = None
    generator: bool = False


@dataclass(frozen=True)
class WindowSpec:
    """Windows; parameters that a kind does not have are left out.

    Args:
        kind: range, session or count windows.
        size: the range, the gap (nanoseconds) or the count.
        slide: of range windows; `None`: the range.
        delay: nanoseconds.
        late: the policy.
        timeout: of count windows, nanoseconds.
    """

    kind: WindowKind = "range"
    size: int = 10
    slide: int | None = None
    delay: int = 0
    late: str = "dead-letter"
    timeout: int | None = None


@dataclass(frozen=True)
class TimedStep:
    """A step.

    Args:
        operator: name of its computation, aggregation or key extractor; ``collect`` or ``merge``.
        origin: which node it takes messages from, counted back: 0 is the one before it. In the
            builder's form: the number of its pipeline.
        other: of a merge: the other side, counted likewise.
        window: of an aggregation.
        route: in the builder's form, the partition function of a step with state or windows;
            `None`: all messages have one key.
        sink: its messages also go to a sink of their own.
    """

    operator: str = "same"
    origin: int = 0
    other: int = 0
    window: WindowSpec | None = None
    route: str | None = None
    sink: bool = False


@dataclass(frozen=True)
class Entry:
    """A record: a frame or value, a tick, a source's end, or its end because it failed or exited.

    Args:
        what: which of these.
        source: the source's number; ignored for a tick.
        at: arrival time in nanoseconds; a time before the last record's counts as that.
        payload: of a frame; decoded, of a value.
    """

    what: What = "frame"
    source: int = 0
    at: int = 0
    payload: bytes = b"a 0 m"


def fitting(entry: Entry, sources: Sequence[SourceSpec]) -> Entry:
    """Return a record that its source can give: only a generator gives messages, and can fail."""
    if entry.what == "tick":
        return replace(entry, source=0)
    if not sources[entry.source].generator:
        return replace(entry, what="end") if entry.what in ("failed", "exited") else entry
    if entry.what == "frame":
        try:
            if decoded(entry.payload) is None:
                return replace(entry, payload=Entry.payload)
        except ValueError:
            return replace(entry, payload=Entry.payload)
    return entry


@dataclass(frozen=True)
class TimedCase:
    """An application and its records.

    Args:
        sources: one to three.
        steps: in the order of the calls.
        inputs: the records; a source that has ended gives no more, these are left out.
        ended: every source ends after them.
        form: of the API.
        expire_after: of all state partitions, nanoseconds.
        shared: all state computations of one kind share a state partition.
        codec: the application has a codec of its own.
        done: pipelines end with `done`, so only steps with a sink of their own give outputs.
        batches: sizes of the micro-batches; `None`: all at once.
        number: of partitions; `None`: the engine's own choice.
        isolation: the engine's mode.
        on_error: what a dead letter does to the run.
        small: with the engine's small thresholds (`Capabilities.small`).
    """

    sources: tuple[SourceSpec, ...] = (SourceSpec(),)
    steps: tuple[TimedStep, ...] = ()
    inputs: tuple[Entry, ...] = ()
    ended: bool = True
    form: Form = "pipelines"
    expire_after: int | None = None
    shared: bool = False
    codec: bool = False
    batches: tuple[int, ...] | None = None
    number: int | None = None
    isolation: Isolation = "isolated"
    on_error: OnError = "skip"
    small: bool = False
    done: bool = False

    @property
    def messages(self) -> int:
        """How many frames and values it has."""
        return sum(entry.what == "frame" for entry in self.inputs)

    @property
    def alters(self) -> bool:
        """Whether a component alters what it is only to read."""
        components = [*[step.operator for step in self.steps], *[step.route for step in self.steps]]
        return not ALTERING.isdisjoint(
            [*components, *[source.event_time for source in self.sources]]
        )

    @property
    def changed_by_codec(self) -> bool:
        """Whether the case's own codec changes a message: then it shows how often one is copied."""
        return self.codec and any(CODED.encode() in entry.payload for entry in self.inputs)

    @property
    def input_log(self) -> list[Record]:
        """The records."""
        records: list[Record] = []
        ended: set[int] = set()
        latest = 0
        for entry in self.inputs:
            latest = max(latest, entry.at)
            if entry.what == "tick":
                records.append(Tick(entry.at))
            elif entry.source not in ended:
                records.append(self._record(entry))
                if entry.what != "frame":
                    ended.add(entry.source)
        if self.ended:
            left = [number for number in range(len(self.sources)) if number not in ended]
            records += [End(SOURCES[number], latest) for number in left]
        return records

    def _record(self, entry: Entry) -> Record:
        name = SOURCES[entry.source]
        if entry.what == "end":
            return End(name, entry.at)
        if entry.what == "failed":
            return End(name, entry.at, "ValueError", "the generator failed")
        if entry.what == "exited":
            return End(name, entry.at, "SystemExit", "the generator exited", ends_run=True)
        if self.sources[entry.source].generator:
            return Value(name, decoded(entry.payload), entry.at)
        return Frame(name, entry.payload, entry.at)

    def to_json(self) -> dict[str, Any]:
        """Return the case as JSON values; a payload is text with a character for each byte."""
        form: dict[str, Any] = {"format": FORMAT, **vars(self)}
        if not self.done:
            del form["done"]  # cases were stored before there was such a field
        form["sources"] = [{**vars(source)} for source in self.sources]
        form["steps"] = [
            {**vars(step), "window": None if step.window is None else {**vars(step.window)}}
            for step in self.steps
        ]
        form["batches"] = None if self.batches is None else [*self.batches]
        form["inputs"] = [
            [entry.what, entry.source, entry.at, entry.payload.decode("latin-1")]
            for entry in self.inputs
        ]
        return form

    def canonical_json(self) -> str:
        """Return the case's canonical JSON text: the same for equal cases."""
        return canonical_json(self.to_json())
