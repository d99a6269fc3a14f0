"""The whole state of a checkpoint as plain values, whichever engine wrote it.

With it, `wallaroo rerun --from` begins where the checkpoint stands, and says beforehand why a run
would refuse it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from wallaroo.operations import Windowed
from wallaroo.topology import Application, Step
from wallaroo.transport.checkpoint import (
    IDENTITY,
    CheckpointError,
    describe_topology,
    identify,
    read_identity,
)
from wallaroo.transport.old_states import FreshStates, Place, refuse_old_states


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
        step: the step's number among the window steps of the checkpoint's topology.
        key: the key, encoded.
        form: of sessions and count windows `wallaroo.windowing.kinds.KeyedKind.form`; of range
            windows the accumulators by the numbers of their panes.
    """

    step: int
    key: bytes
    form: Any


class StoredTime(NamedTuple):
    """The time of a source: the greatest event time, the last frame's arrival time, its end."""

    greatest: int | None
    last_frame: int | None
    ended: bool


@dataclass(frozen=True)
class StoredState:
    """All that a checkpoint's state says; a checkpoint without any is at position 0.

    Args:
        position: number of the first record whose effect is not in it.
        now: arrival time of the latest record.
        first: arrival time of the first record; `None`: there was none.
        sources: their times, by name.
        watermarks: of the window steps, in their order.
        entities: the state entities.
        windows: the open windows.
    """

    position: int = 0
    now: int = 0
    first: int | None = None
    sources: Mapping[str, StoredTime] = field(default_factory=dict)
    watermarks: Sequence[float] = ()
    entities: Sequence[StoredEntity] = ()
    windows: Sequence[StoredWindows] = ()


def window_steps_now(topology: Sequence[str], application: Application) -> dict[int, int]:
    """Return where the window steps of a checkpoint are in an application of today.

    Args:
        topology: that of the checkpoint's identity.
        application: the application.

    Returns:
        Of each step whose name and windows are as they were: its number then, and its number now.
    """
    before, now = _window_lines(topology), _window_lines(describe_topology(application))
    if topology == describe_topology(application):
        return {number: number for number in range(len(now))}
    return {
        number: now.index(line)
        for number, line in enumerate(before)
        if before.count(line) == now.count(line) == 1
    }


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
    except CheckpointError as error:
        found.append(str(error))
    fresh = FreshStates(application)
    samples: dict[Place, bytes] = {}
    for entity in state.entities:
        samples.setdefault(Place(entity.partition), entity.state)
    steps_now = window_steps_now(identity.topology, application)
    names = [
        node.operation.aggregation.name
        for node in application.nodes
        if isinstance(node, Step) and isinstance(node.operation, Windowed)
    ]
    for windows in state.windows:
        if windows.step in steps_now and (part := first_accumulator(windows.form)):
            samples.setdefault(Place(names[steps_now[windows.step]], True), part)
    differences = [
        difference
        for place, data in samples.items()
        if (difference := fresh.difference(place, data)) is not None
    ]
    try:
        refuse_old_states(directory, differences)
    except CheckpointError as error:
        found.append(str(error))
    return found


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


def _window_lines(topology: Sequence[str]) -> list[str]:
    """Return what a topology says of each window step, without its pipeline and position."""
    return [line.partition(": ")[2] for line in topology if ", windows: " in line]
