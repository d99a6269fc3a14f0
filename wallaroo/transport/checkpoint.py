"""A run's checkpoint directory, of every engine: its owner, its identity, one run at a time.

It holds an identity, a lock, the input log, and the engine's own part. The identity says to which
engine, application, topology and number of partitions a checkpoint belongs: it decides which entity
a message meets, so it has a checksum. A run with another one is refused, and the error says what
differs.

The parts of a checkpoint carry stamps (`wallaroo.transport.stamps`), and a part that does not
belong is refused (recover-3). A run that begins writes its stamp into all of them, one after the
other, and may be killed between any two. So the identity lists the runs whose stamps a part may
carry: first those that were found and the new one, and in the end the new one alone.

State is unpickled from a checkpoint, which can run any code. So only its owner may use it,
and a directory that others can write is refused.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from wallaroo.errors import UsageError, WallarooError
from wallaroo.operations import Stateful, Windowed
from wallaroo.topology import Application, Sink, SinkId, Source
from wallaroo.transport.private import (
    make_private,
    open_to_others,
    opener,
    read_regular,
    sync_directory,
    write_durably,
)
from wallaroo.transport.stamps import Draw, Stamp, born, from_json, random_bytes
from wallaroo.transport.threads import in_child
from wallaroo.windows import shape_of, windows_of

REPLACING = "replacing"
"""A directory in it with parts that are to replace those of their names."""

LOCK = "lock"
"""The file in a checkpoint's directory that a run keeps locked."""
INPUT = "input"
"""The directory of the input log in it."""

IDENTITY = "identity.json"
"""A file that every checkpoint's directory contains, whatever the directory's name."""

RESTORE = "Restore the whole checkpoint from a copy, or begin anew with an empty directory"
"""What to do with a checkpoint that is damaged; a part from an older copy would be refused."""

_FORMAT = 2
_OWN_CODEC = "its own serialize and deserialize"
_TYPES = {
    "engine": str,
    "application": str,
    "topology": list,
    "partitions": int,
    "stamp": list,
    "runs": list,
    "recording": bool,
}

_LOCK_TIMEOUT = 20.0  # seconds to wait for the end of an earlier run that was just killed
_SAY_AFTER = 1.0  # seconds of this wait after which it is told

_log = logging.getLogger("wallaroo.transport")


class CheckpointError(WallarooError):
    """A checkpoint cannot be used; says which, why, and what to do."""


class CheckpointDirectory:
    """A checkpoint's directory, locked by this run while it is open.

    Args:
        directory: the directory; if it is missing it is made, and only its owner can use it.
        own_part: name of the engine's own part in it.
        draw: where the numbers in stamps come from.

    Attributes:
        directory: the directory.
        own_part: the path of the engine's own part.
        lock: a descriptor that a child process may inherit; the directory stays locked until the
            child has ended too.

    Raises:
        CheckpointError: others can write it, or it is in use.
        UsageError: it is a file.
        OSError: it cannot be made, locked or read.
    """

    def __init__(self, directory: Path, own_part: str, draw: Draw = random_bytes) -> None:
        self.directory = directory
        self.own_part = directory / own_part
        self.lock = -1
        self._draw = draw
        self._identity: Identity
        self._topology: list[str]
        self._found: set[str] = set()  # what the runs drew that wrote the parts
        try:
            try:
                make_private(directory)
            except FileExistsError:
                refuse_file(directory)
                raise
            trust(directory)
            self.lock = opener(str(directory / LOCK), os.O_RDWR | os.O_CREAT)
            in_child(self.close)
            self._take_lock()
            self._replace()
            for part in (self.own_part, self.input_log):
                if part.is_dir():
                    trust(part)
        except BaseException:
            self.close()
            raise

    @property
    def input_log(self) -> Path:
        """The directory of the input log."""
        return self.directory / INPUT

    @property
    def is_new(self) -> bool:
        """Whether it is empty, so that it belongs to no application yet.

        Raises:
            CheckpointError: there is something in it.
        """
        if (self.directory / IDENTITY).exists():
            return False
        if self.own_part.exists() or any(self.input_log.glob("*.log")):
            raise CheckpointError(
                f"{self.directory} holds a checkpoint without {IDENTITY}, so nobody knows whose "
                "it is; restore that file, or take an empty directory"
            )
        return True

    @property
    def born(self) -> Stamp:
        """A stamp of the checkpoint, once it is identified."""
        return self._identity.stamp

    @property
    def restarts(self) -> int:
        """Number of earlier runs on the checkpoint, once a run has begun."""
        return self._identity.stamp.number - 1

    def identify(
        self, engine: str, application: Application, partitions: int | None, *, default: int = 1
    ) -> Identity:
        """Return whose the checkpoint is, which may have another topology; nothing is written.

        Args:
            engine: the engine that wants to use it.
            application: the application that wants to use it.
            partitions: the number that is asked for; `None`: what it was made with.
            default: the number of a new one where none is asked for.

        Raises:
            CheckpointError: its identity is damaged or missing, or it belongs to something else.
        """
        self._topology = describe_topology(application)
        if self.is_new:
            stamp = born(self._draw)
            self._identity = identity_of(engine, application, partitions or default, stamp)
        else:
            path = self.directory / IDENTITY
            self._identity = identify(path, engine, application, partitions)
        return self._identity

    def refuse_other(self, part: Path, stamp: Stamp) -> None:
        """Refuse a part that does not belong to this checkpoint (recover-3).

        Raises:
            CheckpointError: it does not.
        """
        self._identity.refuse_other(part, stamp)
        self._found.add(stamp.run)

    def begin_run(self) -> Stamp:
        """Write down that a run begins, after all parts were looked at; return its stamp.

        From now on the checkpoint has the topology of the application that it was identified for.

        Raises:
            CheckpointError: it cannot be written.
        """
        stamp = self._identity.stamp.next_run(self._draw)
        runs = sorted({*self._found, stamp.run})
        self._identity = replace(self._identity, stamp=stamp, runs=runs, topology=self._topology)
        write_identity(self.directory / IDENTITY, self._identity)
        return stamp

    def all_stamped(self) -> None:
        """Write down that all parts carry the stamp that `begin_run` has returned.

        Raises:
            CheckpointError: it cannot be written.
        """
        self._identity = replace(self._identity, runs=[self._identity.stamp.run])
        write_identity(self.directory / IDENTITY, self._identity)

    @contextlib.contextmanager
    def replaced(self) -> Iterator[Path]:
        """Make the checkpoint one of the application, whose topology is another: all, or nothing.

        Yields:
            A directory. What the block puts there replaces the parts of these names.

        Raises:
            CheckpointError: it cannot be written.
        """
        partial = self.directory / f"{REPLACING}.new"
        identity = replace(self._identity, topology=self._topology)
        try:
            shutil.rmtree(partial, ignore_errors=True)
            make_private(partial)
            yield partial
            write_identity(partial / IDENTITY, identity)
            os.sync()  # all of it is on the disk before its name is
            partial.rename(self.directory / REPLACING)
            sync_directory(self.directory)
            self._replace()
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint {self.directory} cannot be written: {error.strerror}"
            ) from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)  # it is still there if something failed
        self._identity = identity

    def half_deleted(self, why: str) -> CheckpointError:
        """Return the error for a checkpoint of which a part is missing."""
        return CheckpointError(f"the checkpoint {self.directory} is half deleted: {why}. {RESTORE}")

    def close(self) -> None:
        """Give up the lock."""
        if self.lock >= 0:
            os.close(self.lock)
            self.lock = -1

    def size(self) -> int:
        """Return the bytes of the engine's own part; those that vanish meanwhile do not count."""
        found = 0
        for folder, _, names in os.walk(self.own_part):
            for name in names:
                with contextlib.suppress(OSError):
                    found += (Path(folder) / name).stat().st_size
        return found

    def _replace(self) -> None:
        """Put parts into their places, if this run, or one that was killed, has begun to."""
        replacing = self.directory / REPLACING
        shutil.rmtree(f"{replacing}.new", ignore_errors=True)  # of a run that was killed before
        if not replacing.is_dir():
            return
        for part in replacing.iterdir():
            place = self.directory / part.name
            if place.is_dir():
                shutil.rmtree(place)
            part.rename(place)
        sync_directory(self.directory)
        replacing.rmdir()
        sync_directory(self.directory)

    def _take_lock(self) -> None:
        began = time.monotonic()
        told = False
        while True:
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waited = time.monotonic() - began
                if waited > _LOCK_TIMEOUT:
                    raise CheckpointError(
                        f"the checkpoint {self.directory} is in use by another run. Stop that run, "
                        "or take another directory"
                    ) from None
                if waited >= _SAY_AFTER and not told:
                    told = True
                    _log.info(
                        "the checkpoint %s is in use by another run; waiting for its end, %.0f s "
                        "at most",
                        self.directory,
                        _LOCK_TIMEOUT,
                    )
                time.sleep(0.05)
            else:
                return


def say_where_it_begins(place: Path | str, next_sequence: int) -> None:
    """Log whether a run goes on from a checkpoint, and with which record.

    Args:
        place: the checkpoint's.
        next_sequence: number of the next record that it receives.
    """
    if next_sequence:
        _log.info("%s: resumed at record %s", place, f"{next_sequence:,}")
    else:
        _log.info("%s: a new checkpoint, without a record so far", place)


def refuse_file(directory: Path) -> None:
    """Refuse a file where a directory is meant.

    Raises:
        UsageError: it is a file.
    """
    if directory.is_file():
        raise UsageError(f"{directory} is a file; a checkpoint or a recording is a directory")


def trust(directory: Path) -> None:
    """Refuse a directory that others can write.

    Raises:
        CheckpointError: they can.
        OSError: it does not exist, or its permissions cannot be read.
    """
    if problem := open_to_others(directory):
        raise CheckpointError(
            f"the checkpoint cannot be trusted, since state is unpickled from it: {problem}"
        )


# -- the identity ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Identity:
    """Whose a checkpoint is.

    Args:
        engine: name of the engine that wrote it.
        application: the application's name.
        topology: `describe_topology` of the application.
        partitions: number of partitions.
        stamp: of the last run that began on it. Of a recording: of the checkpoint whose input it
            keeps.
        runs: what those runs drew whose stamps its parts may carry; empty: any run of it.
        recording: it is a recorded run, without state (`wallaroo.transport.recording`).
    """

    engine: str
    application: str
    topology: list[str]
    partitions: int
    stamp: Stamp
    runs: Collection[str] = ()
    recording: bool = False

    @property
    def coded(self) -> bool:
        """Whether the application's own codec stores the states (key-5)."""
        return _OWN_CODEC in self.topology

    def has_topology_of(self, application: Application) -> bool:
        """Whether it has the topology of this application."""
        return self.topology == describe_topology(application)

    def refuse_other(self, part: Path, stamp: Stamp) -> None:
        """Refuse a part of another checkpoint, or of a copy that went on apart (recover-3).

        Raises:
            CheckpointError: it is one.
        """
        if stamp.checkpoint != self.stamp.checkpoint:
            where = "another checkpoint"
        elif self.runs and stamp.run not in self.runs:
            where = "a copy that is older or went on apart"
        else:
            return
        raise CheckpointError(
            f"{part} does not belong here: {stamp} wrote it, and {self.stamp} wrote {IDENTITY}. "
            f"One of the two is from {where}. Nothing was changed. Put back the part that belongs "
            "here, or restore the whole checkpoint from one copy"
        )


def identity_of(
    engine: str,
    application: Application,
    partitions: int,
    stamp: Stamp,
    *,
    recording: bool = False,
) -> Identity:
    """Return the identity of a new checkpoint, or recording, of an application."""
    topology = describe_topology(application)
    return Identity(engine, application.name, topology, partitions, stamp, recording=recording)


def read_identity(path: Path) -> Identity:
    """Return the identity in a file.

    Raises:
        CheckpointError: it is damaged, or of another version.
        FileNotFoundError: it does not exist.
    """
    try:
        form = json.loads(read_regular(path))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise damaged(path, "it is not JSON") from error
    if not isinstance(form, dict) or type(form.get("format")) is not int:
        raise damaged(path, "it does not say its format")
    if form["format"] != _FORMAT:
        raise CheckpointError(
            f"the checkpoint {path.parent} belongs to another version: its format is "
            f"{form['format']}, ours {_FORMAT}. Take another directory, or run that version"
        )
    if form.pop("checksum", None) != _checksum(form):
        raise damaged(path, "its checksum does not fit what it says")
    if any(type(form.get(name)) is not kind for name, kind in _TYPES.items()):
        raise damaged(path, f"it does not say {', '.join(_TYPES)}")
    texts = [*form["topology"], *form["runs"]]
    if form["partitions"] < 1 or any(type(text) is not str for text in texts):
        raise damaged(path, "it says what no run has written")
    try:
        form["stamp"] = from_json(form["stamp"])
    except ValueError as error:
        raise damaged(path, str(error)) from error
    return Identity(**{name: form[name] for name in _TYPES})


def identity_in(directory: Path) -> Identity:
    """Return whose a checkpoint, or a recording, is.

    Raises:
        UsageError: there is none.
        CheckpointError: others can write it, or its identity is damaged or of another version.
        OSError: it cannot be read.
    """
    refuse_file(directory)
    try:
        trust(directory)
        return read_identity(directory / IDENTITY)
    except FileNotFoundError:
        raise UsageError(f"{directory} holds no checkpoint: it has no {IDENTITY}") from None


def refuse_others(directory: Path, identity: Identity, parts: Iterable[tuple[Path, Stamp]]) -> None:
    """Refuse parts of another checkpoint, or of a copy that went on apart (recover-3).

    Args:
        directory: the checkpoint, or a recording; a run may be writing its stamp just now.
        identity: what its identity was before the parts were read.
        parts: files, and whose they say they are.

    Raises:
        CheckpointError: one does not belong.
    """
    now = read_identity(directory / IDENTITY)
    for part, stamp in parts:
        replace(now, runs={*identity.runs, *now.runs}).refuse_other(part, stamp)


def identify(
    path: Path,
    engine: str,
    application: Application,
    partitions: int | None,
    *,
    recording: bool = False,
) -> Identity:
    """Return the identity of a checkpoint, or a recording; it may have another topology.

    Args:
        path: the identity's file.
        engine: name of the engine that wants to use the checkpoint.
        application: the application that wants to use it.
        partitions: the number it asks for; `None`: the number that the checkpoint was made with.
        recording: a recording is wanted.

    Raises:
        CheckpointError: it is damaged, or belongs to another engine or application, or has
            another number of partitions.
        FileNotFoundError: there is no identity yet.
    """
    theirs = read_identity(path)
    if theirs.recording is not recording:
        is_one = "a recording, which --record made, not a checkpoint"
        raise CheckpointError(
            f"{path.parent} holds {'a checkpoint, not a recording' if recording else is_one}. "
            "Take another directory"
        )
    ours = replace(
        theirs,
        engine=engine,
        application=application.name,
        partitions=theirs.partitions if partitions is None else partitions,
    )
    for what, difference in _differences(theirs, ours):
        raise CheckpointError(
            f"the checkpoint {path.parent} belongs to another {what}: {difference}. "
            "Take another directory, or run what it belongs to"
        )
    return theirs


def write_identity(path: Path, identity: Identity) -> None:
    """Write the identity of a checkpoint, or a recording.

    Raises:
        CheckpointError: it cannot be written.
    """
    form: dict[str, Any] = {"format": _FORMAT, **asdict(identity)}
    form["checksum"] = _checksum(form)
    try:
        write_durably(path, json.dumps(form, indent=1).encode())
    except OSError as error:
        raise CheckpointError(
            f"the checkpoint {path.parent} cannot be written: {error.strerror}"
        ) from error


def describe_topology(application: Application) -> list[str]:
    """Return what a checkpoint knows of an application's topology, a line for each part."""
    lines, ways = [], []
    for index, node in enumerate(application.nodes):
        if isinstance(node, Source):
            lines.append(source_line(node.pipeline))
            continue
        ways += [f"{origin}-{index}" for origin in node.inputs]
        if isinstance(node, Sink):
            lines.append(sink_line(node.id))
            continue
        line = f"step {node.name!r} of pipeline {node.pipeline!r}"
        if isinstance(node.operation, Stateful):
            partition = application.partition[node.operation.partition]
            keyed = "64-bit keys" if partition.u64 else "keys"
            line += f" over state partition {partition.name!r} by {keyed}"
            line += ", which expires" * (partition.expire_after is not None)
        elif isinstance(node.operation, Windowed):
            line += f", windows: {windows_of(shape_of(node.operation.windows)).described()}"
        lines.append(line)
    lines.append(f"connections {' '.join(ways)}")
    if application.codec is not None:
        lines.append(_OWN_CODEC)
    return lines


def source_line(name: str) -> str:
    """Return how a topology's description names a source."""
    return f"source {name!r}"


def sink_line(sink: SinkId) -> str:
    """Return how a topology's description names a sink."""
    return f"sink {sink[0]}/{sink[1]}"


def _checksum(identity: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def unused(directory: Path) -> Iterator[bool]:
    """Yield whether no run uses a checkpoint; then none can begin while the block runs."""
    try:
        fd = os.open(directory / LOCK, os.O_RDONLY | os.O_NONBLOCK)  # it may be a FIFO
    except FileNotFoundError:
        yield True
        return
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)


def damaged(path: Path, why: str) -> CheckpointError:
    """Return the error for a damaged file of a checkpoint."""
    return CheckpointError(f"{path} is damaged: {why}. {RESTORE}")


def _differences(theirs: Identity, ours: Identity) -> Iterator[tuple[str, str]]:
    anew = "wallaroo checkpoint DIR {} -o NEW writes it anew"
    if theirs.engine != ours.engine:
        change = anew.format(f"--to {ours.engine} --app APP")
        yield "engine", f"{theirs.engine}, not {ours.engine}; {change}"
    if theirs.application != ours.application:
        yield "application", f"{theirs.application!r}, not {ours.application!r}"
    if theirs.partitions != ours.partitions:
        change = anew.format(f"--partitions {ours.partitions}")
        yield "number of partitions", f"{theirs.partitions}, not {ours.partitions}; {change}"
