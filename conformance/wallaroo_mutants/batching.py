"""Faults at a batch boundary: where one batch ends and the next begins."""

from __future__ import annotations

from typing import Any

from wallaroo_conformance.cases.operators import BUILDERS, Trait
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.places import Store

from wallaroo.engine import Case
from wallaroo.parts import second_part_of
from wallaroo.records import Frame, Record
from wallaroo.trace import DeadLetter

Batches = list[list[Record]]

_END_OF_BATCH: list[Record] = [Frame("", b"")]
"""Stands in the input for the end of a batch: no source has an empty name."""


def _stretches(case: Case) -> list[tuple[int, int]]:
    """Return where each batch begins and ends."""
    found: list[tuple[int, int]] = []
    position = 0
    for size in (*(case.batches or ()), len(case.records)):
        if position < len(case.records):
            found.append((position, min(position + size, len(case.records))))
            position += size
    return found


def without_last(case: Case) -> Batches:
    """Lose the last message of each batch that another follows."""
    stretches = _stretches(case)
    log = case.records
    kept = [record for begin, end in stretches[:-1] for record in log[begin : end - 1]]
    kept += [record for begin, end in stretches[-1:] for record in log[begin:end]]
    return [[record] for record in kept]


def last_again(case: Case) -> Batches:
    """Begin each batch with the last message of the one before."""
    log = case.records
    return [[record] for begin, end in _stretches(case) for record in log[max(begin - 1, 0) : end]]


def last_lost(case: Case) -> Batches:
    """Lose the last message of all."""
    return one_at_a_time(case)[:-1]


def one_at_a_time(case: Case) -> Batches:
    """Make batches of one message: an equivalent mutant."""
    return [[record] for record in case.records]


def ended(case: Case) -> Batches:
    """Make batches of one message, and mark the end of all."""
    return [*one_at_a_time(case), _END_OF_BATCH]


class Batched(Interpreter):
    """An interpreter that is told where a batch ends."""

    def feed(self, source: str, payloads: Any, at: int = 0) -> None:
        """Process frames; of no source: a batch has ended."""
        if source:
            super().feed(source, payloads, at)
        else:
            self.batch_ends()

    def batch_ends(self) -> None:
        """Do what the mutant does at a batch boundary."""


def with_ends(case: Case) -> Batches:
    """Mark the end of each batch that another follows."""
    fed: Batches = []
    stretches = _stretches(case)
    for number, (begin, end) in enumerate(stretches):
        fed += [[record] for record in case.records[begin:end]]
        if number + 1 < len(stretches):
            fed.append(_END_OF_BATCH)
    return fed


class ForgetsAtBoundary(Batched):
    """Keeps state in memory of the batch only."""

    def batch_ends(self) -> None:
        """Forget all entities."""
        self._stores = {name: Store(store.partition) for name, store in self._stores.items()}


class RetriesBatch(Batched):
    """Runs the last message of a batch again, and counts its effect on state twice."""

    def feed(self, source: str, payloads: Any, at: int = 0) -> None:
        """Remember what came last."""
        if source:
            self._last = (source, payloads[-1:], at)
        super().feed(source, payloads, at)

    def batch_ends(self) -> None:
        """Feed it again; only the outputs of the first time go out."""
        sequence, outputs = self.sequence, {sink: out[:] for sink, out in self.outputs.items()}
        letters = self.dead_letters[:]
        super().feed(*self._last)
        self.sequence, self.outputs, self.dead_letters = sequence, outputs, letters


_ENDING = tuple([type(BUILDERS[name]) for name in BUILDERS.having(Trait.ENDS_THE_RUN)])


class BySource(Interpreter):
    """Takes one source after the other where no entity is shared: an equivalent mutant."""

    def __init__(self, application: Any, **options: Any) -> None:
        super().__init__(application, **options)
        visitors: dict[str, set[str]] = {}
        for step in application.steps:
            partition = getattr(step.operation, "partition", None)
            if partition is not None:
                visitors.setdefault(partition, set()).add(step.pipeline)
        self._apart = all(len(pipelines) == 1 for pipelines in visitors.values())
        self._apart = self._apart and not self._stop_on_error and not second_part_of(application)
        for part in application.partitions:
            self._apart = self._apart and not isinstance(part.builder.component, _ENDING)
        self._kept: list[tuple[int, str, bytes]] = []

    def feed(self, source: str, payloads: Any, at: int = 0) -> None:
        """Keep frames for later, but those that could end the run."""
        if not source:
            self._drain()
            return
        if not self._apart:
            super().feed(source, payloads, at)
            return
        for payload in payloads:
            if b"quit" in payload or b"halt" in payload:
                self._drain()
                self._apart = False
                super().feed(source, [payload], at)
            elif self._apart:
                self._kept.append((self.sequence, source, payload))
                self.sequence += 1
            else:
                super().feed(source, [payload], at)

    def _drain(self) -> None:
        after = self.sequence
        for sequence, source, payload in sorted(self._kept, key=lambda kept: (kept[1], kept[0])):
            self.sequence = sequence
            super().feed(source, [payload])
        self._kept.clear()
        self.sequence = after

        def order(letter: DeadLetter) -> Any:
            return letter.order

        self.dead_letters.sort(key=order)
