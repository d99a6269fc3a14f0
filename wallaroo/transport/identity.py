"""Whose a checkpoint or a recording is, and how what another run left there is refused.

The identity says to which engine, application, topology and number of partitions a checkpoint
belongs: it decides which entity a message meets, so it has a checksum. A run with another one is
refused, and the error says what differs.

State is unpickled from a checkpoint, which can run any code. So only its owner may use it,
and a directory that others can write is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from wallaroo.errors import UsageError, WallarooError
from wallaroo.operations import Stateful, Windowed
from wallaroo.topology import Application, Sink, SinkId, Source
from wallaroo.transport.private import open_to_others, read_regular, told_as, write_durably
from wallaroo.transport.stamps import Stamp, from_json
from wallaroo.windows import shape_of, windows_of

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


class CheckpointError(WallarooError):
    """A checkpoint cannot be used; says which, why, and what to do."""


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
    with told_as(CheckpointError, f"the checkpoint {path.parent} cannot be written"):
        write_durably(path, json.dumps(form, indent=1).encode())


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


def damaged(path: Path, why: str) -> CheckpointError:
    """Return the error for a damaged file of a checkpoint."""
    return CheckpointError(f"{path} is damaged: {why}. {RESTORE}")


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
