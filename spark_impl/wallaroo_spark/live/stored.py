"""The engine's part of a checkpoint, for `wallaroo checkpoint`.

How far it is, files tell. The states are in files that only Spark can read; so to show, check or
change them, Spark is started, once something was committed.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from wallaroo.errors import WallarooError
from wallaroo.keys import decode_key, encoded_partition_number
from wallaroo.topology import Application
from wallaroo.trace import Entity, sorted_entities
from wallaroo.transport.checkpoint import (
    IDENTITY,
    CheckpointError,
    damaged,
    describe_topology,
    read_identity,
)
from wallaroo.transport.old_states import Place
from wallaroo.transport.private import make_private
from wallaroo.transport.stamps import Stamp
from wallaroo.transport.stored import Migration, Overview, copied_beside, structure_of
from wallaroo.transport.stored_state import (
    StoredEntity,
    StoredState,
    StoredTime,
    StoredWindows,
    first_accumulator,
)
from wallaroo.windowing.kinds import windowed
from wallaroo.windowing.watermarks import NEVER, NO_TIME
from wallaroo_spark.jvm.java import JavaNotFoundError
from wallaroo_spark.jvm.session import session
from wallaroo_spark.live.checkpoint import ENGINE, RESUME, STAMP, stamps_in
from wallaroo_spark.live.failures import explained
from wallaroo_spark.live.layout import LAYOUT, Layout, read_layout
from wallaroo_spark.live.resume import read_resume
from wallaroo_spark.live.spark_part import (
    damaged_files,
    misfit,
    missing_files,
    read_spark_part,
    refuse_irregular_files,
    seen_from,
    settle,
)
from wallaroo_spark.live.stamped import write_stamped
from wallaroo_spark.plans.states import levels_in, store_segments, stored_segments
from wallaroo_spark.wire.job import Address
from wallaroo_spark.worker.replay import CLOCK
from wallaroo_spark.worker.segments import Entities, MemoryMap, stored
from wallaroo_spark.worker.states import entity_of
from wallaroo_spark.worker.stored import Stored, unpacked
from wallaroo_spark.worker.window_step import form_of
from wallaroo_spark.worker.window_store import KEY

_log = logging.getLogger("wallaroo.spark")


class _Found(NamedTuple):
    """A state entity."""

    partition: str
    name: bytes  # its key, encoded
    state: Stored


class StoredOnSpark:
    """Spark's part of a checkpoint; see `wallaroo.transport.stored.StoredCheckpoint`.

    Args:
        directory: the checkpoint's directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._part = directory / ENGINE

    def stamps(self) -> Iterator[tuple[Path, Stamp]]:
        """See `StoredCheckpoint.stamps`."""
        refuse_irregular_files(self._part)
        return stamps_in(self._directory)

    def overview(self) -> Overview:
        """See `StoredCheckpoint.overview`."""
        part = read_spark_part(self._part)
        files = [path.stat() for path in self._part.rglob("*") if path.is_file()]
        commits = self._part / "commits"
        done = [path.stat().st_mtime_ns for path in commits.glob("*") if path.name.isdecimal()]
        size = sum([file.st_size for file in files])
        counts: Counter[str] | None = Counter()
        if part.committed:
            try:
                counts = Counter([entity.partition for entity in self._found()])
            except (JavaNotFoundError, CheckpointError) as error:
                _log.warning("the entities cannot be counted: %s", error)
                counts = None
        return Overview(part.committed, max(done, default=None), {"state": size}, counts)

    def entities(self) -> Iterator[Entity]:
        """See `StoredCheckpoint.entities`."""
        number = read_identity(self._directory / IDENTITY).partitions
        yield from sorted_entities(
            [
                Entity(
                    entity.partition,
                    decode_key(entity.name),
                    encoded_partition_number(entity.name, number),
                    structure_of(entity.state.state),
                )
                for entity in self._found()
            ]
        )

    def position(self) -> int:
        """See `StoredCheckpoint.position`."""
        return read_spark_part(self._part).committed

    def verify(self) -> str:
        """See `StoredCheckpoint.verify`."""
        read_resume(self._directory / RESUME)
        try:
            for path, place in damaged_files(self._part):
                raise damaged(path, misfit(place))
        except OSError as error:
            raise CheckpointError(f"{error.filename} cannot be read: {error.strerror}") from error
        for path in missing_files(self._part):
            raise damaged(path, "it is missing")
        if (self._directory / LAYOUT).exists():  # a run that died at its start has none
            self._layout()
        for _ in self._stored():
            pass
        return ""

    def migrate(self, target: Path, migration: Migration) -> int:
        """See `StoredCheckpoint.migrate`."""
        with copied_beside(self._directory, target, ENGINE) as copy:
            make_private(copy / ENGINE)
            identity = read_identity(self._directory / IDENTITY)
            write_stamped(copy / ENGINE / STAMP, identity.stamp, None)
            position = self.position()
            if not position:
                return 0
            layout = self._layout()
            count = 0
            maps: dict[tuple[int, int], MemoryMap] = {}
            holders: dict[Address, Entities] = {}
            for shard, address, name, blob in self._stored():
                if address not in holders:
                    where = (shard, layout.levels[address.group])
                    holders[address] = Entities(maps.setdefault(where, MemoryMap()), address)
                member, key = entity_of(layout.members[address.group], name)
                new = blob
                if isinstance(member, str):
                    entity = unpacked(blob)
                    state = migration.new_state(
                        member, decode_key(key), entity.state, coded=identity.coded
                    )
                    new = entity._replace(state=state).packed()
                    count += 1
                holders[address].put(name, new)
            for holder in holders.values():
                holder.flush()
            with self._explained():
                spark = session()
                store_segments(
                    spark.spark,
                    copy / ENGINE,
                    maps,
                    levels=layout.operators,
                    partitions=identity.partitions,
                    position=position,
                    sockets=spark.directory,
                )
            settle(copy / ENGINE, target / ENGINE)
            return count

    def samples(self, application: Application, layout: Layout) -> dict[Place, bytes]:
        """Return one stored state of each state partition, and accumulator of each window step.

        Args:
            application: the one whose checkpoint it is.
            layout: what its groups hold.

        Raises:
            WallarooError: Spark cannot read them.
        """
        states: dict[Place, bytes] = {}
        for _, address, stored_as, blob in self._stored():
            member, name = entity_of(layout.members[address.group], stored_as)
            if isinstance(member, str):
                states.setdefault(Place(member), unpacked(blob).state)
            else:
                step = windowed(application, member)
                if accumulator := first_accumulator(form_of(application, member, name, blob)):
                    states.setdefault(Place(step.name, True), accumulator)
        return states

    def state(self, application: Application) -> StoredState:
        """See `StoredCheckpoint.state`.

        A window step is a number in the layout, and time is told for sources by their numbers. So
        with windows, the application's topology must be the one of the checkpoint.

        Raises:
            CheckpointError: it is another one.
        """
        position = self.position()
        if not position:
            return StoredState()
        identity = read_identity(self._directory / IDENTITY)
        layout, steps = self._layout(), application.window_steps
        by_number = any(isinstance(member, int) for group in layout.members for member in group)
        if by_number and identity.topology != describe_topology(application):
            raise CheckpointError(
                f"the windows in {self._directory} cannot be read for another topology: on Spark "
                "they are stored by the number of their step"
            )
        entities: list[StoredEntity] = []
        windows: list[StoredWindows] = []
        clocks: list[tuple[Any, Mapping[int, float]]] = []
        for _, address, stored_as, blob in self._stored():
            member, name = entity_of(layout.members[address.group], stored_as)
            kept = unpacked(blob)
            if isinstance(member, str):
                visited = kept.visited if member in layout.expire_after else None
                entities.append(StoredEntity(member, name, visited, kept.state))
            elif name == CLOCK:
                clocks.append(pickle.loads(kept.state))  # noqa: S301 - from the owner's directory
            elif (form := form_of(application, member, name, blob)) is not None:
                windows.append(StoredWindows(steps.index(member), name[len(KEY) :], form))
        now = max([entity.visited or 0 for entity in entities], default=0)
        state = StoredState(position, now, entities=entities, windows=windows)
        if not clocks:
            return state
        (now, first, of_sources), _ = max(clocks, key=lambda clock: clock[0][0])
        times = [
            StoredTime(None if greatest == NO_TIME else greatest, last, ended)
            for greatest, last, ended in of_sources
        ]
        watermarks = [max([reached.get(step, NEVER) for _, reached in clocks]) for step in steps]
        return replace(
            state,
            now=now,
            first=first,
            sources=dict(zip(application.sources, times, strict=True)),
            watermarks=watermarks,
        )

    def _found(self) -> Iterator[_Found]:
        """Yield the state entities; of those that expire, the ones still there at the last record.

        When the last record came is not stored: it is taken to be the last visit of all.
        """
        layout = self._layout()
        entities = []
        for _, address, name, blob in self._stored():
            member, key = entity_of(layout.members[address.group], name)
            if isinstance(member, str):
                entities.append(_Found(member, key, unpacked(blob)))
        now = max([entity.state.visited for entity in entities], default=0)
        for entity in entities:
            expire_after = layout.expire_after.get(entity.partition)
            if expire_after is None or now - entity.state.visited < expire_after:
                yield entity

    def _layout(self) -> Layout:
        """Return the layout, once the states that it tells of are there.

        Raises:
            CheckpointError: it is missing or damaged, or states are missing.
        """
        layout = read_layout(self._directory / LAYOUT)
        if self.position() and (levels := levels_in(self._part)) != layout.operators:
            raise CheckpointError(
                f"{self._part / 'state'} is half deleted: it has the states of {levels} "
                f"operators, not of {layout.operators}. Restore it from a copy, or begin anew with "
                "an empty directory"
            )
        return layout

    def _stored(self) -> Iterator[tuple[int, Address, bytes, bytes]]:
        """Yield all that shards hold at the last micro-batch that is committed.

        Of each value: the shard, the address, the id, and the value.
        """
        if not read_spark_part(self._part).committed or not levels_in(self._part):
            return
        shards: dict[int, MemoryMap] = {}
        with self._explained(), seen_from(self._part) as part:
            for shard, key, value in stored_segments(session().spark, part):
                shards.setdefault(shard, MemoryMap()).put(key, value)
        for shard, segments in shards.items():
            for address, name, blob in stored(segments):
                yield shard, address, name, blob

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except WallarooError:
            raise
        except Exception as error:
            _log.debug("Spark failed", exc_info=error)
            raise WallarooError(explained(str(error), self._directory)) from error
