"""Small files of a checkpoint, with a checksum and a stamp: whose they are (recover-3)."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from wallaroo.transport.identity import RESTORE, CheckpointError
from wallaroo.transport.private import read_regular, told_as, write_durably
from wallaroo.transport.stamps import Stamp, from_json

T = TypeVar("T")


def write_stamped(path: Path, stamp: Stamp, form: Any) -> None:
    """Write a file; it is on the disk when this returns.

    Raises:
        OSError: it cannot be written.
    """
    text = json.dumps([stamp, form])
    says = {"says": text, "checksum": zlib.crc32(text.encode())}
    write_durably(path, json.dumps(says).encode())


def read_stamped(path: Path) -> tuple[Stamp, Any]:
    """Return whose a file is, and what it says.

    Raises:
        FileNotFoundError: it does not exist.
        OSError: it cannot be read, or is no regular file.
        ValueError: it is damaged.
    """
    try:
        says = json.loads(read_regular(path))
        if zlib.crc32(says["says"].encode()) != says["checksum"]:
            raise ValueError("its checksum does not fit")
        stamp, form = json.loads(says["says"])
        return from_json(stamp), form
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"it cannot be read ({error!r:.80})") from error


def stamp_again(path: Path, stamp: Stamp) -> None:
    """Write a file as it is with another stamp, if it exists.

    Raises:
        OSError: it cannot be read or written.
        ValueError: it is damaged.
    """
    if path.exists():
        write_stamped(path, stamp, read_stamped(path)[1])


def write_part(path: Path, stamp: Stamp, form: Any) -> None:
    """Write a file that the checkpoint needs; it is on the disk when this returns.

    Raises:
        CheckpointError: it cannot be written.
    """
    with told_as(CheckpointError, f"{path} cannot be written"):
        write_stamped(path, stamp, form)


def read_part(path: Path, made: Callable[[Any], T]) -> T | None:
    """Return what is made of what such a file says; `None`: there is none.

    Raises:
        CheckpointError: it is damaged, or cannot be read.
    """
    try:
        return made(read_stamped(path)[1])
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged. {RESTORE}") from error
