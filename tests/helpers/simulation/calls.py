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
import io
import mmap
import os
import random
import socket
import sqlite3
import stat
import termios
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from simulation.database import Database
from simulation.disk import Disk, File, Folder, Node
from simulation.network import Network, Socket
from simulation.plans import Life
from simulation.world import FIRST_DESCRIPTOR, Crash, World

ROOT = "/sim"

# fmt: off  # one name a line says nothing more
_NAMES = (
    *("open", "close", "read", "write", "pread", "pwrite", "lseek", "dup", "fsync", "fdatasync"),
    *("ftruncate", "truncate", "fstat", "stat", "lstat", "chmod", "listdir", "scandir"),
    *("link", "rename", "replace", "unlink", "remove", "mkdir", "rmdir", "urandom"),
)
# fmt: on
_real: dict[str, Any] = {name: getattr(os, name) for name in _NAMES}
_real_open = io.open
_real_monotonic = time.monotonic
_real_time_ns = time.time_ns
_real_sleep = time.sleep
_real_flock, _real_ioctl = fcntl.flock, fcntl.ioctl
_real_mmap = mmap.mmap
_real_socket, _real_getaddrinfo = socket.socket, socket.getaddrinfo
_real_connect = sqlite3.connect


class _Here(threading.local):
    """What answers in this thread; other threads of the process reach the real system."""

    machine: Machine | None = None


_here = _Here()


class Machine:
    """The machine that runs: its world, disk, network, and the descriptors of its process.

    Attributes:
        troubled: a call has failed in this life.
        lost: the disk holds what no engine can make sense of.
        unsynced: kinds of nodes for which `fsync` does nothing: a planted fault.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.disk = Disk()
        self.network = Network(world)
        self.files: dict[int, Opened] = {}
        self.locks: dict[int, int] = {}  # descriptor of the holder, by the file's id
        self.troubled = False
        self.lost = False
        self.chance = world.chance("machine")
        self.unsynced: set[type] = set()
        self._faults: set[tuple[str, str, int]] = set()
        self._counts: dict[tuple[str, str], int] = {}

    def begin(self, life: Life) -> None:
        """Begin a life."""
        self._faults, self._counts = set(life.faults), {}
        self.troubled = False
        self.network.accept_fails = life.accept_fails
        self.chance = self.world.chance("machine", self.world.life + 1)
        random.seed(self.chance.random())
        self.world.begin(life.crash_at)
        if life.full is not None:
            after, room, seconds = life.full
            self.world.at(after, lambda: self._fill(room))
            self.world.at(after + seconds, self._empty)

    def _fill(self, room: int) -> None:
        self.disk.room = self.disk.used() + room

    def _empty(self) -> None:
        self.disk.room = None

    def end(self) -> Crash:
        """End the life, as a process that gives up does; raise what is returned."""
        self.world.dead = True
        return Crash()

    def crash(self, *, power: bool) -> None:
        """End the process, wherever it is; without power the disk loses what was not synced."""
        self.world.dead = True
        self.files.clear()
        self.locks.clear()
        self.network.crash(power=power)
        if power:
            self.disk.lose_power(self.world.chance("power", self.world.life))

    def fails(self, what: str, path: str) -> bool:
        """Whether this call of its kind is one that fails."""
        area = _area(path)
        number = self._counts[what, area] = self._counts.get((what, area), 0) + 1
        fails = (what, area, number) in self._faults
        self.troubled = self.troubled or fails
        return fails

    def must(self, what: str, path: str) -> None:
        """Fail as the plan says.

        Raises:
            OSError: it does.
        """
        if self.fails(what, path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def no_room(self, path: str) -> OSError:
        """Return the error of a full disk."""
        self.troubled = True
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def file(self, fd: int) -> Opened:
        """Return what a descriptor stands for.

        Raises:
            Crash: the process is dead.
            OSError: nothing.
        """
        if fd not in self.files:
            if self.world.dead:
                raise Crash
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self.files[fd]


def _area(path: str) -> str:
    """Return which kind of file a path is: calls are counted by it, to let one of them fail."""
    if path.endswith(".log"):
        return "log"
    return "letters" if path.endswith(".jsonl") else "other"


class Opened:
    """An open file or folder; descriptors made by `dup` share it."""

    def __init__(self, node: Node, path: str, flags: int) -> None:
        self.node = node
        self.path = path
        self.appends = bool(flags & os.O_APPEND)
        self.at = 0

    @property
    def file(self) -> File:
        """The file."""
        if not isinstance(self.node, File):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self.path)
        return self.node


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Answer the calls to the system while a machine is running."""
    with contextlib.ExitStack() as stack:
        for name in _real:
            function = globals().get(f"_{name}") or _about_path(name)
            stack.enter_context(mock.patch.object(os, name, function))
        for module, name, function in (
            (io, "open", _open_file),
            (builtins, "open", _open_file),
            (time, "monotonic", _monotonic),
            (time, "time_ns", _time_ns),
            (time, "sleep", _sleep),
            (fcntl, "flock", _flock),
            (fcntl, "ioctl", _ioctl),
            (mmap, "mmap", _mmap),
            (socket, "socket", _socket),
            (socket, "getaddrinfo", _getaddrinfo),
            (sqlite3, "connect", _connect),
        ):
            stack.enter_context(mock.patch.object(module, name, function))
        yield


@contextlib.contextmanager
def running(machine: Machine) -> Iterator[None]:
    """Let a machine answer."""
    _here.machine = machine
    state = random.getstate()
    try:
        yield
    finally:
        _here.machine = None
        random.setstate(state)


@contextlib.contextmanager
def not_syncing(*kinds: type) -> Iterator[None]:
    """Let `fsync` do nothing for files or folders, as if it had been left out here."""
    assert _here.machine is not None
    before, _here.machine.unsynced = _here.machine.unsynced, set(kinds)
    try:
        yield
    finally:
        _here.machine.unsynced = before


def _simulated(path: Any) -> str | None:
    """Return a path as text if it lies on the simulated disk."""
    if _here.machine is None or isinstance(path, int):
        return None
    text = os.fspath(path)
    if not isinstance(text, str):
        return None
    return text if text in (ROOT, "/") or text.startswith(ROOT + "/") else None


def _machine(fd: Any) -> Machine | None:
    """Return the machine if a descriptor is one of its."""
    return _here.machine if isinstance(fd, int) and fd >= FIRST_DESCRIPTOR else None


# -- os --------------------------------------------------------------------------------------------


def _open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    if (name := _simulated(path)) is None or _here.machine is None:
        return _real["open"](path, flags, mode, dir_fd=dir_fd)
    _here.machine.world.call(f"open {name}")
    fresh = flags & os.O_CREAT and _here.machine.disk.free() == 0
    if fresh:
        with contextlib.suppress(FileNotFoundError):
            _here.machine.disk.find(name)
            fresh = False
    if fresh:
        raise _here.machine.no_room(name)
    _here.machine.must("open", name)
    fd = _here.machine.world.descriptor()
    _here.machine.files[fd] = Opened(_here.machine.disk.open(name, flags, mode), name, flags)
    return fd


def _close(fd: int) -> None:
    if (machine := _machine(fd)) is None:
        return _real["close"](fd)
    machine.file(fd)
    machine.world.call("close")
    del machine.files[fd]
    machine.locks = {node: holder for node, holder in machine.locks.items() if holder != fd}
    return None


def _read(fd: int, count: int) -> bytes:
    if (machine := _machine(fd)) is None:
        return _real["read"](fd, count)
    opened = machine.file(fd)
    machine.world.call("read")
    data = bytes(opened.file.data[opened.at : opened.at + count])
    opened.at += len(data)
    return data


def _pread(fd: int, count: int, offset: int) -> bytes:
    if (machine := _machine(fd)) is None:
        return _real["pread"](fd, count, offset)
    opened = machine.file(fd)
    machine.world.call("read")
    return bytes(opened.file.data[offset : offset + count])


def _write(fd: int, data: Any) -> int:
    if (machine := _machine(fd)) is None:
        return _real["write"](fd, data)
    opened = machine.file(fd)
    offset = len(opened.file.data) if opened.appends else opened.at
    count = _written(machine, opened, bytes(data), offset)
    opened.at = offset + count
    return count


def _pwrite(fd: int, data: Any, offset: int) -> int:
    if (machine := _machine(fd)) is None:
        return _real["pwrite"](fd, data, offset)
    return _written(machine, machine.file(fd), bytes(data), offset)


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


def _lseek(fd: int, position: int, how: int) -> int:
    if (machine := _machine(fd)) is None:
        return _real["lseek"](fd, position, how)
    opened = machine.file(fd)
    base = {os.SEEK_SET: 0, os.SEEK_CUR: opened.at, os.SEEK_END: len(opened.file.data)}[how]
    opened.at = base + position
    return opened.at


def _dup(fd: int) -> int:
    if (machine := _machine(fd)) is None:
        return _real["dup"](fd)
    opened = machine.file(fd)
    machine.world.call("dup")
    fresh = machine.world.descriptor()
    machine.files[fresh] = opened
    return fresh


def _fstat(fd: int) -> os.stat_result:
    if (machine := _machine(fd)) is None:
        return _real["fstat"](fd)
    return _described(machine.file(fd).node)


def _stat(path: Any, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
    if (machine := _machine(path)) is not None:
        return _described(machine.file(path).node)
    if (name := _simulated(path)) is None or _here.machine is None:
        return _real["stat"](path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
    _here.machine.world.call("stat")
    return _described(_here.machine.disk.find(name))


def _lstat(path: Any, *, dir_fd: int | None = None) -> os.stat_result:
    if _simulated(path) is None:
        return _real["lstat"](path, dir_fd=dir_fd)
    return _stat(path)


def _described(node: Node) -> os.stat_result:
    size = len(node.data) if isinstance(node, File) else 0
    return os.stat_result((node.mode, id(node), 0, 1, os.geteuid(), os.getegid(), size, 0, 0, 0))


def _fsync(fd: Any) -> None:
    number = fd if isinstance(fd, int) else fd.fileno()
    if (machine := _machine(number)) is None:
        return _real["fsync"](fd)
    opened = machine.file(number)
    node = opened.node
    machine.world.call("fsync")
    if machine.fails("fsync", opened.path):
        if isinstance(node, File):
            node.fail_to_sync(machine.chance)
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    if type(node) not in machine.unsynced:
        node.sync()
    return None


_fdatasync = _fsync


def _ftruncate(fd: int, size: int) -> None:
    if (machine := _machine(fd)) is None:
        return _real["ftruncate"](fd, size)
    opened = machine.file(fd)
    machine.world.call(f"truncate {size}")
    if machine.fails("truncate", opened.path):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    opened.file.truncate(size)
    return None


def _truncate(path: Any, size: int) -> None:
    if _machine(path) is not None:
        return _ftruncate(path, size)
    if _simulated(path) is None:
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
        if not arguments or (path := _simulated(arguments[0])) is None or _here.machine is None:
            return _real[name](*arguments, **more)
        return _PATHS[name](_here.machine, path, *arguments[1:])

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


def _change_mode(machine: Machine, path: str, mode: int) -> None:
    machine.world.call(f"chmod {path}")
    node = machine.disk.find(path)
    node.mode = stat.S_IFMT(node.mode) | mode


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
    "chmod": _change_mode,
    "listdir": _listed,
    "scandir": _scanned,
}


class _Entry:
    """As `os.DirEntry`."""

    def __init__(self, folder: str, name: str, node: Node) -> None:
        self.name = name
        self.path = f"{folder}/{name}"
        self._node = node

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

    def __enter__(self) -> Iterator[_Entry]:
        return self._entries

    def __exit__(self, *exc: object) -> None:
        return None

    def __iter__(self) -> Iterator[_Entry]:
        return self._entries

    def close(self) -> None:
        return None


def _urandom(size: int) -> bytes:
    return _real["urandom"](size) if _here.machine is None else _here.machine.chance.randbytes(size)


# -- files as objects ------------------------------------------------------------------------------


class _Raw(io.RawIOBase):
    """The unbuffered file below what `open` returns. A dead process writes nothing, in silence.

    Python closes forgotten files when it likes, and that must not end another life.
    """

    def __init__(self, fd: int, path: Any, *, reads: bool, writes: bool, closes: bool) -> None:
        self.name = path
        self._fd, self._reads, self._writes, self._closes = fd, reads, writes, closes

    def _is_dead(self) -> bool:
        return (
            _here.machine is None or self._fd not in _here.machine.files or _here.machine.world.dead
        )

    def fileno(self) -> int:
        return self._fd

    def readable(self) -> bool:
        return self._reads

    def writable(self) -> bool:
        return self._writes

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = _read(self._fd, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def write(self, data: Any) -> int:
        return len(data) if self._is_dead() else _write(self._fd, data)

    def seek(self, position: int, how: int = os.SEEK_SET) -> int:
        return position if self._is_dead() else _lseek(self._fd, position, how)

    def tell(self) -> int:
        return self.seek(0, os.SEEK_CUR)

    def truncate(self, size: int | None = None) -> int:
        _ftruncate(self._fd, size := self.tell() if size is None else size)
        return size

    def close(self) -> None:
        if not self.closed:
            super().close()
            if self._closes and not self._is_dead():
                _close(self._fd)


def _open_file(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Callable[[str, int], int] | None = None,
) -> Any:
    path = _simulated(file)
    if path is None and _machine(file) is None:
        return _real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    reads, writes = "r" in mode or "+" in mode, mode[0] in "wax" or "+" in mode
    flags = os.O_RDWR if reads and writes else os.O_WRONLY if writes else os.O_RDONLY
    flags |= {"w": os.O_CREAT | os.O_TRUNC, "a": os.O_CREAT | os.O_APPEND}.get(mode[0], 0)
    flags |= os.O_CREAT | os.O_EXCL if mode[0] == "x" else 0
    opens = opener or _open
    fd = file if path is None else opens(path, flags)
    raw = _Raw(fd, file, reads=reads, writes=writes, closes=closefd)
    if buffering == 0:
        return raw
    kind = io.BufferedRandom if reads and writes else io.BufferedWriter
    buffered = kind(raw) if writes else io.BufferedReader(raw)
    if "b" in mode:
        return buffered
    return io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline)


def _mmap(fd: int, length: int, *arguments: Any, **more: Any) -> Any:
    if (machine := _machine(fd)) is None:
        return _real_mmap(fd, length, *arguments, **more)
    data = machine.file(fd).file.data
    if not data:
        raise ValueError("cannot mmap an empty file")
    machine.world.call("mmap")
    copy = _real_mmap(-1, len(data))
    copy[:] = bytes(data)
    return copy


# -- time, locks, sockets, databases ---------------------------------------------------------------


def _monotonic() -> float:
    return _real_monotonic() if _here.machine is None else _here.machine.world.now


def _time_ns() -> int:
    return _real_time_ns() if _here.machine is None else _here.machine.world.time_ns()


def _sleep(seconds: float) -> None:
    if _here.machine is None:
        return _real_sleep(seconds)
    _here.machine.world.call("sleep")
    return _here.machine.world.pass_time(seconds)


def _flock(fd: Any, operation: int) -> None:
    number = fd if isinstance(fd, int) else fd.fileno()
    if (machine := _machine(number)) is None:
        return _real_flock(fd, operation)
    node = id(machine.file(number).node)
    machine.world.call("flock")
    if machine.locks.setdefault(node, number) != number:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return None


def _ioctl(fd: Any, request: int, argument: Any = 0, mutate: bool = True) -> Any:
    number = fd if isinstance(fd, int) else fd.fileno()
    if (machine := _machine(number)) is None:
        return _real_ioctl(fd, request, argument, mutate)
    machine.world.call("ioctl")
    link = machine.network.sockets[number].link
    assert link is not None
    argument[0] = len(link.arrived) if request == termios.FIONREAD else link.unacknowledged
    return 0


def _socket(*arguments: Any, **more: Any) -> Any:
    if _here.machine is None:
        return _real_socket(*arguments, **more)
    _here.machine.world.call("socket")
    return Socket(_here.machine.network)


def _getaddrinfo(host: Any, port: Any, *arguments: Any, **more: Any) -> Any:
    if _here.machine is None:
        return _real_getaddrinfo(host, port, *arguments, **more)
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]


def _connect(database: Any, *arguments: Any, **more: Any) -> Any:
    name, mode = database, "rwc"
    if more.get("uri") and isinstance(database, str) and database.startswith("file://"):
        name, _, options = database.removeprefix("file://").partition("?")
        mode = options.partition("mode=")[2] or mode
    if (path := _simulated(name)) is None or _here.machine is None:
        return _real_connect(database, *arguments, **more)
    _here.machine.world.call(f"sqlite {path}")
    try:
        _here.machine.must("open", path)
        flags = os.O_RDWR | (os.O_CREAT if mode == "rwc" else 0)
        node = _here.machine.disk.open(path, flags, 0o644)
    except OSError as error:
        raise sqlite3.OperationalError("unable to open database file") from error
    folder, _ = _here.machine.disk.folder_of(path)
    assert isinstance(node, File)
    more.pop("uri", None)
    connection = _real_connect(":memory:", *arguments, factory=Database, **more)
    connection.attach(_here.machine, node, folder)
    return connection
