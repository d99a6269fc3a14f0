"""Stamps: whose a part of a checkpoint is, and which run wrote it (recover-3).

A checkpoint draws a number at its birth, and each run on it draws one when it begins. Both stand in
every part. So a part of another checkpoint shows, and one of a copy that went on apart: its runs
have drawn other numbers, though they may be as many.
"""

from __future__ import annotations

import os
import struct
from typing import Any, NamedTuple

_BYTES = struct.Struct(">16sQ8s")
_SHOWN = 8  # digits of a number that are shown


class Stamp(NamedTuple):
    """Whose a part is.

    Args:
        checkpoint: what the checkpoint drew at its birth, 32 hexadecimal digits.
        number: the number of the run that wrote the part, from 1.
        run: what that run drew, 16 hexadecimal digits.
    """

    checkpoint: str
    number: int
    run: str

    def __str__(self) -> str:
        return f"run {self.number:,} ({self.run[:_SHOWN]}) of checkpoint {self.checkpoint[:_SHOWN]}"

    def next_run(self) -> Stamp:
        """Return the stamp of the next run on the same checkpoint."""
        return self._replace(number=self.number + 1, run=os.urandom(8).hex())

    def to_bytes(self) -> bytes:
        """Return it as `STAMP_BYTES` bytes."""
        return _BYTES.pack(bytes.fromhex(self.checkpoint), self.number, bytes.fromhex(self.run))


STAMP_BYTES = _BYTES.size
"""Bytes of a stamp in a file's head."""

UNSTAMPED = Stamp("0" * 32, 0, "0" * 16)
"""The stamp of what belongs to no checkpoint."""


def born() -> Stamp:
    """Return the stamp of a checkpoint on which no run has begun."""
    return UNSTAMPED._replace(checkpoint=os.urandom(16).hex())


def from_bytes(data: bytes) -> Stamp:
    """Return the stamp that `Stamp.to_bytes` has written."""
    checkpoint, number, run = _BYTES.unpack(data)
    return Stamp(checkpoint.hex(), number, run.hex())


def from_json(form: Any) -> Stamp:
    """Return the stamp that stands in a file of JSON as a list.

    Raises:
        ValueError: it is not a stamp.
    """
    if not isinstance(form, list) or [type(one) for one in form] != [str, int, str]:
        raise ValueError("it does not say whose it is")
    return Stamp(*form)
