"""Faults in how the Spark engine's workers treat time and windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import wallaroo_spark.worker.operators
import wallaroo_spark.worker.replay
from wallaroo_spark.wire.job import What
from wallaroo_spark.worker.replay import ReplayedTime
from wallaroo_spark.worker.states import IsolatedStates, TrustingStates
from wallaroo_spark.worker.tracker import Tracker
from wallaroo_spark.worker.window_step import WindowStep
from wallaroo_spark.worker.window_store import WindowStore

Fault: TypeAlias = tuple[Any, str, Callable[[Any], Any]]
"""(module or class, name, function from the right attribute to the faulty one)."""


def _of_the_shard(original: Any) -> Any:
    def replay(flow: Any, program: Any, component: Any, entities: Any, *given: Any) -> Any:
        arrivals, moments = given
        seen = {arrival[0][0] for arrival in arrivals}
        own = [one for one in moments if one[2] != What.MESSAGE or one[0] in seen]
        return original(flow, program, component, entities, arrivals, own)

    return replay


def _of_the_batch(original: Any) -> Any:
    def replay(flow: Any, program: Any, component: Any, entities: Any, *given: Any) -> Any:
        arrivals, moments = given
        first = min([one[0] for one in moments], default=0)
        early = [(first, *one[1:]) for one in moments]
        return original(flow, program, component, entities, arrivals, early)

    return replay


def _forgotten(original: Any) -> Any:
    return lambda self, application, known=None: original(self, application)


def _without(what: What) -> Callable[[Any], Any]:
    def fault(original: Any) -> Any:
        def note(self: Tracker, sequence: int, at: int, kind: What, *more: Any) -> None:
            if kind is not what:
                original(self, sequence, at, kind, *more)

        return note

    return fault


def _unsorted(original: Any) -> Any:
    return lambda tracks: sorted(original(tracks), key=lambda moment: -moment[0])


def _calendar_not_stored(original: Any) -> Any:
    def flush(self: WindowStore) -> None:
        self._first = dict(self._directory.first)
        original(self)

    return flush


def _waits_no_more(original: Any) -> Any:
    def wait(self: WindowStep, waiting: Any, key: bytes, windows: Any, until: float) -> None:
        due = self._kind.due(windows)
        if due is not None and due <= until:
            original(self, waiting, key, windows, until)

    return wait


def _closed_kept(original: Any) -> Any:
    def save(self: WindowStore, name: bytes, value: Any) -> None:
        if value is not None or not name.startswith(b"k"):
            original(self, name, value)

    return save


def _numbered_by_shard(original: Any) -> Any:
    def fire(self: WindowStep, firing: Any, lineage: Any) -> None:
        turn = lineage[:2]
        before = self._calls.outbox.finished.fired.get(turn, [])  # with the one that fires
        if before and lineage[2] == before[-1]:
            lineage = (*turn, len(before) - 1)
        original(self, firing, lineage)

    return fire


def _not_visited(_: Any) -> Any:
    return lambda self, entity, now, expire_after: None


_replay = (wallaroo_spark.worker.operators, "replay")

TIME_FAULTS: dict[str, tuple[Fault, ...]] = {
    "watermark of the shard": ((*_replay, _of_the_shard),),
    "watermark of the batch": ((*_replay, _of_the_batch),),
    "watermarks forgotten between batches": ((ReplayedTime, "__init__", _forgotten),),
    "ticks lost on the way": ((Tracker, "note", _without(What.TICK)),),
    "ends lost on the way": ((Tracker, "note", _without(What.END)),),
    "tracks not in order": ((wallaroo_spark.worker.operators, "moments", _unsorted),),
    "calendar not stored": ((WindowStore, "flush", _calendar_not_stored),),
    "key waits for one window only": ((WindowStep, "_wait", _waits_no_more),),
    "closed windows stored": ((WindowStore, "_save", _closed_kept),),
    "windows numbered by shard": ((WindowStep, "_fire", _numbered_by_shard),),
    "visits not noted": (
        (IsolatedStates, "visit", _not_visited),
        (TrustingStates, "visit", _not_visited),
    ),
}
