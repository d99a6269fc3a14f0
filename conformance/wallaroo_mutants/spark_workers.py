"""Faults in the Spark engine's worker code: which attribute is replaced by what."""

from __future__ import annotations

import zlib
from typing import Any

import wallaroo_spark.plans.batch
import wallaroo_spark.plans.stream
import wallaroo_spark.worker.nodes
import wallaroo_spark.worker.operators
from wallaroo_spark.wire.job import HeadBlock, Run
from wallaroo_spark.worker.flow import Flow
from wallaroo_spark.worker.segments import Entities, MemoryMap
from wallaroo_spark.worker.states import ABSENT, IsolatedStates

from wallaroo_mutants.spark_time import TIME_FAULTS, Fault


def _arrivals_by_chance(original: Any) -> Any:
    return lambda runs: sorted(
        original(runs), key=lambda arrival: zlib.crc32(repr(arrival[0]).encode())
    )


def _first_segment_only(original: Any) -> Any:
    def flush(self: Entities) -> None:
        while self._weight > self._number * self._segment_bytes:
            self._split()
        self._dirty &= {0}
        original(self)

    return flush


def _absent_is_empty(original: Any) -> Any:
    def segment(self: Entities, number: int) -> Any:
        if number not in self._segments and self._store.get(self._key(number)) is None:
            self._segments[number] = {}
        return original(self, number)

    return segment


def _split_loses(_: Any) -> Any:
    def split(self: Entities) -> None:
        fresh = self._number
        half = 1 << (fresh.bit_length() - 1)
        self._number += 1
        old = self._segment(fresh - half)
        for entity in [one for one in old if self._place(zlib.crc32(one)) == fresh]:
            del old[entity]
        self._segments[fresh] = {}
        self._dirty |= {fresh, fresh - half}

    return split


def _stale_number(original: Any) -> Any:
    """Forget, where it is read, that segments were added."""

    def init(self: Entities, *arguments: Any) -> None:
        original(self, *arguments)
        self._number = 1

    return init


def _memory_of_a_batch(original: Any) -> Any:
    def run_level(shard: int, blocks: Any, store: Any, shards: int) -> Any:
        memory = MemoryMap()
        rows = original(shard, blocks, memory, shards)
        for key, value in memory.items():
            store.put(key, value)
        return rows

    return run_level


def _spare_kept(_: Any) -> Any:
    def take(self: IsolatedStates, entity: bytes) -> Any:
        if entity not in self._spare:
            blob = self.entities.get(entity)
            if blob is None:
                return ABSENT
            self._spare[entity] = self._form.state(blob)
        return self._spare[entity]

    return take


def _live_items(_: Any) -> Any:
    return lambda items, made, _: [
        item if item is None else (item, made(item)[1]) for item in items
    ]


def _new_not_dirty(original: Any) -> Any:
    def put(self: Entities, entity: bytes, state: bytes) -> None:
        new, dirty = self.get(entity) is None, set(self._dirty)
        original(self, entity, state)
        if new:
            self._dirty = dirty

    return put


def _last_of_run_lost(original: Any) -> Any:
    def run_head(block: HeadBlock, shards: int, levels: int) -> Any:
        frames = [
            run._replace(items=run.items[:-1]) if len(run.items) > 1 else run
            for run in block.frames
        ]
        return original(block._replace(frames=frames), shards, levels)

    return run_head


def _one_partition(_: Any) -> Any:
    return lambda component, partition, key: key if len(component.members) == 1 else b"\0\0" + key


def _own_methods_asked(_: Any) -> Any:
    return lambda output: bytes(output) if isinstance(output, bytes) else output.encode()


def _decodes_twice(original: Any) -> Any:
    def take(self: Flow, run: Run) -> None:
        if run.first == 0:
            original(self, run._replace(items=run.items[:1]))
        original(self, run)

    return take


_operators = wallaroo_spark.worker.operators
_everywhere = (
    wallaroo_spark.plans.batch,
    wallaroo_spark.plans.stream,
    wallaroo_spark.worker.operators,
)

WORKER_FAULTS: dict[str, tuple[Fault, ...]] = {
    "groups not sorted": ((_operators, "arrivals", _arrivals_by_chance),),
    "segments not written back": (
        (Entities, "flush", _first_segment_only),
        (Entities, "_segment", _absent_is_empty),
    ),
    "split loses entities": ((Entities, "_split", _split_loses),),
    "number of segments read stale": ((Entities, "__init__", _stale_number),),
    "state in memory of a batch": ((wallaroo_spark.plans.stream, "run_level", _memory_of_a_batch),),
    "copies handed out twice": ((IsolatedStates, "__getitem__", _spare_kept),),
    "live items passed on": ((wallaroo_spark.worker.nodes, "_all_made", _live_items),),
    "new entities not written": ((Entities, "put", _new_not_dirty),),
    "last frame of a run lost": tuple(
        (module, "run_head", _last_of_run_lost) for module in _everywhere
    ),
    "partitions of an operator mixed": (
        (wallaroo_spark.worker.nodes, "entity_id", _one_partition),
    ),
    "first frame tried again": ((Flow, "take", _decodes_twice),),
    "outputs asked for their bytes": (
        (wallaroo_spark.worker.nodes, "written_of", _own_methods_asked),
    ),
    **TIME_FAULTS,
}  # fmt: skip
