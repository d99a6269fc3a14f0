"""The whole state of a checkpoint as plain values, whichever engine wrote it.

With it, `wallaroo rerun --from` begins where the checkpoint stands, and says beforehand why a run
would refuse it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from wallaroo.times import SourceMoment
from wallaroo.topology import Application, SinkId
from wallaroo.transport.changed_topology import (
    NOTHING_ACCEPTED,
    Held,
    accept_topology,
    held_edges,
    held_states,
)
from wallaroo.transport.checkpoint import INPUT
from wallaroo.transport.identity import IDENTITY, CheckpointError, identify, read_identity
from wallaroo.transport.logged import LoggedSource
from wallaroo.transport.old_states import FreshStates, Place
from wallaroo.transport.resumption import Stream
from wallaroo.windowing.kinds import KeyedKind, Panes, Ranges

Part: TypeAlias = Callable[[bytes], Any]
"""Returns an accumulator, in the form that is wanted, from its bytes."""


Name = TypeVar("Name", str, int)


class StoredEntity(NamedTuple):
    """A state entity.

    Args:
        partition: its state partition.
        key: its key, encoded.
        visited: the arrival time of its last visit; `None`: it does not expire.
        state: its state: pickled, or written by the application's codec.
    """

    partition: str
    key: bytes
    visited: int | None
    state: bytes


class StoredWindows(NamedTuple):
    """The open windows of a key at a step; accumulators are bytes, as states are.

    Args:
        step: its number in `StoredState.steps`.
        key: the key, encoded.
        form: of sessions and count windows `wallaroo.windowing.kinds.KeyedKind.form`; of range
            windows the accumulators by the numbers of their panes.
    """

    step: int
    key: bytes
    form: Any


@dataclass(frozen=True)
class StoredState:
    """All that a checkpoint's state says; a checkpoint without any is at position 0.

    Args:
        position: number of the first record whose effect is not in it.
        now: arrival time of the latest record.
        first: arrival time of the first record; `None`: there was none.
        sources: their times, by name.
        partitions: the state partitions' names.
        steps: the window steps, as they were.
        watermarks: theirs, in the same order.
        entities: the state entities; none that has expired by `now` (key-4).
        windows: the open windows.
        logged: what the log says of sources before the position; `None`: the run that was killed
            has left what it says of a later one.
        outputs: the numbers of outputs before the position, by sink, where they are stored.
        topics: number of partitions of each Kafka sink's topic, as of the first start (kafka-13).
        at: when it was stored, in nanoseconds since 1970.
        streams: of each sink whose peer remembers, before the position (sink-9).
    """

    position: int = 0
    now: int = 0
    first: int | None = None
    sources: Mapping[str, SourceMoment] = field(default_factory=dict)
    partitions: Sequence[str] = ()
    steps: Sequence[Place] = ()
    watermarks: Sequence[float] = ()
    entities: Sequence[StoredEntity] = ()
    windows: Sequence[StoredWindows] = ()
    logged: Mapping[str, LoggedSource] | None = field(default_factory=dict)
    outputs: Mapping[SinkId, int] = field(default_factory=dict)
    topics: Mapping[SinkId, int] = field(default_factory=dict)
    at: int = 0
    streams: Mapping[SinkId, Stream] = field(default_factory=dict)

    @property
    def parts(self) -> int:
        """Number of states and accumulators."""
        return len(self.entities) + sum([parts_in(windows.form) for windows in self.windows])

    @property
    def places(self) -> dict[Place, bytes]:
        """One stored state of each state partition, and one accumulator of each window step."""
        samples: dict[Place, bytes] = {}
        for entity in self.entities:
            samples.setdefault(Place(entity.partition), entity.state)
        for windows in self.windows:
            if part := first_accumulator(windows.form):
                samples.setdefault(self.steps[windows.step], part)
        return samples

    @property
    def held(self) -> list[Held]:
        """How much there is of each state partition and window step."""
        entities = Counter([entity.partition for entity in self.entities])
        parts = Counter[int]()
        for windows in self.windows:
            parts[windows.step] += parts_in(windows.form)
        held = [held_states(name, entities[name]) for name in self.partitions]
        for step, place in enumerate(self.steps):
            held.append(held_states(place.name, parts[step], place.shape))
        return held


def with_ends(
    times: Mapping[Name, SourceMoment], logged: Mapping[Name, LoggedSource]
) -> dict[Name, SourceMoment]:
    """Return the times of sources, and partitions; those that have ended by the log have ended."""
    found = dict(times)
    for name, source in logged.items():
        if source.ended or source.partitions:
            time = times.get(name, SourceMoment(None, None, ended=False))
            parts = with_ends(time.partitions, source.partitions)
            found[name] = time._replace(ended=time.ended or source.ended, partitions=parts)
    return found


def refusals(directory: Path, application: Application, state: StoredState) -> list[str]:
    """Return why a run of the application would refuse a checkpoint; empty: it would not.

    Args:
        directory: the checkpoint.
        application: the application.
        state: what is stored there.
    """
    found: list[str] = []
    path = directory / IDENTITY
    identity = read_identity(path)
    try:
        identify(path, identity.engine, application, None)
        if not identity.has_topology_of(application):
            edges = held_edges(identity, directory / INPUT, state.position, {}, {})
            held = [*state.held, *edges]
            accept_topology(directory, identity, application, held, NOTHING_ACCEPTED)
    except CheckpointError as error:
        found.append(str(error))
    try:
        FreshStates(application).refuse_old(directory, state.places.items())
    except CheckpointError as error:
        found.append(str(error))
    return found


def windows_from(form: Any, kind: Ranges | KeyedKind, watermark: float, part: Part) -> Any:
    """Return the windows of a key from the form in which they are stored.

    Args:
        form: see `StoredWindows`.
        kind: the windows' kind.
        watermark: the step's.
        part: returns an accumulator from its bytes.
    """
    if not isinstance(kind, Ranges):
        return kind.made(form, part)
    first = max(kind.first_with(min(form)), kind.first_open(watermark))
    return Panes(int(first), {number: part(data) for number, data in form.items()})


def with_parts(form: Any, change: Callable[[bytes], bytes]) -> Any:
    """Return the form of a key's windows with what `change` makes of each accumulator."""
    if isinstance(form, dict):
        return {number: change(part) for number, part in form.items()}
    if isinstance(form, tuple):
        return (*form[:-1], change(form[-1]))
    return [with_parts(session, change) for session in form]


def parts_in(form: Any) -> int:
    """Return the number of accumulators in the form of a key's windows."""
    return 1 if isinstance(form, tuple) else len(form)


def first_accumulator(form: Any) -> bytes:
    """Return the first accumulator, as bytes, in the form of a key's windows; empty: none."""
    forms = [form]
    for one in forms:
        if isinstance(one, bytes):
            return one
        if isinstance(one, (list, tuple)):
            forms += one
        elif isinstance(one, dict):
            forms += one.values()
    return b""
