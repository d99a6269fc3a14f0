"""Where the open windows of a step live between batches: by key, and by when they are due.

Each key's windows are one value among the `Entities` of the step's component. A calendar says which
keys are due: times lie in buckets, each a value of its own, beside a small directory with the
earliest time of each bucket. So a batch in which nothing is due reads the directory and the keys
that have messages, however many windows are open.

A key is noted at the time for which it waits. If it then waits for a later time, that is found when
the noted time comes; so a session that grows costs no change of the calendar.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

from wallaroo_spark.worker.segments import Entities

KEY, _BUCKET, _DIRECTORY = b"k", b"b", b"d"
"""What an id begins with, behind the step's prefix."""


class WindowStore:
    """The open windows of one step during a batch.

    Args:
        entities: where they are stored.
        prefix: begins the ids of the step's values.
        width: nanoseconds of a bucket.
    """

    def __init__(self, entities: Entities, prefix: bytes, width: int) -> None:
        self._entities = entities
        self._prefix = prefix
        self._width = width
        self._keys: dict[bytes, tuple[int | None, Any]] = {}  # (noted time, windows) of keys
        self._changed: set[bytes] = set()
        self._buckets: dict[int, dict[bytes, int]] = {}
        self._turned: set[int] = set()
        self._earliest: dict[int, int] = self._load(_DIRECTORY) or {}
        self._earliest_changed = False

    def get(self, key: bytes) -> Any:
        """Return the windows of a key; `None`: it has none."""
        return self._known(key)[1]

    def put(self, key: bytes, windows: Any, due: int | None) -> None:
        """Set the windows of a key, `None` for none, and the time for which it waits, if it does.

        What the calendar notes of a key without windows counts no more.
        """
        noted = None if windows is None else self._known(key)[0]
        if due is not None and (noted is None or due < noted):
            noted = due
            bucket = due // self._width
            self._bucket(bucket)[key] = due
            self._turned.add(bucket)
            if due < self._earliest.get(bucket, due + 1):
                self._earliest[bucket] = due
                self._earliest_changed = True
        self._keys[key] = (noted, windows)
        self._changed.add(key)

    def due(self, until: float) -> Iterator[bytes]:
        """Yield the keys that have been noted up to a time, and forget that they were."""
        found = []
        for bucket in sorted([one for one, time in self._earliest.items() if time <= until]):
            keys = self._bucket(bucket)
            found += [(key, time) for key, time in keys.items() if time <= until]
            for key in [key for key, time in keys.items() if time <= until]:
                del keys[key]
            self._turned.add(bucket)
            self._earliest_changed = True
            if keys:
                self._earliest[bucket] = min(keys.values())
            else:
                del self._earliest[bucket]
        for key, time in found:
            noted, windows = self._known(key)
            if windows is not None and noted == time:  # else it was noted again since, or is gone
                self._keys[key] = (None, windows)
                self._changed.add(key)
                yield key

    def flush(self) -> None:
        """Give what has changed to the entities."""
        for key in sorted(self._changed):
            noted, windows = self._keys[key]
            self._save(KEY + key, None if windows is None else (noted, windows))
        for bucket in sorted(self._turned):
            self._save(_BUCKET + str(bucket).encode(), self._buckets[bucket] or None)
        if self._earliest_changed:
            self._save(_DIRECTORY, self._earliest or None)

    def _known(self, key: bytes) -> tuple[int | None, Any]:
        known = self._keys.get(key)
        if known is None:
            known = self._keys[key] = self._load(KEY + key) or (None, None)
        return known

    def _bucket(self, bucket: int) -> dict[bytes, int]:
        if bucket not in self._buckets:
            self._buckets[bucket] = self._load(_BUCKET + str(bucket).encode()) or {}
        return self._buckets[bucket]

    def _load(self, name: bytes) -> Any:
        blob = self._entities.get(self._prefix + name)
        return None if blob is None else pickle.loads(blob)  # noqa: S301 - written by `_save`

    def _save(self, name: bytes, value: Any) -> None:
        if value is None:
            self._entities.remove(self._prefix + name)
        else:
            self._entities.put(self._prefix + name, pickle.dumps(value, 5))
