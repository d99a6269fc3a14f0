"""What Spark keeps in a checkpoint, written from a state that was read whole."""

from __future__ import annotations

from pathlib import Path

from wallaroo.keys import encoded_partition_number
from wallaroo.transport.identity import Identity
from wallaroo.transport.old_states import Place
from wallaroo.transport.private import make_private
from wallaroo.transport.stored_state import StoredState, windows_from
from wallaroo.windowing.kinds import kind_of
from wallaroo.windowing.watermarks import NEVER
from wallaroo.windows import windows_of
from wallaroo_spark.jvm.session import session
from wallaroo_spark.live.checkpoint import ENGINE, RESUME, SINKS, STAMP
from wallaroo_spark.live.failures import explaining
from wallaroo_spark.live.kafka_sinks import write_topics
from wallaroo_spark.live.layout import LAYOUT, Layout, write_layout
from wallaroo_spark.live.resume import Resume, write_resume
from wallaroo_spark.live.stamped import write_stamped
from wallaroo_spark.plans.states import store_segments
from wallaroo_spark.wire.job import Address, shard_of
from wallaroo_spark.worker.replay import CLOCK, Clock
from wallaroo_spark.worker.segments import Entities, MemoryMap
from wallaroo_spark.worker.states import member_prefix
from wallaroo_spark.worker.stored import Stored
from wallaroo_spark.worker.window_store import WindowStore


def write_parts(directory: Path, state: StoredState, layout: Layout, identity: Identity) -> None:
    """Write all that Spark keeps in a checkpoint beside the input log.

    Args:
        directory: the checkpoint.
        state: the state.
        layout: how it is to be stored.
        identity: whose the checkpoint is.

    Raises:
        WallarooError: it cannot be written.
    """
    stamp, position = identity.stamp, state.position
    # A tick at once lets each window step say when it is due.
    due = 0 if state.steps and position else None
    resume = Resume(position, due, state.logged or {}, state.streams)
    write_resume(directory / RESUME, resume, stamp)
    write_layout(directory / LAYOUT, layout, stamp)
    if state.topics and not (directory / SINKS).exists():  # it was copied, or is another engine's
        write_topics(directory / SINKS, state.topics, stamp)
    make_private(directory / ENGINE)
    if position:
        write_part(directory / ENGINE, state, layout, identity.partitions, coded=identity.coded)
    write_stamped(directory / ENGINE / STAMP, stamp, None)


def write_part(
    directory: Path, state: StoredState, layout: Layout, partitions: int, *, coded: bool
) -> None:
    """Write Spark's part of a checkpoint.

    Args:
        directory: a directory that only its owner can use, without anything of Spark's.
        state: the state; what has no place in the layout is left out.
        layout: how it is to be stored.
        partitions: number of partitions.
        coded: the application's codec has written the states.

    Raises:
        WallarooError: Spark cannot write it.
    """
    part = _Part(layout, partitions)
    part.put_entities(state, coded=coded)
    part.put_windows(state)
    with explaining(directory):
        spark = session()
        store_segments(
            spark.spark,
            directory,
            part.segments(),
            levels=layout.operators,
            partitions=partitions,
            position=state.position,
            sockets=spark.directory,
        )


class _Part:
    """What the shards are to hold.

    Args:
        layout: how it is to be stored.
        partitions: number of partitions.
    """

    def __init__(self, layout: Layout, partitions: int) -> None:
        self._layout = layout
        self._partitions = partitions
        self._maps: dict[tuple[int, int], MemoryMap] = {}
        self._entities: dict[Address, Entities] = {}

    def put_entities(self, state: StoredState, *, coded: bool) -> None:
        """Put the entities; one whose last visit is not known was visited at the last record."""
        holders = {
            place.name: (
                group,
                self._prefix(group, member),
                place.name in self._layout.expire_after,
            )
            for group, members in enumerate(self._layout.members)
            for member, place in enumerate(members)
            if not place.shape
        }
        found: dict[tuple[int, int], list[tuple[bytes, bytes]]] = {}
        for name, key, at, form in state.entities:  # there may be millions
            if name not in holders:
                continue
            group, prefix, expires = holders[name]
            visited = (state.now if at is None else at) if expires else 0
            blob = Stored(form, visited, coded).packed()
            found.setdefault((group, self._number(group, key)), []).append((prefix + key, blob))
        for (group, number), some in found.items():
            self._held_at(Address(0, group, number)).fill(some)

    def put_windows(self, state: StoredState) -> None:
        """Put the open windows, and how far time has come."""
        reached: dict[tuple[int, int], float] = {}
        stores: dict[tuple[Address, int], WindowStore] = {}
        now = self._window_steps_now(state)
        for step, held in now.items():
            reached[held] = state.watermarks[step]
        for windows in state.windows:
            if windows.step not in now:
                continue
            group, member = held = now[windows.step]
            kind = kind_of(windows_of(state.steps[windows.step].shape))
            address = Address(0, group, self._number(group, windows.key))
            if (address, member) not in stores:
                entities, prefix = self._held_at(address), self._prefix(*held)
                stores[address, member] = WindowStore(entities, prefix, kind.width, kind.number)
            made = windows_from(windows.form, kind, reached[held], lambda data: (data,))
            stores[address, member].put(windows.key, made, kind.due(made))
        for store in stores.values():
            store.flush()
        if state.first is not None:
            self._put_clocks(state, reached)

    def segments(self) -> dict[tuple[int, int], MemoryMap]:
        """Return the segments, by shard and level."""
        for entities in self._entities.values():
            entities.flush()
        return self._maps

    def _window_steps_now(self, state: StoredState) -> dict[int, tuple[int, int]]:
        """Return the group and the member that holds each window step that is kept."""
        held: dict[Place, list[tuple[int, int]]] = {}
        for group, member in self._layout.window_steps:
            held.setdefault(self._layout.members[group][member], []).append((group, member))
        return {
            step: held[place].pop(0) for step, place in enumerate(state.steps) if held.get(place)
        }

    def _put_clocks(self, state: StoredState, reached: dict[tuple[int, int], float]) -> None:
        for group in dict.fromkeys([group for group, _ in self._layout.window_steps]):
            held = [one for one in self._layout.window_steps if one[0] == group]
            marks = [reached.get(one, NEVER) for one in held]
            clock = Clock(state.now, state.first, state.sources, marks)
            for number in range(1 if self._layout.fused[group] else self._partitions):
                entities = self._held_at(Address(0, group, number))
                entities.put(self._prefix(*held[0]) + CLOCK, clock.packed())

    def _number(self, group: int, key: bytes) -> int:
        divided = 1 if self._layout.fused[group] else self._partitions
        return encoded_partition_number(key, divided)

    def _held_at(self, address: Address) -> Entities:
        if address not in self._entities:
            where = (shard_of(address, self._partitions), self._layout.levels[address.group])
            self._entities[address] = Entities(self._maps.setdefault(where, MemoryMap()), address)
        return self._entities[address]

    def _prefix(self, group: int, member: int) -> bytes:
        return member_prefix(len(self._layout.members[group]), member)
