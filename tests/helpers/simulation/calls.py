"""The calls to the system that concern the simulated machine: files below `/sim`, sockets, time.

`installed()` puts them in place of those of `os`, `io`, `fcntl`, `mmap`, `socket`, `sqlite3` and
`time`, once. Calls about anything else reach the real system; so do those of other threads, and all
while no `Machine` runs.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import fcntl
import functools
import io
import mmap
import os
import socket
import sqlite3
import termios
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from simulation.database import Database
from simulation.disk import File, Folder, Node
from simulation.files import map_file, open_file
from simulation.machine import Machine, Opened, here, machine_of, simulated
from simulation.network import Socket

# fmt: off  # one name a line says nothing more
_NAMES = (
    *("open", "close", "read", "write", "pread", "lseek", "dup", "fsync", "fdatasync"),
    *("ftruncate", "truncate", "fstat", "stat", "lstat", "listdir", "scandir"),
    *("link", "rename", "replace", "unlink", "remove", "mkdir", "rmdir", "urandom", "sync"),
)
# fmt: on
_OF_OS: dict[str, Any] = {name: getattr(os, name) for name in _NAMES}
_real = {**_OF_OS, "flock": fcntl.flock, "ioctl": fcntl.ioctl}
_real_monotonic = time.monotonic
_real_time_ns = time.time_ns
_real_sleep = time.sleep
_real_socket, _real_getaddrinfo = socket.socket, socket.getaddrinfo
_real_connect = sqlite3.connect


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Answer the calls to the system while a machine is running."""
    with contextlib.ExitStack() as stack:
        for name in _OF_OS:
            function = globals().get(f"_{name}") or _about_path(name)
            stack.enter_context(mock.patch.object(os, name, function))
        for module, name, function in (
            (io, "open", open_file),
            (builtins, "open", open_file),
            (time, "monotonic", _monotonic),
            (time, "time_ns", _time_ns),
            (time, "sleep", _sleep),
            (fcntl, "flock", _flock),
            (fcntl, "ioctl", _ioctl),
            (mmap, "mmap", map_file),
            (socket, "socket", _socket),
            (socket, "getaddrinfo", _getaddrinfo),
            (sqlite3, "connect", _connect),
        ):
            stack.enter_context(mock.patch.object(module, name, function))
        yield


# -- os --------------------------------------------------------------------------------------------


def _of_descriptor(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call about a descriptor: `function`, or the real one if no machine has it."""
    name = function.__name__.removeprefix("_")

    @functools.wraps(function)
    def call(fd: Any, *arguments: Any) -> Any:
        number = fd if isinstance(fd, int) else fd.fileno()
        if (machine := machine_of(number)) is None:
            return _real[name](fd, *arguments)
        return function(machine, number, *arguments)

    return call


def _open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    if (name := simulated(path)) is None or here.machine is None:
        return _real["open"](path, flags, mode, dir_fd=dir_fd)
    here.machine.world.call(f"open {name}")
    fresh = flags & os.O_CREAT and here.machine.disk.free() == 0
    if fresh:
        with contextlib.suppress(FileNotFoundError):
            here.machine.disk.find(name)
            fresh = False
    if fresh:
        raise here.machine.no_room(name)
    here.machine.must("open", name)
    fd = here.machine.world.descriptor()
    here.machine.files[fd] = Opened(here.machine.disk.open(name, flags, mode), name, flags)
    return fd


def _sync() -> None:
    if here.machine is None:
        _real["sync"]()
    else:
        here.machine.world.call("sync")
        here.machine.disk.settle()


@_of_descriptor
def _close(machine: Machine, fd: int) -> None:
    machine.file(fd)
    machine.world.call("close")
    del machine.files[fd]
    machine.locks = {node: holder for node, holder in machine.locks.items() if holder != fd}


@_of_descriptor
def _read(machine: Machine, fd: int, count: int) -> bytes:
    opened = machine.file(fd)
    machine.world.call("read")
    data = bytes(opened.file.data[opened.at : opened.at + count])
    opened.at += len(data)
    return data


@_of_descriptor
def _pread(machine: Machine, fd: int, count: int, offset: int) -> bytes:
    opened = machine.file(fd)
    machine.world.call("read")
    return bytes(opened.file.data[offset : offset + count])


@_of_descriptor
def _write(machine: Machine, fd: int, data: Any) -> int:
    opened = machine.file(fd)
    offset = len(opened.file.data) if opened.appends else opened.at
    count = _written(machine, opened, bytes(data), offset)
    opened.at = offset + count
    return count


def _written(machine: Machine, opened: Opened, data: bytes, offset: int) -> int:
    """Write as much as the disk takes, and return how many bytes."""
    dies = machine.world.step(f"write {len(data)}")
    if machine.fails("write", opened.path):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    most = len(data)
    if dies or (most and machine.fails("short", opened.path)):
        most = machine.chance.randint(0 if dies else 1, most)
    new = offset + most - len(opened.file.data)
    free = machine.disk.free()
    if free is not None and new > free:
        most -= new - free
        if most <= 0 < len(data) and not dies:
            raise machine.no_room(opened.path)
    if most > 0:
        opened.file.write(offset, data[:most])
    if dies:
        raise machine.world.crash_now()
    return most


@_of_descriptor
def _lseek(machine: Machine, fd: int, position: int, how: int) -> int:
    opened = machine.file(fd)
    base = {os.SEEK_SET: 0, os.SEEK_CUR: opened.at, os.SEEK_END: len(opened.file.data)}[how]
    opened.at = base + position
    return opened.at


@_of_descriptor
def _dup(machine: Machine, fd: int) -> int:
    opened = machine.file(fd)
    machine.world.call("dup")
    fresh = machine.world.descriptor()
    machine.files[fresh] = opened
    return fresh


@_of_descriptor
def _fstat(machine: Machine, fd: int) -> os.stat_result:
    return _described(machine.file(fd).node)


def _stat(path: Any, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
    if (machine := machine_of(path)) is not None:
        return _described(machine.file(path).node)
    if (name := simulated(path)) is None or here.machine is None:
        return _real["stat"](path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
    here.machine.world.call("stat")
    return _described(here.machine.disk.find(name))


def _lstat(path: Any, *, dir_fd: int | None = None) -> os.stat_result:
    if simulated(path) is None:
        return _real["lstat"](path, dir_fd=dir_fd)
    return _stat(path)


def _described(node: Node) -> os.stat_result:
    size = len(node.data) if isinstance(node, File) else 0
    return os.stat_result((node.mode, id(node), 0, 1, os.geteuid(), os.getegid(), size, 0, 0, 0))


@_of_descriptor
def _fsync(machine: Machine, fd: int) -> None:
    opened = machine.file(fd)
    node = opened.node
    machine.world.call("fsync")
    if machine.fails("fsync", opened.path):
        if isinstance(node, File):
            node.fail_to_sync(machine.chance)
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    changes = node.changes  # what is written while the disk is busy is no part of it
    if machine.threads is not None:
        machine.threads.sync()
    node.sync(changes)


_fdatasync = _fsync


@_of_descriptor
def _ftruncate(machine: Machine, fd: int, size: int) -> None:
    opened = machine.file(fd)
    machine.world.call(f"truncate {size}")
    if machine.fails("truncate", opened.path):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    opened.file.truncate(size)


def _truncate(path: Any, size: int) -> None:
    if simulated(path) is None:
        return _real["truncate"](path, size)
    fd = _open(path, os.O_WRONLY)
    try:
        _ftruncate(fd, size)
    finally:
        _close(fd)
    return None


def _about_path(name: str) -> Callable[..., Any]:
    """Return a function of `os` that is given paths first, for the simulated disk too."""

    def call(*arguments: Any, **more: Any) -> Any:
        if not arguments or (path := simulated(arguments[0])) is None or here.machine is None:
            return _real[name](*arguments, **more)
        return _PATHS[name](here.machine, path, *arguments[1:])

    return call


def _change_rename(machine: Machine, old: str, new: Any) -> None:
    machine.world.call(f"rename {old}")
    machine.must("rename", old)
    machine.disk.rename(old, os.fspath(new))


def _change_link(machine: Machine, old: str, new: Any) -> None:
    machine.world.call(f"link {old}")
    machine.must("link", old)
    machine.disk.link(old, os.fspath(new))


def _change_remove(machine: Machine, path: str) -> None:
    machine.world.call(f"remove {path}")
    machine.must("remove", path)
    machine.disk.remove(path)


def _change_mkdir(machine: Machine, path: str, mode: int = 0o777) -> None:
    machine.world.call(f"mkdir {path}")
    machine.disk.make_folder(path, mode & ~0o022)


def _listed(machine: Machine, path: str) -> list[str]:
    machine.world.call("list")
    folder = machine.disk.find(path)
    if not isinstance(folder, Folder):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return list(folder.names)


def _scanned(machine: Machine, path: str) -> _Scan:
    names = _listed(machine, path)
    folder = machine.disk.find(path)
    assert isinstance(folder, Folder)
    return _Scan([_Entry(path, name, folder.names[name]) for name in names])


_PATHS: dict[str, Callable[..., Any]] = {
    "link": _change_link,
    "rename": _change_rename,
    "replace": _change_rename,
    "unlink": _change_remove,
    "remove": _change_remove,
    "rmdir": _change_remove,
    "mkdir": _change_mkdir,
    "listdir": _listed,
    "scandir": _scanned,
}


class _Entry:
    """As `os.DirEntry`."""

    def __init__(self, folder: str, name: str, node: Node) -> None:
        self.name = name
        self.path = f"{folder}/{name}"
        self._node = node

    def __fspath__(self) -> str:
        return self.path

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return isinstance(self._node, Folder)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return isinstance(self._node, File)

    def is_symlink(self) -> bool:
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return _described(self._node)


class _Scan:
    """As what `os.scandir` returns."""

    def __init__(self, entries: list[_Entry]) -> None:
        self._entries = iter(entries)

    def __enter__(self) -> _Scan:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __iter__(self) -> Iterator[_Entry]:
        return self

    def __next__(self) -> _Entry:
        return next(self._entries)

    def close(self) -> None:
        return None


def _urandom(size: int) -> bytes:
    return _real["urandom"](size) if here.machine is None else here.machine.chance.randbytes(size)


# -- time, locks, sockets, databases ---------------------------------------------------------------


def _monotonic() -> float:
    return _real_monotonic() if here.machine is None else here.machine.world.now


def _time_ns() -> int:
    return _real_time_ns() if here.machine is None else here.machine.world.time_ns()


def _sleep(seconds: float) -> None:
    if here.machine is None:
        return _real_sleep(seconds)
    here.machine.world.call("sleep")
    if here.machine.threads is not None and here.machine.threads.other:
        here.machine.threads.wait(lambda: False, seconds)
        return None
    return here.machine.world.pass_time(seconds)


@_of_descriptor
def _flock(machine: Machine, fd: int, operation: int) -> None:
    node = id(machine.file(fd).node)
    machine.world.call("flock")
    if machine.locks.setdefault(node, fd) != fd:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


@_of_descriptor
def _ioctl(machine: Machine, fd: int, request: int, argument: Any = 0, mutate: bool = True) -> int:
    machine.world.call("ioctl")
    link = machine.network.sockets[fd].link
    assert link is not None
    argument[0] = len(link.arrived) if request == termios.FIONREAD else link.unacknowledged
    return 0


def _socket(*arguments: Any, **more: Any) -> Any:
    if here.machine is None:
        return _real_socket(*arguments, **more)
    here.machine.world.call("socket")
    return Socket(here.machine.network)


def _getaddrinfo(host: Any, port: Any, *arguments: Any, **more: Any) -> Any:
    if here.machine is None:
        return _real_getaddrinfo(host, port, *arguments, **more)
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]


def _connect(database: Any, *arguments: Any, **more: Any) -> Any:
    name, mode = database, "rwc"
    if more.get("uri") and isinstance(database, str) and database.startswith("file://"):
        name, _, options = database.removeprefix("file://").partition("?")
        mode = options.partition("mode=")[2] or mode
    if (path := simulated(name)) is None or here.machine is None:
        return _real_connect(database, *arguments, **more)
    here.machine.world.call(f"sqlite {path}")
    try:
        here.machine.must("open", path)
        flags = os.O_RDWR | (os.O_CREAT if mode == "rwc" else 0)
        node = here.machine.disk.open(path, flags, 0o644)
    except OSError as error:
        raise sqlite3.OperationalError("unable to open database file") from error
    folder, _ = here.machine.disk.folder_of(path)
    assert isinstance(node, File)
    more.pop("uri", None)
    connection = _real_connect(":memory:", *arguments, factory=Database, **more)
    connection.attach(here.machine, node, folder)
    return connection
