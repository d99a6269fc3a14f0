"""Files as objects: what `open` returns for a file on the simulated disk, and memory maps of it.

They call `os`, which `simulation.calls` answers while a machine runs.
"""

from __future__ import annotations

import io
import mmap
import os
from collections.abc import Callable
from typing import Any

from simulation.machine import here, machine_of, simulated

_real_open = io.open
_real_mmap = mmap.mmap


class _Raw(io.RawIOBase):
    """The unbuffered file below what `open` returns. A dead process writes nothing, in silence.

    Python closes forgotten files when it likes, and that must not end another life.
    """

    def __init__(self, fd: int, path: Any, *, reads: bool, writes: bool, closes: bool) -> None:
        self.name = path
        self._fd, self._reads, self._writes, self._closes = fd, reads, writes, closes

    def _is_dead(self) -> bool:
        return here.machine is None or self._fd not in here.machine.files or here.machine.world.dead

    def fileno(self) -> int:
        return self._fd

    def readable(self) -> bool:
        return self._reads

    def writable(self) -> bool:
        return self._writes

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = os.read(self._fd, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def write(self, data: Any) -> int:
        return len(data) if self._is_dead() else os.write(self._fd, data)

    def seek(self, position: int, how: int = os.SEEK_SET) -> int:
        return position if self._is_dead() else os.lseek(self._fd, position, how)

    def tell(self) -> int:
        return self.seek(0, os.SEEK_CUR)

    def truncate(self, size: int | None = None) -> int:
        os.ftruncate(self._fd, size := self.tell() if size is None else size)
        return size

    def close(self) -> None:
        if not self.closed:
            super().close()
            if self._closes and not self._is_dead():
                os.close(self._fd)


def open_file(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Callable[[str, int], int] | None = None,
) -> Any:
    path = simulated(file)
    if path is None and machine_of(file) is None:
        return _real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    reads, writes = "r" in mode or "+" in mode, mode[0] in "wax" or "+" in mode
    flags = os.O_RDWR if reads and writes else os.O_WRONLY if writes else os.O_RDONLY
    flags |= {"w": os.O_CREAT | os.O_TRUNC, "a": os.O_CREAT | os.O_APPEND}.get(mode[0], 0)
    flags |= os.O_CREAT | os.O_EXCL if mode[0] == "x" else 0
    opens = opener or os.open
    fd = file if path is None else opens(path, flags)
    raw = _Raw(fd, file, reads=reads, writes=writes, closes=closefd)
    if buffering == 0:
        return raw
    kind = io.BufferedRandom if reads and writes else io.BufferedWriter
    buffered = kind(raw) if writes else io.BufferedReader(raw)
    if "b" in mode:
        return buffered
    return io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline)


def map_file(fd: int, length: int, *arguments: Any, **more: Any) -> Any:
    if (machine := machine_of(fd)) is None:
        return _real_mmap(fd, length, *arguments, **more)
    data = machine.file(fd).file.data
    if not data:
        raise ValueError("cannot mmap an empty file")
    machine.world.call("mmap")
    copy = _real_mmap(-1, len(data))
    copy[:] = bytes(data)
    return copy
