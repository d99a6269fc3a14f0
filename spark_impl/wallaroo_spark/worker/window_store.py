"""Where the open windows of a step live between batches: by key, and by when they are due.

Each key's windows are one value among the `Entities` of the step's group. A calendar says which
keys are due: times lie in buckets, each a value of its own, beside a small directory with the
earliest time of each bucket. So a batch in which nothing is due reads the directory and the keys
that have messages, however many windows are open.

A key is noted at the time for which it waits. If it then waits for a later time, the calendar is
not changed at once, but when the noted time comes or is the next one; so a session that grows does
not change the calendar.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from wallaroo.copying import PROTOCOL
from wallaroo_spark.worker.segments import Entities
from wallaroo_spark.worker.stored import Stored, unpacked

KEY, _BUCKET, _DIRECTORY = b"k", b"b", b"d"
"""What an id begins with, after the step's prefix."""


def windows_in(stored_as: bytes, blob: bytes) -> Any:
    """Return the windows of a key as they are stored; `None`: it is no key's value.

    Args:
        stored_as: the value's id, without the step's prefix.
        blob: the value.
    """
    if not stored_as.startswith(KEY):
        return None
    return pickle.loads(unpacked(blob).state)[1]  # noqa: S301 - written by `_save`


class _Directory(NamedTuple):
    """What is known about all windows of a step.

    Args:
        first: of each bucket, the earliest time that is noted in it, and a key that is noted there.
        open: number of open windows.
        keys: number of keys that have some.
    """

    first: dict[int, tuple[int, bytes]]
    open: int = 0
    keys: int = 0


class WindowStore:
    """The open windows of one step during a batch.

    Args:
        entities: where they are stored.
        prefix: begins the ids of the step's values.
        width: nanoseconds of a bucket.
        number: returns how many windows of a key are open.

    Attributes:
        soonest: the earliest time at which a key is noted; infinite if none is.
    """

    def __init__(
        self, entities: Entities, prefix: bytes, width: int, number: Callable[[Any], int] = len
    ) -> None:
        self._entities = entities
        self._prefix = prefix
        self._width = width
        self._number = number
        self._keys: dict[bytes, tuple[int | None, Any]] = {}  # (noted time, windows) of keys
        self._stored: dict[bytes, int | None] = {}  # how many windows keys had before the batch
        self._changed: set[bytes] = set()
        self._buckets: dict[int, dict[bytes, int]] = {}
        self._turned: set[int] = set()
        self._directory: _Directory = self._load(_DIRECTORY) or _Directory({})
        self._first: dict[int, tuple[int, bytes]] = dict(self._directory.first)
        self.soonest = self._soonest()

    @property
    def open(self) -> int:
        """Number of open windows, as of `flush`."""
        return self._directory.open

    @property
    def entries(self) -> int:
        """Number of values that are stored for the step, as of `flush`."""
        directory = self._directory
        return directory.keys + len(directory.first) + (directory.keys > 0)

    def get(self, key: bytes) -> Any:
        """Return the windows of a key; `None`: it has none."""
        return (self._keys.get(key) or self._entry(key))[1]

    def note_change(self, key: bytes) -> None:
        """Note that the windows of a key were changed, and wait for the same time as before."""
        self._changed.add(key)

    def put(self, key: bytes, windows: Any, due: int | None) -> None:
        """Set the windows of a key, `None` for none, and the time for which it waits, if it does.

        The calendar's notes about a key without windows are ignored.
        """
        noted = self._entry(key)[0]
        if windows is None:
            noted = None
        if due is not None and (noted is None or due < noted):
            noted = due
            bucket = due // self._width
            self._bucket(bucket)[key] = due
            self._turned.add(bucket)
            if bucket not in self._first or due < self._first[bucket][0]:
                self._first[bucket] = due, key
                self.soonest = min(self.soonest, due)
        self._keys[key] = (noted, windows)
        self._changed.add(key)

    def due(self, until: float) -> Iterator[bytes]:
        """Yield the keys that have been noted up to a time, and forget that they were."""
        due = []
        early = [bucket for bucket, (time, _) in self._first.items() if time <= until]
        for bucket in sorted(early):
            keys = self._bucket(bucket)
            past = [(key, time) for key, time in keys.items() if time <= until]
            due += past
            self._forget(bucket, [key for key, _ in past])
        for key, time in due:
            noted, windows = self._entry(key)
            if windows is not None and noted == time:  # else it has been noted again, or is gone
                self._keys[key] = (None, windows)
                self._changed.add(key)
                yield key

    def next_due(self, due: Callable[[Any], int | None]) -> int | None:
        """Return the earliest time for which a key waits; `None`: none does.

        Args:
            due: returns the time for which a key's windows wait.
        """
        while self._first:
            bucket = min(self._first)
            time, key = self._first[bucket]
            if self._waits(key, time, due):
                return time
            self._correct(bucket, due)
        return None

    def flush(self) -> None:
        """Write the changes to the entities."""
        opened = keys = 0
        for key in sorted(self._changed):
            noted, windows = self._keys[key]
            for number, sign in ((self._count(windows), 1), (self._stored[key], -1)):
                if number is not None:
                    opened += sign * number
                    keys += sign
            self._save(KEY + key, None if windows is None else (noted, windows))
        for bucket in sorted(self._turned):
            self._save(_BUCKET + str(bucket).encode(), self._buckets[bucket] or None)
        before = self._directory
        after = _Directory(self._first, before.open + opened, before.keys + keys)
        if after != before:
            self._directory = after
            self._save(_DIRECTORY, after if after.keys or after.first else None)
        self._changed.clear()
        self._turned.clear()

    def _waits(self, key: bytes, noted: int, due: Callable[[Any], int | None]) -> bool:
        """Whether a key waits for the time at which it is noted."""
        last, windows = self._entry(key)
        return windows is not None and last == noted and due(windows) == noted

    def _correct(self, bucket: int, due: Callable[[Any], int | None]) -> None:
        """Note the keys of a bucket anew, from the earliest up to one that waits where it is."""
        times = self._bucket(bucket)
        wrong = []
        for key in sorted(times, key=times.__getitem__):
            if self._waits(key, times[key], due):
                break
            wrong.append(key)
        later = [key for key in wrong if self._entry(key)[0] == times[key]]
        self._forget(bucket, wrong)
        for key in later:
            windows = self._entry(key)[1]
            self._keys[key] = (None, windows)
            self.put(key, windows, due(windows))

    def _forget(self, bucket: int, keys: Iterable[bytes]) -> None:
        """Remove keys from a bucket."""
        times = self._bucket(bucket)
        for key in keys:
            del times[key]
        self._turned.add(bucket)
        if times:
            key = min(times, key=times.__getitem__)
            self._first[bucket] = times[key], key
        else:
            del self._first[bucket]
        self.soonest = self._soonest()

    def _soonest(self) -> float:
        return self._first[min(self._first)][0] if self._first else math.inf

    def _entry(self, key: bytes) -> tuple[int | None, Any]:
        entry = self._keys.get(key)
        if entry is None:
            entry = self._keys[key] = self._load(KEY + key) or (None, None)
            self._stored[key] = self._count(entry[1])
        return entry

    def _count(self, windows: Any) -> int | None:
        return None if windows is None else self._number(windows)

    def _bucket(self, bucket: int) -> dict[bytes, int]:
        if bucket not in self._buckets:
            self._buckets[bucket] = self._load(_BUCKET + str(bucket).encode()) or {}
        return self._buckets[bucket]

    def _load(self, name: bytes) -> Any:
        blob = self._entities.get(self._prefix + name)
        return None if blob is None else pickle.loads(unpacked(blob).state)  # noqa: S301 - written by `_save`

    def _save(self, name: bytes, value: Any) -> None:
        if value is None:
            self._entities.remove(self._prefix + name)
        else:
            stored = Stored(pickle.dumps(value, PROTOCOL))
            self._entities.put(self._prefix + name, stored.packed())
