"""A run's checkpoint directory, of every engine: its owner, its identity, one run at a time.

It holds an identity, a lock, the input log, and the engine's own part. The identity says to which
engine, application, topology and number of partitions a checkpoint belongs: it decides which entity
a message meets, so it has a checksum. A run with another one is refused, and the error says what
differs. State is unpickled from a checkpoint, which can run any code. So only its owner may use it,
and a directory that others can write is refused.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo.errors import UsageError, WallarooError
from wallaroo.operations import Stateful, Windowed
from wallaroo.topology import Application, Sink, Source, Step
from wallaroo.transport.private import make_private, open_to_others, opener, write_durably
from wallaroo.transport.threads import in_child

LOCK = "lock"
"""The file in a checkpoint's directory that a run keeps locked."""
INPUT = "input"
"""The directory of the input log in it."""

IDENTITY = "identity.json"
"""A file that every checkpoint's directory contains, whatever the directory's name."""

_FORMAT = 1
_OWN_CODEC = "its own serialize and deserialize"
_TYPES = {"engine": str, "application": str, "topology": list, "partitions": int}

_LONGEST_COUNT = 18  # digits
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

    Attributes:
        directory: the directory.
        own_part: the path of the engine's own part.
        restarts: number of earlier runs that have used the directory.
        lock: a descriptor that a child process may inherit; the directory stays locked until the
            child has ended too.

    Raises:
        CheckpointError: others can write it, or it is in use.
        UsageError: it is a file.
        OSError: it cannot be made, locked or read.
    """

    def __init__(self, directory: Path, own_part: str) -> None:
        self.directory = directory
        self.own_part = directory / own_part
        self.lock = -1
        self.restarts = 0
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
            self._count()
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
        if self.own_part.exists():
            raise CheckpointError(
                f"{self.directory} holds a checkpoint without {IDENTITY}, so nobody knows whose "
                "it is; restore that file, or take an empty directory"
            )
        return True

    def identify(
        self,
        engine: str,
        application: Application,
        partitions: int | None,
        *,
        recording: bool = False,
    ) -> int:
        """Return the number of partitions of a checkpoint, or recording, that is not new.

        Raises:
            CheckpointError: its identity is damaged, or it belongs to something else.
        """
        path = self.directory / IDENTITY
        return identify(path, engine, application, partitions, recording=recording)

    def write_identity(
        self, engine: str, application: Application, partitions: int, *, recording: bool = False
    ) -> None:
        """Write the identity of a new checkpoint, or recording.

        Raises:
            CheckpointError: it cannot be written.
        """
        path = self.directory / IDENTITY
        write_identity(path, engine, application, partitions, recording=recording)

    def half_deleted(self, why: str, missing: Path) -> CheckpointError:
        """Return the error for a checkpoint of which a part is missing."""
        return CheckpointError(
            f"the checkpoint {self.directory} is half deleted: {why}. Restore {missing} from a "
            "copy, or begin anew with an empty directory"
        )

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

    def _count(self) -> None:
        """Count the runs, in the lock file; for figures only, so it need not survive everything."""
        text = os.pread(self.lock, _LONGEST_COUNT, 0)
        self.restarts = int(text) if text.isdigit() else 0
        with contextlib.suppress(OSError):  # no room on the disk
            os.pwrite(self.lock, str(self.restarts + 1).encode(), 0)

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


def say_where_it_begins(directory: Path, next_sequence: int) -> None:
    """Log whether a run goes on from a checkpoint, and with which record.

    Args:
        directory: the checkpoint's.
        next_sequence: number of the next record that it receives.
    """
    if next_sequence:
        _log.info("%s: resumed at record %s", directory, f"{next_sequence:,}")
    else:
        _log.info("%s: a new checkpoint, without a record so far", directory)


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
        recording: it is a recorded run, without state (`wallaroo.transport.recording`).
    """

    engine: str
    application: str
    topology: list[str]
    partitions: int
    recording: bool = False

    @property
    def coded(self) -> bool:
        """Whether the application's own codec stores the states (key-5)."""
        return _OWN_CODEC in self.topology


def read_identity(path: Path) -> Identity:
    """Return the identity in a file.

    Raises:
        CheckpointError: it is damaged, or of another version.
        FileNotFoundError: it does not exist.
    """
    found = _read(path)
    return Identity(**{name: found[name] for name in _TYPES}, recording=_recording(found))


def identify(
    path: Path,
    engine: str,
    application: Application,
    partitions: int | None,
    *,
    recording: bool = False,
) -> int:
    """Return the number of partitions of a checkpoint, or a recording, that has an identity.

    Args:
        path: the identity's file.
        engine: name of the engine that wants to use the checkpoint.
        application: the application that wants to use it.
        partitions: the number it asks for; `None`: the number that the checkpoint was made with.
        recording: a recording is wanted.

    Raises:
        CheckpointError: it is damaged, or belongs to something else.
        FileNotFoundError: there is no identity yet.
    """
    theirs = _read(path)
    if _recording(theirs) is not recording:
        is_one = "a recording, which --record made, not a checkpoint"
        raise CheckpointError(
            f"{path.parent} holds {'a checkpoint, not a recording' if recording else is_one}. "
            "Take another directory"
        )
    ours = {
        "engine": engine,
        "application": application.name,
        "topology": describe_topology(application),
        "partitions": theirs["partitions"] if partitions is None else partitions,
    }
    for what, difference in _differences(theirs, ours):
        raise CheckpointError(
            f"the checkpoint {path.parent} belongs to another {what}: {difference}. "
            "Take another directory, or run what it belongs to"
        )
    found: int = theirs["partitions"]
    return found


def write_identity(
    path: Path, engine: str, application: Application, partitions: int, *, recording: bool = False
) -> None:
    """Write the identity of a new checkpoint, or recording.

    Raises:
        CheckpointError: it cannot be written.
    """
    identity: dict[str, Any] = {
        "format": _FORMAT,
        "engine": engine,
        "application": application.name,
        "topology": describe_topology(application),
        "partitions": partitions,
    }
    if recording:
        identity["recording"] = True
    identity["checksum"] = _checksum(identity)
    try:
        write_durably(path, json.dumps(identity, indent=1).encode())
    except OSError as error:
        raise CheckpointError(
            f"the checkpoint {path.parent} cannot be written: {error.strerror}"
        ) from error


def describe_topology(application: Application) -> list[str]:
    """Return what must stay the same in all runs on a checkpoint, one line for each node."""
    lines = []
    for node in application.nodes:
        if isinstance(node, Source):
            lines.append(f"pipeline {node.pipeline!r}")
        elif isinstance(node, Sink):
            lines.append(f"pipeline {node.pipeline!r}, sink {node.index}")
        elif isinstance(node, Step):
            line = f"pipeline {node.pipeline!r}, step {node.position}: {node.name!r}"
            if isinstance(node.operation, Stateful):
                partition = application.partition[node.operation.partition]
                keyed = "64-bit keys" if partition.u64 else "keys"
                line += f" over state partition {partition.name!r} by {keyed}"
                line += ", which expires" * (partition.expire_after is not None)
            elif isinstance(node.operation, Windowed):
                line += f", windows: {node.operation.windows.described()}"
            lines.append(line)
    if application.codec is not None:
        lines.append(_OWN_CODEC)
    return lines


def _read(path: Path) -> dict[str, Any]:
    """Return the identity in a file, after checking its types.

    Raises:
        CheckpointError: it is damaged, or of another version.
        FileNotFoundError: it does not exist.
    """
    if path.exists() and not path.is_file():  # to open a FIFO would wait for ever
        raise damaged(path, "it is not a regular file")
    try:
        identity = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise damaged(path, "it is not JSON") from error
    if not isinstance(identity, dict) or type(identity.get("format")) is not int:
        raise damaged(path, "it does not say its format")
    if identity["format"] != _FORMAT:
        raise CheckpointError(
            f"the checkpoint {path.parent} belongs to another version: its format is "
            f"{identity['format']}, ours {_FORMAT}. Take another directory, or run that version"
        )
    if identity.pop("checksum", None) != _checksum(identity):
        raise damaged(path, "its checksum does not fit what it says")
    if any(type(identity.get(name)) is not kind for name, kind in _TYPES.items()):
        raise damaged(path, f"it does not say {', '.join(_TYPES)}")
    if identity["partitions"] < 1 or any(type(one) is not str for one in identity["topology"]):
        raise damaged(path, "it says what no run has written")
    return identity


def _recording(identity: dict[str, Any]) -> bool:
    return identity.get("recording") is True


def _checksum(identity: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def damaged(path: Path, why: str) -> CheckpointError:
    """Return the error for a damaged file of a checkpoint."""
    return CheckpointError(
        f"{path} is damaged: {why}. Restore it from a copy, or begin anew with an empty directory"
    )


def _differences(theirs: dict[str, Any], ours: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if theirs["engine"] != ours["engine"]:
        yield "engine", f"{theirs['engine']}, not {ours['engine']}"
    if theirs["application"] != ours["application"]:
        yield "application", f"{theirs['application']!r}, not {ours['application']!r}"
    if theirs["topology"] != ours["topology"]:
        gone = [line for line in theirs["topology"] if line not in ours["topology"]]
        new = [line for line in ours["topology"] if line not in theirs["topology"]]
        parts = [f"it has {gone[0]}"] if gone else []
        parts += [f"this one has {new[0]}"] if new else []
        yield "topology", "; ".join(parts) or "its steps stand in another order"
    if theirs["partitions"] != ours["partitions"]:
        yield "number of partitions", f"{theirs['partitions']}, not {ours['partitions']}"
