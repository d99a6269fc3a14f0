"""A checkpoint's identity, in a file: its engine, application, topology, number of partitions.

The identity decides which entity a message meets. So it has a checksum.

Formats: 1 had no checksum, 1 and 2 had no engine; both were written by the Spark engine only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo.errors import WallarooError
from wallaroo.operations import Stateful, Windowed
from wallaroo.topology import Application, Sink, Source, Step
from wallaroo.transport.private import write_durably

IDENTITY = "identity.json"
"""A file that every checkpoint's directory contains, whatever the directory's name."""

_FORMAT = 3
_WITHOUT_ENGINE = 2
_WITHOUT_CHECKSUM = 1
_OWN_CODEC = "its own serialize and deserialize"
_TYPES = {"engine": str, "application": str, "topology": list, "partitions": int}


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


class CheckpointError(WallarooError):
    """A checkpoint cannot be used; says which, why, and what to do."""


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
    if theirs["format"] != _FORMAT:
        write_identity(path, engine, application, found)
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
    try:
        identity = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise damaged(path, "it is not JSON") from error
    if not isinstance(identity, dict) or type(identity.get("format")) is not int:
        raise damaged(path, "it does not say its format")
    if identity["format"] not in (_FORMAT, _WITHOUT_ENGINE, _WITHOUT_CHECKSUM):
        raise CheckpointError(
            f"the checkpoint {path.parent} belongs to another version: its format is "
            f"{identity['format']}, ours {_FORMAT}. Take another directory, or run that version"
        )
    checked = identity["format"] != _WITHOUT_CHECKSUM
    if checked and identity.pop("checksum", None) != _checksum(identity):
        raise damaged(path, "its checksum does not fit what it says")
    if identity["format"] != _FORMAT:
        identity["engine"] = "spark"
    if any(type(identity.get(name)) is not kind for name, kind in _TYPES.items()):
        raise damaged(path, f"it does not say {', '.join(_TYPES)}")
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
