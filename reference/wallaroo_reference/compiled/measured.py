"""The compiled path with figures: reads that are looked at run through measured components.

Both run the same generated code, bound to different names: here a component notes how long its call
takes and what came of it, and the dictionary of a state partition's entities notes who is visited.
The other reads run the same code as without figures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from wallaroo.judging import judged_key
from wallaroo.keys import identity
from wallaroo.metrics.following import Follower
from wallaroo.metrics.probes import Probes
from wallaroo.metrics.registry import Registry
from wallaroo.overriding import override
from wallaroo.records import Single, Value
from wallaroo.topology import Application
from wallaroo.trace import Lineage
from wallaroo.windowing.kinds import windowed
from wallaroo_reference.compiled.codegen import Program, file_of, link
from wallaroo_reference.compiled.entities import Entities
from wallaroo_reference.compiled.machine import Compiled


class MeasuredCompiled(Compiled):
    """See `Compiled`.

    Args:
        application: what to run.
        probes: measures it.
        partitions: number of partitions, for the entities' partition numbers (route-4).
        on_error: ``stop`` ends the run at the first dead letter (dead-4).
        follower: follows records of the measured application; `None`: none are followed.
        keeps: note what changes, for checkpoints (`wallaroo_reference.cells`).
    """

    def __init__(
        self,
        application: Application,
        probes: Probes,
        *,
        partitions: int,
        on_error: str,
        follower: Follower | None = None,
        keeps: bool = False,
    ) -> None:
        super().__init__(application, partitions=partitions, on_error=on_error, keeps=keeps)
        self.probes = probes
        self.follower = follower
        self._file = file_of(application.name)
        if follower is not None:
            follower.lineage = self._lineage_of_call
        measured = probes.application if follower is None else follower.application
        self._aggregations = {  # of each window step, its own and the same measured
            index: (windowed(application, index).aggregation, windowed(measured, index).aggregation)
            for index in application.window_steps
        }
        program = Program(measured, keeps=keeps)
        names = self.names(program)
        for index, (name, store) in enumerate(self.stores.items()):
            names[f"states_{index}"] = _Visits(store.entities, probes.visits[name])
        for index in application.window_steps:
            visits = probes.visits[index]
            names[f"take_{index}"] = _noting(names[f"take_{index}"], visits)
            if f"panes_{index}" in names:
                names[f"panes_{index}"] = _Panes(names[f"panes_{index}"], visits)
        names["enter"] = self._enter_and_note
        names["entered"] = self._entered_and_note
        link(program, application.name, names)
        self._measured: tuple[dict[str, Callable[[Sequence[Any], int], None]], Any] = (
            {source: names[name] for source, name in program.functions.items()},
            [names[f"fire_{index}"] for index in application.window_steps],
        )

    @override
    def take(self, record: Single) -> None:
        if isinstance(record, Value) or not self.probes.should_look("", 1):
            super().take(record)
            return
        with self._looking():
            super().take(record)

    def copy_figures(self, metrics: Registry) -> None:
        """Copy the figures of entities, windows and time."""
        for name, store in self.stores.items():
            metrics.partitions[name].entities = len(store.entities)
        self._times.catch_up()
        for index, step in self._windows.items():
            windows = metrics.windows[index]
            windows.late = {what: step.late[what] for what in ("dropped", "partly")}
            windows.note_times(self._times.now, step.watermark)
            marks = {name: self._times.of({name: delay}) for name, delay in step.ways.items()}
            windows.held_by = min(marks, key=marks.__getitem__)

    def count_windows(self, metrics: Registry) -> None:
        """Count the windows that are open."""
        for index, step in self._windows.items():
            metrics.windows[index].open = step.held

    def _run(
        self, source: str, records: Sequence[Any], at: int, partition: int | None = None
    ) -> None:
        if not self.probes.should_look(source, len(records)):
            super()._run(source, records, at, partition)
            return
        if self.follower is not None:
            self.follower.begin(source, self.sequence)
        with self._looking():
            super()._run(source, records, at, partition)
        if self.follower is not None:
            self.follower.end()

    def _lineage_of_call(self) -> Lineage | None:
        """Return the lineage of the message that user code is called for now.

        As for a dead letter, the line of the generated code and its variables tell it.
        """
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        return None if frame is None else self.lineage_at(frame.f_lineno, frame.f_locals)

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Run the measured functions inside the block."""
        usual, before = (self._feeds, self._fires), self.sequence
        self._feeds, self._fires = self._measured
        for index, step in self._windows.items():
            step.call(self._aggregations[index][1])
        try:
            yield
        finally:
            self._feeds, self._fires = usual
            for index, step in self._windows.items():
                step.call(self._aggregations[index][0])
            self.probes.looked(self.sequence - before)

    def _entered_and_note(self, store: Entities, key: Any) -> tuple[Any, Hashable]:
        entity, identity = self._entered(store, key)
        self.probes.visits[store.partition.name].append(identity)
        return entity, identity

    def _enter_and_note(self, store: Entities, key: Any) -> Any:
        state = self._enter(store, key)
        self.probes.visits[store.partition.name].append(identity(key))
        return state


class _Visits:
    """Stands for the dictionary of a partition's entities, or of a pane's accumulators.

    It notes whose are asked for.
    """

    __slots__ = ("_entities", "_visits")

    def __init__(self, entities: dict[Hashable, Any], visits: list[Hashable]) -> None:
        self._entities = entities
        self._visits = visits

    def __getitem__(self, identity: Hashable) -> Any:
        state = self._entities[identity]
        self._visits.append(identity)
        return state

    def __setitem__(self, identity: Hashable, state: Any) -> None:
        self._entities[identity] = state


class _Panes:
    """Stands for the dictionary of a window step's panes."""

    __slots__ = ("_panes", "_visits")

    def __init__(self, panes: dict[int, dict[Hashable, Any]], visits: list[Hashable]) -> None:
        self._panes = panes
        self._visits = visits

    def __getitem__(self, number: int) -> _Visits:
        return _Visits(self._panes[number], self._visits)


def _noting(take: Callable[..., Any], visits: list[Hashable]) -> Callable[..., Any]:
    """Return a window step's `take`, which notes each key that a message comes for."""

    def take_and_note(message: Any, key: Any, time: int) -> Any:
        visits.append(judged_key(key))
        return take(message, key, time)

    return take_and_note
