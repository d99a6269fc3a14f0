"""An open checkpoint: what a restart goes on from, after looking whether it may.

A restart puts the stored cells into a fresh machine, and processes the records of the log from the
checkpoint's position on again.
"""

from __future__ import annotations

import contextlib
import gc
import pickle
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from wallaroo.config import GenSourceConfig
from wallaroo.kafka import KafkaSourceConfig
from wallaroo.overriding import override
from wallaroo.records import Single, Value
from wallaroo.topology import Application, SinkId
from wallaroo.transport.changed_topology import (
    NOTHING_ACCEPTED,
    Accepted,
    accept_topology,
    held_edges,
    held_states,
    positions_of,
)
from wallaroo.transport.checkpoint import INPUT, CheckpointDirectory
from wallaroo.transport.identity import CheckpointError, Identity, damaged
from wallaroo.transport.input_log import InputLog, LoggedRun, RecordKind
from wallaroo.transport.kafka.context import contexts_of
from wallaroo.transport.kafka.edges import KafkaEdges, KeptOutputs
from wallaroo.transport.log_directory import LogEnds
from wallaroo.transport.logged import (
    LoggedSource,
    at_the_end_of,
    first_offsets,
    from_log,
    runs_from,
)
from wallaroo.transport.old_states import FreshStates, Place
from wallaroo.transport.recording import Recording
from wallaroo.transport.resumption import Stream
from wallaroo.transport.skipping import skipped, skipped_consumed, skipped_of_topic
from wallaroo.transport.stamps import Stamp
from wallaroo.transport.stored_state import first_accumulator
from wallaroo_reference.cells import VISITED, UnpackError
from wallaroo_reference.checkpoints.head import Head, moment_in, places_in
from wallaroo_reference.checkpoints.on_disk import ENGINE, Entry, Frames, FromTopic, Left, OnDisk
from wallaroo_reference.checkpoints.store import FILE, StateFile, latest
from wallaroo_reference.machine import Machine


class Recovery(OnDisk):
    """An open checkpoint. `close` it.

    Args:
        directory: the checkpoint's directory; it is made if it is missing.
        application: the application it belongs to.
        partitions: number of partitions; `None`: the number it was made with, 1 for a new one.
        log_bytes: see `InputLog`.
        record: directory in which the whole input log is kept; `None`: it is not.
        accepted: what is accepted of a checkpoint that another version of the application wrote.
        skip: numbers of records that `later` marks as left out.

    Attributes:
        head: what the checkpoint says; `None`: it is new, or nothing was stored yet.
        checkpoint: its directory, locked by this run.
        store: its file.
        log: the input log.
        partitions: number of partitions.
        first_blob: number of the first blob that counts once the next checkpoint is stored.

    Raises:
        CheckpointError: it cannot be used.
        InputLogError: its input log cannot be used.
    """

    def __init__(
        self,
        directory: Path,
        application: Application,
        *,
        partitions: int | None,
        log_bytes: int,
        record: Path | None = None,
        accepted: Accepted = NOTHING_ACCEPTED,
        skip: Collection[int] = (),
    ) -> None:
        self._application = application
        self._skip = skip
        self.whole = record is not None
        with contextlib.ExitStack() as up:
            try:
                self.checkpoint = CheckpointDirectory(directory, ENGINE)
                up.callback(self.checkpoint.close)
                identity = self.checkpoint.identify(application, partitions)
                self.partitions = identity.partitions
                self.head = self._checked(identity, accepted)
                self.first_blob = 0 if self.head is None else self.head.first_blob

                def admit(log: LogEnds) -> Stamp:
                    self._check_input(log)
                    if record is not None:
                        made = Recording(
                            record, identity, application, checkpoint=directory, accepted=accepted
                        )
                        up.callback(made.close)
                    # What the application lacks stays in the file until the next checkpoint is
                    # stored; a restart before that leaves it out again.
                    return self.checkpoint.begin_run()

                self.log = InputLog.open(
                    self.checkpoint.input_log,
                    log_bytes,
                    recording=None if record is None else record / INPUT,
                    admit=admit,
                )
                up.callback(self.log.close)
                self.log.sources = frozenset(application.sources)
                stamp = self.checkpoint.born
                if self._is_fresh:
                    self.store = StateFile.create(self.checkpoint.own_part, stamp)
                else:
                    self.store = StateFile(self.checkpoint.own_part)
                    self.store.write_stamp(stamp)
                up.callback(self.store.close)
                self.checkpoint.all_stamped()
            except sqlite3.Error as error:
                raise CheckpointError(
                    f"the checkpoint {directory} cannot be written: {error}"
                ) from error
            except OSError as error:
                raise CheckpointError(
                    f"the checkpoint {directory} cannot be written: {error.strerror}"
                ) from error
            self._up = up.pop_all()

    @property
    def position(self) -> int:
        """The number of the first record whose effect is not in the stored state."""
        return 0 if self.head is None else self.head.moment.sequence

    @override
    def sync(self) -> int:
        return self.log.sync()

    @override
    def close(self) -> None:
        self._up.close()

    def restore(self, machine: Machine) -> None:
        """Put the stored state into a fresh machine.

        Raises:
            CheckpointError: it is damaged, or made by code that is not there any more.
        """
        head = self.head
        if head is None:
            return
        places = places_in(machine, head.cells)
        collecting = gc.isenabled()
        gc.disable()  # it would look again and again at objects that stay alive
        try:
            counts = [0] * len(places)
            for place, kept in latest(self.store.cells(head), len(places)):
                if (into := places[place]) is not None:
                    into.unpack(kept)
                counts[place] += len(kept)
            for count, was in zip(counts, head.cells, strict=True):
                if count != was.count:
                    raise damaged(
                        self.store.path,
                        f"it holds {count} cells of {was.name!r}, and there were {was.count}",
                    )
        except IndexError:
            raise damaged(self.store.path, "a blob belongs to no cells") from None
        except UnpackError as error:
            raise self._not_made_again(error) from error
        finally:
            if collecting:
                gc.enable()
        steps = [into for one, into in zip(head.cells, places, strict=True) if one.shape]
        moment = moment_in(machine, self._application.sources, head.moment, steps)
        machine.go_on_from(replace(moment, now=moment.now or self._now))
        if places != list(machine.cells()):  # a blob names a place, so all are to be written anew
            self.first_blob = head.next_blob
            for cells in machine.cells():
                cells.changed.update(dict.fromkeys(cells.identities()))

    @property
    def _now(self) -> int:
        """The time at the position, for an application that did not look at it so far."""
        log, position = self.log, self.position
        waits = position < log.next_sequence
        return log.runs(position, position + 1)[0].at if waits else log.latest_at

    @override
    def later(self, kafka: KafkaEdges | None = None) -> Iterator[Entry | FromTopic]:
        for runs in runs_from(self.log, self.position):
            for run in skipped(runs, self._skip):
                yield from self._entries(run, kafka)

    def left(self) -> Left:
        """Return what earlier runs have left besides the cells.

        Raises:
            CheckpointError: a generator's value cannot be read back.
            InputLogError: the log cannot be read.
        """
        head, born, log = self.head, self.checkpoint.born.checkpoint, self.log
        logged: Mapping[str, LoggedSource] = {}
        streams: Mapping[SinkId, Stream] = {}
        outputs = KeptOutputs(born, end=log.next_sequence)
        if head is not None:
            sources = self._application.sources
            logged = {name: one for name, one in head.logged.items() if name in sources}
            streams = head.streams
            outputs = replace(
                outputs, delivered=head.sinks, partitions=head.topics, position=self.position
            )
        for source in logged.values():
            source.value()  # refused now, if it cannot be read back
        in_all, first = logged, {}
        if self._has(GenSourceConfig, KafkaSourceConfig):
            in_all = at_the_end_of(log, self.position, logged, self._skip)
        if self._has(KafkaSourceConfig):
            first = first_offsets(log, self.position)
        return Left(logged, in_all, first, outputs, streams)

    def _has(self, *kinds: type) -> bool:
        sources = self._application.sources.values()
        return any(isinstance(source.config, kinds) for source in sources)

    def _entries(self, run: LoggedRun, kafka: KafkaEdges | None) -> Iterator[Entry | FromTopic]:
        """Yield what a run holds."""
        source = run.source
        if run.kind is RecordKind.FRAME:
            yield Frames(source, list(run.payloads), run.at)
        elif kafka is not None and run.kind is RecordKind.OFFSETS:
            partition, first = run.place
            read = kafka.fetch(source, partition, first, first + len(run.payloads) - 1)
            yield FromTopic(source, skipped_of_topic(run.first, read, self._skip), run.at)
        elif kafka is not None and run.kind is RecordKind.CONSUMED:
            records = skipped_consumed(run, self._skip)
            contexts = contexts_of(records[0].offset, {one.offset: one.headers for one in records})
            payloads = records if kafka.topics[source].whole else [one.value for one in records]
            yield Frames(source, payloads, run.at, records[0].partition, contexts)
        else:
            for record in run.records():
                if isinstance(record, Value):
                    yield from_log(record)
                elif isinstance(record, Single):
                    yield record

    @property
    def _is_fresh(self) -> bool:
        """Whether the file with the state is not there yet."""
        return not (self.checkpoint.own_part / FILE).exists()

    def _checked(self, identity: Identity, accepted: Accepted) -> Head | None:
        """Return what the checkpoint says, after looking at its state; nothing is changed."""
        if self._is_fresh:
            self._accept_topology(identity, None, accepted)
            return None
        with contextlib.closing(StateFile(self.checkpoint.own_part, alone=True)) as store:
            self.checkpoint.refuse_other(store.path, store.stamp())
            head = store.head()
            if not any(self.checkpoint.input_log.glob("*.log")):  # it was made before the file
                # Refused before an empty log is made: a copy restored would mix with it.
                raise self.checkpoint.half_deleted("it has no input")
            self._accept_topology(identity, head, accepted)
            if head is not None and not accepted.old_states:
                self._refuse_old_states(store, head)
            return head

    def _accept_topology(self, identity: Identity, head: Head | None, accepted: Accepted) -> None:
        """Refuse another topology, unless the user has accepted it."""
        application, log = self._application, self.checkpoint.input_log
        if identity.has_topology_of(application):
            return
        held = [*held_edges(identity, log, 0, {}, {})]
        if head is not None:
            held = [
                *[held_states(one.name, one.count, one.shape) for one in head.cells],
                *held_edges(
                    identity,
                    log,
                    head.moment.sequence,
                    head.sinks,
                    positions_of(head.logged),
                ),
            ]
        accept_topology(self.checkpoint.directory, identity, application, held, accepted)

    def _check_input(self, log: LogEnds) -> None:
        """Refuse an input log that is older or newer than the state, or another one's."""
        for file, stamp in log.stamps():
            self.checkpoint.refuse_other(file, stamp)
        if self._is_fresh and log.following:
            raise self.checkpoint.half_deleted(f"its input has records, and {FILE} is missing")
        self.checkpoint.refuse_other_records(log, self.position, self.position)

    def _refuse_old_states(self, store: StateFile, head: Head) -> None:
        """Refuse states, and accumulators, that this application would build otherwise."""
        samples: dict[int, bytes] = {}
        there = {place for place, cells in enumerate(head.cells) if cells.count}
        with contextlib.closing(store.cells(head)) as blobs:
            for place, cells in blobs:
                value = next((value for _, value in cells if value is not None), None)
                if value is not None:
                    samples.setdefault(place, value)
                if samples.keys() >= there:
                    break
        stored: list[tuple[Place, bytes]] = []
        for place, value in sorted(samples.items()):
            if place >= len(head.cells):
                continue  # it is damaged, and `restore` says so
            kept = head.cells[place]
            data = value[VISITED.size :] if kept.kind == "partition" else _accumulator(value)
            stored.append((Place(kept.name, kept.shape), data))
        FreshStates(self._application).refuse_old(self.checkpoint.directory, stored)

    def _not_made_again(self, error: UnpackError) -> CheckpointError:
        place = Place(error.cells.name, error.cells.shape)
        directory = self.checkpoint.directory
        return CheckpointError(
            f"the checkpoint {directory} cannot be read by this code: {place}, "
            f"key {error.key!r:.80}: {error}. Put back what was moved, renamed or removed, or "
            f"write a function that makes the states anew, and run: wallaroo checkpoint "
            f"{directory} --migrate MODULE:FUNCTION"
        )


def _accumulator(value: bytes) -> bytes:
    """Return the first accumulator, as bytes, in the value of a window's cell; empty: none."""
    with contextlib.suppress(Exception):  # `restore` says what is wrong with it
        return first_accumulator(pickle.loads(value))  # noqa: S301 - from the owner's directory
    return b""
