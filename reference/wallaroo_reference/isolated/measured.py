"""The interpreter with figures: every read runs through measured components."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from wallaroo.metrics.following import Follower
from wallaroo.metrics.probes import Probes
from wallaroo.metrics.registry import Registry
from wallaroo.overriding import override
from wallaroo.records import Single, Value
from wallaroo.trace import Lineage
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.isolated.places import FrozenEntity, Place
from wallaroo_reference.isolated.windows import Arrival, Firing, WindowStep


class MeasuredInterpreter(Interpreter):
    """The interpreter of a measured application.

    Args:
        probes: measures the application that it runs.
        partitions: number of partitions, for the entities' partition numbers (route-4).
        on_error: ``stop`` ends the run at the first dead letter (dead-4).
        follower: follows records of the measured application; `None`: none are followed.
        keeps: note what changes, for checkpoints (`wallaroo_reference.cells`).
    """

    def __init__(
        self,
        probes: Probes,
        *,
        partitions: int,
        on_error: str,
        follower: Follower | None = None,
        keeps: bool = False,
    ) -> None:
        application = probes.application if follower is None else follower.application
        super().__init__(application, partitions=partitions, on_error=on_error, keeps=keeps)
        self.probes = probes
        self.follower = follower
        self._lineage: Lineage = ()  # of the message that is processed
        if follower is not None:
            follower.lineage = lambda: self._lineage
        for name, store in self._stores.items():
            store.entities = _Entities(probes.visits[name])
        for index, (step, _) in zip(application.window_steps, self._windows.values(), strict=True):
            noting = _noting(step.take, probes.visits[index])
            step.take = noting  # type: ignore[assignment, method-assign]  # steps are of three classes

    @override
    def feed(
        self, source: str, payloads: Sequence[Any], at: int = 0, partition: int | None = None
    ) -> None:
        before = self.sequence
        self.probes.should_look(source, len(payloads))
        if self.follower is not None:
            self.follower.begin(source, before)
        super().feed(source, payloads, at, partition)
        if self.follower is not None:
            self.follower.end()
        self.probes.looked(self.sequence - before)

    @override
    def take(self, record: Single) -> None:
        source = record.source if isinstance(record, Value) else ""
        self.probes.should_look(source, 1)
        if self.follower is not None and isinstance(record, Value):
            self.follower.begin(source, self.sequence)
        super().take(record)
        if self.follower is not None:
            self.follower.end()
        self.probes.looked(1)

    def copy_figures(self, metrics: Registry) -> None:
        """Copy the figures of entities, windows and time."""
        for name, store in self._stores.items():
            metrics.partitions[name].entities = len(store.entities)
        for windows, (step, ways) in zip(
            metrics.windows.values(), self._windows.values(), strict=True
        ):
            windows.late = {"dropped": step.dropped, "partly": step.partly_late}
            windows.note_times(self._watermarks.now, step.watermark)
            marks = {name: self._watermarks.of({name: delay}) for name, delay in ways.items()}
            windows.held_by = min(marks, key=marks.__getitem__)

    def count_windows(self, metrics: Registry) -> None:
        """Count the windows that are open."""
        for windows, (step, _) in zip(
            metrics.windows.values(), self._windows.values(), strict=True
        ):
            windows.open = sum([1 for _ in step.open()])

    def _decode(self, place: Place, payload: Any, lineage: Lineage) -> None:
        self._lineage = lineage
        super()._decode(place, payload, lineage)

    def _generate(self, record: Value, lineage: Lineage) -> None:
        self._lineage = lineage
        super()._generate(record, lineage)

    def _follow(self, place: Place, message: Any, lineage: Lineage) -> None:
        self._lineage = lineage
        super()._follow(place, message, lineage)

    def _fire(
        self, place: Place, step: WindowStep[Any, Any], firing: Firing, lineage: Lineage
    ) -> None:
        self._lineage = lineage
        super()._fire(place, step, firing, lineage)


def _noting(
    take: Callable[[Arrival], Firing | None], visits: list[Hashable]
) -> Callable[[Arrival], Firing | None]:
    """Return a window step's `take`, which notes each key that a message comes for."""

    def take_and_note(arrival: Arrival) -> Firing | None:
        visits.append(arrival.identity)
        return take(arrival)

    return take_and_note


class _Entities(dict[Hashable, FrozenEntity]):
    """A partition's entities; notes each key that is asked for: that is a visit."""

    def __init__(self, visits: list[Hashable]) -> None:
        super().__init__()
        self._visits = visits

    def get(self, identity: Hashable, default: Any = None) -> Any:
        """Return an entity."""
        self._visits.append(identity)
        return super().get(identity, default)
