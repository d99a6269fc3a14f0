"""The engine's part of a checkpoint, for `wallaroo checkpoint`.

How far it is, files tell. The states are in files that only Spark can read; so to show, check or
change them, Spark is started, once something was committed.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wallaroo.copying import PICKLED
from wallaroo.errors import UsageError
from wallaroo.overriding import override
from wallaroo.times import SourceMoment
from wallaroo.topology import Application
from wallaroo.transport.identity import RESTORE, CheckpointError, Identity, damaged
from wallaroo.transport.old_states import Place
from wallaroo.transport.stamps import Stamp
from wallaroo.transport.stored import Overview, StoredCheckpoint
from wallaroo.transport.stored_state import (
    StoredEntity,
    StoredState,
    StoredWindows,
    parts_in,
    with_ends,
)
from wallaroo.windowing.kinds import Panes, Ranges, kind_of
from wallaroo.windowing.watermarks import NEVER
from wallaroo.windows import windows_of
from wallaroo_spark.jvm.java import JavaNotFoundError
from wallaroo_spark.jvm.session import session
from wallaroo_spark.live.checkpoint import ENGINE, RESUME, SINKS, stamps_in
from wallaroo_spark.live.failures import explaining
from wallaroo_spark.live.kafka_sinks import read_topics
from wallaroo_spark.live.layout import LAYOUT, Layout, layout_of, read_layout
from wallaroo_spark.live.new_part import write_parts
from wallaroo_spark.live.offset_log import RECORDS
from wallaroo_spark.live.resume import Resume, read_resume
from wallaroo_spark.live.spark_part import (
    damaged_files,
    misfit,
    missing_files,
    read_spark_part,
    refuse_irregular_files,
    seen_from,
)
from wallaroo_spark.plans.states import levels_in, stored_segments
from wallaroo_spark.wire.job import Address
from wallaroo_spark.worker.replay import CLOCK, Clock, clock_in
from wallaroo_spark.worker.segments import MemoryMap, all_entities_in
from wallaroo_spark.worker.states import entity_of
from wallaroo_spark.worker.stored import unpacked
from wallaroo_spark.worker.window_store import KEY, windows_in

_log = logging.getLogger("wallaroo.spark")


class StoredOnSpark(StoredCheckpoint):
    """Spark's part of a checkpoint.

    Args:
        directory: the checkpoint's directory.
    """

    engine, client = ENGINE, "-0"

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._part = directory / ENGINE
        self._state: StoredState | None = None

    @override
    def stamps(self) -> Iterator[tuple[Path, Stamp]]:
        refuse_irregular_files(self._part)
        return stamps_in(self._directory)

    @override
    def overview(self) -> Overview:
        part = read_spark_part(self._part)
        files = [path.stat() for path in self._part.rglob("*") if path.is_file()]
        size = sum([file.st_size for file in files])
        counts: Counter[str] | None = Counter()
        windows: Counter[str] = Counter()
        if part.committed:
            try:
                state = self.state()
                counts = Counter([entity.partition for entity in state.entities])
                for one in state.windows:
                    windows[state.steps[one.step].name] += parts_in(one.form)
            except (JavaNotFoundError, CheckpointError) as error:
                _log.warning("the entities cannot be counted: %s", error)
                counts = None
        at = self._at() if part.committed else None
        return Overview(part.committed, at, {"state": size}, counts, windows)

    def _at(self) -> int:
        """Return when the last micro-batch was committed, in nanoseconds since 1970; 0: never."""
        commits = (self._part / "commits").glob("*")
        return max(
            [path.stat().st_mtime_ns for path in commits if path.name.isdecimal()], default=0
        )

    @property
    @override
    def holds_log(self) -> bool:
        return RECORDS in (read_spark_part(self._part).offset or {})

    @override
    def position(self) -> int:
        return read_spark_part(self._part).committed

    @override
    def verify(self) -> str:
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
        self.state()  # reads all there is; it is kept for whoever asks for it next
        return ""

    @override
    def write(
        self, state: StoredState, identity: Identity, application: Application | None
    ) -> None:
        try:
            layout = read_layout(self._directory / LAYOUT)
        except CheckpointError:
            if application is None:
                raise UsageError(
                    "nothing here says how Spark stores the states of this application: name it "
                    "with --app APP"
                ) from None
            layout = layout_of(application)
        write_parts(self._directory, state, layout, identity)

    @override
    def state(self) -> StoredState:
        if self._state is None:
            part = read_spark_part(self._part)
            if part.committed:
                self._state = self._read(part.committed)
            else:
                self._state = StoredState(logged=None if part.in_offsets_alone else {})
        return self._state

    def _read(self, position: int) -> StoredState:
        layout = self._layout()
        steps = layout.window_steps
        entities: list[StoredEntity] = []
        windows: list[StoredWindows] = []
        clocks: list[Clock] = []
        watermarks = [NEVER] * len(steps)
        for address, stored_as, blob in self._stored():
            members = layout.members[address.group]
            member, name = entity_of(range(len(members)), stored_as)
            place = members[member]
            if not place.shape:
                entity = unpacked(blob)
                visited = entity.visited if place.name in layout.expire_after else None
                entities.append(StoredEntity(place.name, name, visited, entity.state))
            elif name == CLOCK:
                clocks.append(clock_in(blob))
                held = [step for step, (group, _) in enumerate(steps) if group == address.group]
                for step, watermark in zip(held, clocks[-1].reached, strict=True):
                    watermarks[step] = max(watermarks[step], watermark)
            elif (kept := windows_in(name, blob)) is not None:
                step = steps.index((address.group, member))
                windows.append(StoredWindows(step, name[len(KEY) :], _form(place, kept)))
        resume = read_resume(self._directory / RESUME) or Resume()
        begun = read_spark_part(self._part).in_offsets_alone
        logged = resume.sources if resume.sequence <= position and not begun else None
        now = max([entity.visited or 0 for entity in entities], default=0)
        first = None
        sources: Mapping[str, SourceMoment] = {}
        if clocks:
            latest = max(clocks, key=lambda clock: clock.now)
            now, first, sources = latest.now, latest.first, latest.sources
        return StoredState(
            position,
            now,
            first,
            with_ends(sources, logged or {}),
            [place.name for some in layout.members for place in some if not place.shape],
            [layout.members[group][member] for group, member in steps],
            watermarks,
            [entity for entity in entities if not layout.expired(entity, now)],
            windows,
            logged,
            topics=read_topics(self._directory / SINKS),
            at=self._at(),
            streams=resume.streams_at(position),
        )

    def _layout(self) -> Layout:
        """Return the layout, once the states that it tells of are there.

        Raises:
            CheckpointError: it is missing or damaged, or states are missing.
        """
        layout = read_layout(self._directory / LAYOUT)
        if self.position() and (levels := levels_in(self._part)) != layout.operators:
            raise CheckpointError(
                f"{self._part / 'state'} is half deleted: it has the states of {levels} "
                f"operators, not of {layout.operators}. {RESTORE}"
            )
        return layout

    def _stored(self) -> Iterator[tuple[Address, bytes, bytes]]:
        """Yield all that shards hold at the last micro-batch that is committed.

        Of each value: the address, the id, and the value.
        """
        if not read_spark_part(self._part).committed or not levels_in(self._part):
            return
        shards: dict[int, MemoryMap] = {}
        with explaining(self._directory), seen_from(self._part) as part:
            for shard, key, value in stored_segments(session().spark, part):
                shards.setdefault(shard, MemoryMap()).put(key, value)
        for segments in shards.values():
            yield from all_entities_in(segments)


def _form(place: Place, windows: Any) -> Any:
    """Return the windows of a key in the form of `StoredWindows`."""
    if isinstance(windows, Panes):
        return {number: _packed(part) for number, part in windows.parts.items()}
    kind = kind_of(windows_of(place.shape))
    assert not isinstance(kind, Ranges)
    return kind.form(windows, _packed)


def _packed(part: Any) -> bytes:
    """Return a frozen accumulator as it is stored."""
    return part[0] if type(part) is tuple else PICKLED.dumps(part)
