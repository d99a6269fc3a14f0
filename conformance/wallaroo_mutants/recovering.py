"""Faults in how the reference engine recovers; killing a live server shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from wallaroo_conformance.killing import Mutant
from wallaroo_reference.checkpoints.collecting import Collector, Packed
from wallaroo_reference.checkpoints.head import Head
from wallaroo_reference.checkpoints.recovery import Recovery
from wallaroo_reference.checkpoints.store import Store
from wallaroo_reference.serving.checkpointing import Checkpoints
from wallaroo_reference.serving.outbox import Outbox

from wallaroo.transport.generators import Generators, LoggedSource
from wallaroo.windowing.kinds import Counts
from wallaroo_mutants.engine import edge


def _state_gone(_original: Any) -> Any:
    def restore(self: Recovery, machine: Any) -> None:
        if self.head is not None:
            machine.go_on_from(self.head.moment)

    return restore


def _position_before_state(original: Any) -> Any:
    def write(self: Store, head: Head, blobs: Any) -> None:
        moment = replace(head.moment, sequence=max(0, head.moment.sequence - 1))
        original(self, replace(head, moment=moment), blobs)

    return write


def _stored_once(original: Any) -> Any:
    def finish(self: Collector, next_blob: int) -> list[Packed]:
        packed: list[Packed] = original(self, next_blob)
        known: set[Any] = self.__dict__.setdefault("stored", set())
        for place, cells in enumerate(packed):
            for cell in list(cells):
                if (place, cell) in known:
                    del cells[cell]
                known.add((place, cell))
        self.first_blob = 0
        return packed

    return finish


def _replayed_twice(original: Any) -> Any:
    def later(self: Recovery) -> Iterator[Any]:
        yield from original(self)
        yield from original(self)

    return later


def _handed_on_is_sent(_original: Any) -> Any:
    return lambda self, sequence, made: True


def _begins_anew(original: Any) -> Any:
    def go_on_behind(self: Generators, logged: Mapping[str, LoggedSource]) -> None:
        original(self, {name: LoggedSource(source.ended) for name, source in logged.items()})

    return go_on_behind


def _last_time_only(original: Any) -> Any:
    def made(self: Counts, form: Any, loads: Any) -> Any:
        number, _, _, last, opened, part = form
        return original(self, (number, last, last, last, opened, part), loads)

    return made


def _at_the_end_only(original: Any) -> Any:
    return lambda self: original(self) if self._hurry else None


RECOVERY_MUTANTS: tuple[Mutant, ...] = (
    edge(
        "recover-1", "state gone after a kill", "a checkpoint that forgets",
        Recovery, "restore", _state_gone,
    ),
    edge(
        "recover-1", "last frame counted twice", "a position saved before the state",
        Store, "write", _position_before_state,
    ),
    edge(
        "recover-1", "changed entity not stored", "noted when it was built, not when it changed",
        Collector, "finish", _stored_once,
    ),
    edge(
        "recover-1", "log replayed twice", "each of two owners replays it",
        Recovery, "later", _replayed_twice,
    ),
    edge(
        "recover-2", "outputs under way lost", "what was handed on counts as sent",
        Outbox, "delivered", _handed_on_is_sent,
    ),
    edge(
        "recover-2", "generator begun anew", "its place is in memory alone",
        Generators, "go_on_behind", _begins_anew,
    ),
    edge(
        "recover-1", "bounds of count windows not stored", "the accumulator alone is stored",
        Counts, "made", _last_time_only,
    ),
)  # fmt: skip

RECOVERY_EQUIVALENT = replace(
    edge(
        "recover-1",
        "log run again",
        "all is repeated, in order",
        Checkpoints,
        "_begin",
        _at_the_end_only,
    ),
    rule="",
)
"""Without checkpoints everything is done again after a kill: the suite must not kill it."""
