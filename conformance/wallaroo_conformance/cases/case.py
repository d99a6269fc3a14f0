"""A case: one application and its input, as one value.

Frozen dataclasses over the catalogue of operators, with a canonical JSON form. Sources and steps
are nodes with numbers of their own; a step names the nodes that it takes messages from, so any part
of a case can be left out and all others keep their places. Times and durations are small numbers of
nanoseconds, so that edges of windows are met often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from wallaroo.engine import Isolation, OnError
from wallaroo.trace import canonical_json
from wallaroo_conformance.cases.operators import AGGREGATIONS, ALTERING, STATEFUL, value_of
from wallaroo_conformance.cases.operators.marks import CODED, ENDS_THE_RUN

FORMAT = "wallaroo-case/1"

Shape: TypeAlias = Literal["single", "keyed", "u64"]
Form: TypeAlias = Literal["builder", "pipelines"]
WindowKind: TypeAlias = Literal["range", "session", "count"]
What: TypeAlias = Literal["frame", "tick", "end", "failed", "exited", "tombstone", "hole"]

APPLICATION = "case"
SOURCES = ("first", "first way", "first_way")
PARTITIONS = (
    *("north", "north sea", "north_sea"),  # drawn by chance; the tour has all
    *("North sea", "north sea ", "n\u00f6rth", "no\u0308rth", "north" * 50, f"{'north' * 50}."),
)
"""Names that make the same identifier, or are equal but for case, accents, blanks, or length."""
TOPICS_READ, TOPICS_WRITTEN = (1, 2, 3), (1, 3, 5, -1)
"""How many partitions a topic has: a source's at first, and a sink's."""
FIRST_STEP = len(SOURCES)
"""The least number of a step; sources have the numbers before."""


@dataclass(frozen=True)
class SourceSpec:
    """A source.

    Args:
        id: its node's number; it has the name of this number in `SOURCES`.
        decoder: name of its decoder.
        event_time: name of its function, `None`: event times are arrival times.
        idle_after, max_ahead: nanoseconds; without an event time there is no `max_ahead`.
        generator: its decoder makes a generator's values of its frames; these have no payload.
        topic: how many partitions of a Kafka topic it reads at first; 0: it has no topic.
    """

    id: int = 0
    decoder: str = "text"
    event_time: str | None = None
    idle_after: int | None = None
    generator: bool = False
    topic: int = 0
    max_ahead: int | None = None


@dataclass(frozen=True)
class PartitionSpec:
    """A state partition.

    Args:
        shape: in the builder's form `to_stateful`, `to_state_partition` or
            `to_state_partition_u64`.
        builder: name of its builder.
        keys: name of the list of its keys; `None`: any key. Ignored if it is `single`.
        expire_after: nanoseconds.
    """

    shape: Shape = "single"
    builder: str = "Notebook"
    keys: str | None = None
    expire_after: int | None = None


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
class StepSpec:
    """A step.

    Args:
        id: its node's number.
        operator: name of its computation, aggregation or key extractor; ``collect`` or ``merge``.
        origins: the nodes that it takes messages from: two for a merge, else one.
        parallel: `to_parallel` instead of `to`; for stateless steps.
        partition: index of its state partition; for steps with state.
        route: in the builder's form, its partition function; `None`, for windows only: all messages
            have one key.
        window: of an aggregation.
    """

    id: int
    operator: str = "identity"
    origins: tuple[int, ...] = (0,)
    parallel: bool = False
    partition: int = 0
    route: str | None = "by_text"
    window: WindowSpec | None = None


@dataclass(frozen=True)
class SinkSpec:
    """A sink.

    Args:
        origin: the node that it takes messages from.
        encoder: name of its encoder.
        topic: how many partitions the Kafka topic has that it writes to; -1: that has not been
            asked; 0: it has no topic.
    """

    origin: int = 0
    encoder: str = "line"
    topic: int = 0


@dataclass(frozen=True)
class Input:
    """A record: a frame or value, a tick, a source's end, or its end because it failed or exited.

    Of a Kafka topic: a record or a tombstone, which are made of a payload of three parts, a hole,
    or a partition's end.

    Args:
        source: the source's number; 0 for a tick.
        payload: of a frame; of a value, decoded.
        at: arrival time in nanoseconds; a time before the last record's counts as that.
        what: which of these.
        partition: of a topic. One that the source does not read at first is added there.
    """

    source: int = 0
    payload: bytes = b""
    at: int = 0
    what: What = "frame"
    partition: int = 0


@dataclass(frozen=True)
class ConformanceCase:
    """An application and its input.

    Args:
        sources: one to three.
        steps: in the order of the calls. In the builder's form each source has a row of its own:
            no node leads to two steps, and the rows follow each other in the sources' order.
        sinks: those of one node are made by one call, right behind the node's. Nodes that lead
            nowhere end with `done`.
        partitions: those that steps name by index.
        inputs: the records in the order received; a source that has ended gives no more, these are
            left out.
        ended: every source ends after them.
        form: of the API.
        codec: the application has a codec of its own.
        batches: sizes of the batches; the records left after them are one more; `None`: one batch.
        number: of partitions; `None`: the engine's own choice.
        isolation: the engine's mode.
        on_error: what a dead letter does to the run.
        small: with the engine's small thresholds (`Capabilities.small`).
    """

    sources: tuple[SourceSpec, ...] = (SourceSpec(),)
    steps: tuple[StepSpec, ...] = ()
    sinks: tuple[SinkSpec, ...] = (SinkSpec(),)
    partitions: tuple[PartitionSpec, ...] = (PartitionSpec(),)
    inputs: tuple[Input, ...] = ()
    ended: bool = False
    form: Form = "builder"
    codec: bool = False
    batches: tuple[int, ...] | None = None
    number: int | None = None
    isolation: Isolation = "isolated"
    on_error: OnError = "skip"
    small: bool = False

    @property
    def messages(self) -> int:
        """How many frames and values it has."""
        return sum([entry.what in ("frame", "tombstone") for entry in self.inputs])

    @cached_property
    def with_topics(self) -> bool:
        """Whether it reads or writes Kafka."""
        return any([source.topic for source in self.sources] + [sink.topic for sink in self.sinks])

    @property
    def alters(self) -> bool:
        """Whether what is only read is altered: by user code, or by being pickled."""
        used = [*[step.operator for step in self.steps], *[step.route for step in self.steps]]
        used += [spec.builder for spec in self.partitions]
        return not ALTERING.isdisjoint([*used, *[source.event_time for source in self.sources]])

    @property
    def shows_copies(self) -> bool:
        """Whether it is seen how often there is a copy.

        It is if what cannot be read back ends the run, and if the case's own codec changes a
        message, or ends the run where it refuses one, or a state.
        """
        own = self.asks_codec
        return any(_shows_copies(entry.payload, by_codec=own) for entry in self.inputs)

    @property
    def asks_codec(self) -> bool:
        """Whether its own codec is asked; in `trusting` mode, for what is held or made (key-5)."""
        copied = [self.isolation == "isolated", *map(self.meets_state, self.steps)]
        return self.codec and any([*copied, *[source.generator for source in self.sources]])

    def row(self, source: int = 0) -> list[StepSpec]:
        """Return the steps that stand in one row behind a source, in the builder's form all."""
        return self._rows[source]

    @cached_property
    def _rows(self) -> dict[int, list[StepSpec]]:
        rows: dict[int, list[StepSpec]] = {source.id: [] for source in self.sources}
        for source, row in rows.items():
            last = source
            for step in self.steps:
                if step.origins == (last,):
                    row.append(step)
                    last = step.id
        return rows

    @property
    def plain_row(self) -> list[StepSpec] | None:
        """All steps, if they stand in one row from the only source to the only sink."""
        row = self.row(self.sources[0].id)
        last = row[-1].id if row else self.sources[0].id
        alone = len(self.sources) == 1 and [sink.origin for sink in self.sinks] == [last]
        return row if alone and len(row) == len(self.steps) else None

    def feeding(self) -> dict[int, set[int]]:
        """Return for each node the sources that messages come from."""
        found = {source.id: {source.id} for source in self.sources}
        for step in self.steps:
            found[step.id] = set().union(*[found[origin] for origin in step.origins])
        return found

    def stateful(self) -> Iterator[StepSpec]:
        """Yield the steps over state partitions."""
        return (step for step in self.steps if step.operator in STATEFUL)

    def meets_state(self, step: StepSpec) -> bool:
        """Whether messages meet a state entity or a window at a step."""
        return step.operator in STATEFUL or step.operator in AGGREGATIONS

    def to_json(self) -> dict[str, Any]:
        """Return the case as JSON values; a payload is text with a character for each byte."""
        # By hand, since `dataclasses.asdict` takes longer than an engine takes for the case.
        form: dict[str, Any] = {"format": FORMAT}
        form |= {name: getattr(self, name) for name in _FIELDS}
        form["sources"] = [{**vars(source)} for source in self.sources]
        form["steps"] = [
            {
                **vars(step),
                "origins": [*step.origins],
                "window": None if step.window is None else {**vars(step.window)},
            }
            for step in self.steps
        ]
        form["sinks"] = [{**vars(sink)} for sink in self.sinks]
        form["partitions"] = [{**vars(partition)} for partition in self.partitions]
        form["batches"] = None if self.batches is None else [*self.batches]
        form["inputs"] = [
            [entry.source, entry.payload.decode("latin-1"), entry.at, entry.what, entry.partition]
            for entry in self.inputs
        ]
        return form

    def canonical_json(self) -> str:
        """Return the case's canonical JSON text: the same for equal cases."""
        return canonical_json(self.to_json())


_FIELDS = tuple([field.name for field in fields(ConformanceCase)])


def fitting(entry: Input, sources: Sequence[SourceSpec]) -> Input:
    """Return a record that its source can give.

    Only a generator gives messages, and can fail; only a topic has tombstones and holes.
    """
    if entry.what == "tick":
        return replace(entry, source=0)
    if entry.what in ("tombstone", "hole"):
        of_topic = any(source.topic for source in sources if source.id == entry.source)
        return entry if of_topic else replace(entry, what="frame")
    generators = [one for one in sources if one.generator and one.id == entry.source]
    if not generators:
        return replace(entry, what="end") if entry.what in ("failed", "exited") else entry
    if entry.what == "frame":
        if _shows_copies(entry.payload, by_codec=False):  # a generator's values are copied
            return replace(entry, payload=b"", what="exited")
        try:
            given = value_of(generators[0].decoder, entry.payload)
        except ValueError:
            given = None
        return entry if given is not None else replace(entry, payload=b"a 0 m")
    return entry


def ends(nodes: Sequence[int], steps: Sequence[StepSpec], encoder: str) -> tuple[SinkSpec, ...]:
    """Return a sink for each node that no step takes messages from."""
    taken = {origin for step in steps for origin in step.origins}
    return tuple([SinkSpec(node, encoder) for node in nodes if node not in taken])


def _shows_copies(payload: bytes, *, by_codec: bool) -> bool:
    refused = b"gipr" if by_codec else b"gi"
    ends_the_run = ENDS_THE_RUN.encode() in payload and any(mark in payload for mark in refused)
    return ends_the_run or (by_codec and CODED.encode() in payload)
