"""State entities in the compiled path; some expire (key-4)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from wallaroo.topology import StatePartition
from wallaroo_reference.entities import Store
from wallaroo_reference.timers import Timers


class Entities(Store[Any]):
    """The entities of one state partition.

    The generated code keeps `visits` where entities expire, in any order, and `changed` for
    checkpoints.
    """

    def __init__(self, partition: StatePartition) -> None:
        super().__init__(partition)
        self._timers = Timers(self._end_of)

    def enter(self, key: Any, now: int) -> Any:
        """Return the entity of a key that the generated code did not find: a tuple, or a new key.

        Args:
            key: what user code gave for a key.
            now: the arrival time of the record.

        Raises:
            DeadLetterError: it is not a key of the partition. An exception of the builder is not
                caught.
        """
        return self.entered(key, now)[0]

    def entered(self, key: Any, now: int) -> tuple[Any, Hashable]:
        """Return the entity as `enter` does, and the identity of its key."""
        identity = self.judge(key)
        new = identity not in self.entities
        if new:
            self.expect(key, identity)
            self.entities[identity] = self.partition.builder.call()  # state-1
            self.touch(identity)
        if self.partition.expire_after is not None:
            self.visits[identity] = now
            if new:
                self._timers.note(identity)
            self.touch(identity)
        return self.entities[identity], identity

    def go_on_from(self, now: int) -> None:
        """Continue after a restart: find out when each entity expires."""
        super().go_on_from(now)
        for identity in self.visits:
            self._timers.note(identity)

    def expire_by(self, now: int) -> None:
        """Forget the entities last visited `expire_after` or longer before `now` (key-4)."""
        while (time := self._timers.first()) is not None and time <= now:
            for identity in self._timers.take(time):
                del self.entities[identity], self.visits[identity]
                self.touch(identity)

    def _end_of(self, identity: Hashable) -> int | None:
        visited, expire_after = self.visits.get(identity), self.partition.expire_after
        return None if visited is None or expire_after is None else visited + expire_after
