"""A checkpoint on disk, as `wallaroo checkpoint` shows and rewrites it, whichever engine wrote it.

An engine whose checkpoints can be looked at has a method ``stored(directory)``, which returns a
`StoredCheckpoint`. Nothing is changed, and a run may be using the checkpoint.

Whatever changes a stored state makes a new checkpoint beside the old one: the state is read whole,
made another, and written by the same engine or another one. So it is with a migration, another
number of partitions, and another engine (scale-1).
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from wallaroo.engine import load_engine
from wallaroo.errors import WallarooError
from wallaroo.keys import Key, decode_key, encoded_partition_number, key_to_json
from wallaroo.topology import Application
from wallaroo.trace import Entity
from wallaroo.transport.checkpoint import INPUT, LOCK, CheckpointDirectory
from wallaroo.transport.identity import IDENTITY, RESTORE, CheckpointError, Identity, write_identity
from wallaroo.transport.input_log import InputLogError
from wallaroo.transport.kafka.moved import exactly_once, shut_out_old
from wallaroo.transport.log_directory import LogEnds, create, ends, read
from wallaroo.transport.log_format import FileHead
from wallaroo.transport.private import make_private, sync_directory, told_as
from wallaroo.transport.shadows import structure_of
from wallaroo.transport.stamps import Stamp, born
from wallaroo.transport.stored_state import StoredEntity, StoredState, windows_from
from wallaroo.windowing.kinds import Count, kind_of
from wallaroo.windows import windows_of


@dataclass(frozen=True)
class LogPart:
    """The input log of a checkpoint.

    Args:
        ends: where it begins and ends, and whose it is.
        size: bytes of its files.
        torn: what is wrong at its end, if an append was cut off there; a restart drops it.
    """

    ends: LogEnds
    size: int
    torn: str | None


def look_at_log(directory: Path) -> LogPart:
    """Return what an input log holds, after reading all of it.

    Raises:
        InputLogError: it is damaged.
    """
    with told_as(InputLogError, f"the input log {directory} cannot be read"):
        files, torn = read(directory)
    size = sum([file.size for file in files])
    said = None if torn is None else f"{files[-1].path}: {torn}"
    return LogPart(ends(files), size, said)


@dataclass(frozen=True)
class Overview:
    """What a checkpoint holds.

    Args:
        position: number of the first record whose effect is not in the state.
        at: when the state was stored, in nanoseconds since 1970; `None`: never yet.
        sizes: bytes of its parts, by name.
        entities: their number by state partition; `None`: the engine cannot tell.
        windows: number of open windows' parts by step.
        outputs: number of outputs that came of the records before the position, by sink.
    """

    position: int
    at: int | None
    sizes: Mapping[str, int]
    entities: Mapping[str, int] | None
    windows: Mapping[str, int] = field(default_factory=dict)
    outputs: Mapping[str, int] = field(default_factory=dict)


class StoredCheckpoint(Protocol):
    """An engine's part of a checkpoint.

    Attributes:
        engine: name of the engine in the identities of its checkpoints.
        client: what the transactional id of the client of a topic's first partition ends with.
    """

    engine: str
    client: str = ""

    def stamps(self) -> Iterator[tuple[Path, Stamp]]:
        """Yield the files that say whose this part is, and what they say (recover-3).

        Raises:
            WallarooError: one is damaged.
        """

    @property
    def holds_log(self) -> bool:
        """Whether this part itself says what was read, so that there need be no input log."""
        return False

    def position(self) -> int:
        """Return the number of the first record whose effect is not in the state.

        Raises:
            WallarooError: it is damaged.
        """

    def overview(self) -> Overview:
        """Return what it holds.

        Raises:
            WallarooError: it is damaged.
        """

    def verify(self) -> str:
        """Read everything, and return what only the engine itself can read; empty: nothing.

        Raises:
            WallarooError: something is damaged.
        """

    def state(self) -> StoredState:
        """Return all of the state.

        Raises:
            WallarooError: it is damaged.
        """

    def write(
        self, state: StoredState, identity: Identity, application: Application | None
    ) -> None:
        """Write the engine's part of a new checkpoint, which has none.

        Args:
            state: what it is to hold; positions and times of sources included.
            identity: whose it is.
            application: the application; `None`: an earlier checkpoint of this engine, from which
                all else was copied, says how it stores its states.

        Raises:
            UsageError: the engine needs the application.
            WallarooError: it cannot be written, or the engine cannot hold this state.
        """


@dataclass(frozen=True)
class StoredWindow:
    """An open window.

    Args:
        step: the window step's name.
        key: the window's key.
        start, end: its bounds, in nanoseconds since 1970.
        messages: how many there are in it; `None`: not a count window, so that is not stored.
        accumulators: as canonical structure; of windows that overlap one for each pane, in order.
    """

    step: str
    key: Key
    start: int
    end: int
    messages: int | None
    accumulators: Sequence[Any]

    def to_json(self) -> dict[str, Any]:
        """Return the window as JSON."""
        form = {name: value for name, value in vars(self).items() if value is not None}
        return {**form, "key": key_to_json(self.key)}


def stored_windows(state: StoredState) -> Iterator[StoredWindow]:
    """Yield the open windows of a stored state, step by step, in order of their encoded keys."""
    for step, key, form in sorted(state.windows, key=lambda one: (one.step, one.key)):
        place, watermark = state.steps[step], state.watermarks[step]
        kind = kind_of(windows_of(place.shape))
        windows = windows_from(form, kind, watermark, structure_of)
        messages = windows.number if isinstance(windows, Count) else None
        for one in kind.open(key, windows):
            parts = list(one.parts)
            yield StoredWindow(place.name, decode_key(key), one.start, one.end, messages, parts)


def stored_entities(
    state: StoredState, partitions: int, wanted: Callable[[StoredEntity], bool] = lambda _: True
) -> Iterator[Entity]:
    """Yield entities of a stored state in a trace's order; their states are canonical structure.

    One after the other: as structure, a million of them need some GB.

    Args:
        state: the state.
        partitions: number of partitions.
        wanted: which ones.
    """
    for entity in sorted(filter(wanted, state.entities), key=lambda one: (one.partition, one.key)):
        yield Entity(
            entity.partition,
            decode_key(entity.key),
            encoded_partition_number(entity.key, partitions),
            structure_of(entity.state),
        )


def open_stored(directory: Path, engine: str) -> StoredCheckpoint:
    """Return an engine's part of a checkpoint.

    Raises:
        WallarooError: there is no such engine, or it cannot look at its checkpoints.
    """
    look = getattr(load_engine(engine), "stored", None)
    if look is None:
        raise WallarooError(f"the engine {engine} cannot look at its checkpoints")
    stored: StoredCheckpoint = look(directory)
    return stored


def refuse_half_deleted(directory: Path, stored: StoredCheckpoint, log: LogEnds) -> None:
    """Refuse a checkpoint whose input log does not fit its state.

    Raises:
        CheckpointError: it does not.
    """
    position = stored.position()
    there_is_none = stored.holds_log and log.last is None
    if not there_is_none and not log.first <= position <= log.following:
        raise CheckpointError(
            f"the checkpoint {directory} is half deleted: its state knows the records before "
            f"{position}, and its input log holds {log.first} to {log.following}. {RESTORE}"
        )


def rewrite(
    directory: Path,
    old: Identity,
    target: Path,
    new: Identity,
    *,
    change: Callable[[StoredState], StoredState] = lambda state: state,
    application: Application | None = None,
) -> StoredState:
    """Write a checkpoint anew beside the old one, which stays as it is (scale-1, scale-2).

    No run can use the old one meanwhile. The new one gets its name only if it is whole. If the
    outputs to Kafka go on with another engine, no run can use the old one from then on.

    Args:
        directory: the checkpoint.
        old: whose it is.
        target: the new one: a directory that does not exist.
        new: whose that is; it may be another engine's, or have another number of partitions.
        change: returns the state of the new one.
        application: see `StoredCheckpoint.write`.

    Returns:
        What the new one holds.

    Raises:
        CheckpointError: the target exists or cannot be written, the checkpoint is in use, or it
            holds what the new one could not.
        WallarooError: brokers cannot be told that its outputs go on elsewhere.
    """
    if target.exists():
        raise CheckpointError(f"{target} exists already: move it elsewhere")
    begun = target.with_name(target.name + ".new")
    with told_as(CheckpointError, f"{directory} cannot be opened"):
        opened = CheckpointDirectory(directory, old.engine)
    try:
        fcntl.flock(opened.lock, fcntl.LOCK_SH)  # who only reads a part sees that no run writes it
        stored = open_stored(directory, old.engine)
        stored.verify()
        files, _ = read(opened.input_log)
        log = ends(files)
        refuse_half_deleted(directory, stored, log)
        state = change(stored.state())
        if state.logged is None:
            raise CheckpointError(
                f"the run on {directory} was killed between two steps of a micro-batch. Run the "
                "application on it once, and stop it: then it can be written anew"
            )
        shutil.rmtree(begun, ignore_errors=True)
        make_private(begun)
        sinks = [] if new.engine == old.engine else exactly_once(application)
        if sinks:
            if log.last is not None:
                _refuse_unfinished(directory, log.following - state.position)
            new = replace(new, stamp=born(), runs=())
        if sinks or (not files and new.engine != old.engine):
            # All of the log has had its effect: it may stand in Spark's own log of offsets.
            now = max([state.now, *[file.latest_at for file in files]])
            make_private(begun / INPUT)
            create(begun / INPUT, FileHead(state.position, now, new.stamp))
        else:
            shutil.copytree(opened.input_log, begun / INPUT)
        if new.engine == old.engine:
            for file in directory.iterdir():
                if file.is_file() and file.name not in (LOCK, IDENTITY):
                    shutil.copy(file, begun / file.name)
        write_identity(begun / IDENTITY, new)
        open_stored(begun, new.engine).write(state, new, application)
        os.sync()  # every file is on the disk before the name is
        if sinks and application is not None:
            shut_out_old(application, old.stamp.checkpoint, state.topics, stored.client)
        begun.rename(target)
        sync_directory(target.parent)
    except shutil.Error as error:  # of each file that could not be copied
        _, copied, why = error.args[0][0]
        raise CheckpointError(f"{copied} cannot be written: {why}") from error
    except OSError as error:
        raise CheckpointError(f"{target} cannot be written: {error}") from error
    finally:
        shutil.rmtree(begun, ignore_errors=True)  # it is still there if something failed
        opened.close()
    return state


def _refuse_unfinished(directory: Path, waiting: int) -> None:
    """Refuse a log of which the brokers may have outputs that the state does not tell of.

    Raises:
        CheckpointError: records wait in it.
    """
    if waiting:
        raise CheckpointError(
            f"{waiting:,} records wait in {directory}, and their outputs may be in Kafka already. "
            "Run the application on it as before, and stop it in order: then it can "
            "be written anew"
        )
