"""The system's calls on files, of which writes can fail; for the input log."""

from __future__ import annotations

import os
from typing import Any


class Disk:
    """Takes the place of `os` in the input log.

    Attributes:
        problem: with which error number a write fails; `None`: none fails.
    """

    def __init__(self) -> None:
        self.problem: int | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, fd: int, data: bytes) -> int:
        if self.problem is not None:
            raise OSError(self.problem, os.strerror(self.problem))
        return os.write(fd, data)
