"""A disk: what is in the page cache, what was synced, and what a power failure leaves of the rest.

A file is synced by its own `fsync`, a name by that of its folder. A rename happens whole or not at
all. After a failed `fsync` the system forgets that the data are not on the disk, as Linux does: a
later `fsync` succeeds and writes nothing of them.
"""

from __future__ import annotations

import errno
import os
import stat
from random import Random
from typing import TypeAlias

_PAGE = 4096  # bytes that are dirty together
_SECTOR = 512  # bytes that are written whole or not at all

_Change: TypeAlias = tuple[int, bytes] | int
"""Of a file: bytes written at an offset, or a new length."""
_Naming: TypeAlias = tuple[str, "Node | None", str | None]
"""Of a folder: a name, what it stands for from now on, and a name that is given up for it."""


class File:
    """A file: as processes see it, and as it is on the disk."""

    def __init__(self, mode: int) -> None:
        self.mode = stat.S_IFREG | mode
        self.data = bytearray()
        self._synced = bytearray()
        self._pending: list[_Change] = []
        self._forgot = False  # a sync has failed
        self._holed = False  # and what it forgot has not been written since

    def write(self, offset: int, data: bytes) -> None:
        """Write bytes."""
        self._change((offset, data))

    def truncate(self, size: int) -> None:
        """Set the length."""
        self._change(size)

    @property
    def changes(self) -> int:
        """The number of changes that are not synced."""
        return len(self._pending)

    def sync(self, changes: int | None = None) -> None:
        """Put so many changes on the disk, or all, also if a sync has failed since then."""
        for change in self._pending[:changes]:
            _apply(self._synced, change)
            if self._forgot and not isinstance(change, int):
                # Whole pages are written: what a failed sync forgot of them is written now.
                start, end = change[0] // _PAGE * _PAGE, change[0] + len(change[1])
                _apply(self._synced, (start, bytes(self.data[start : -(-end // _PAGE) * _PAGE])))
        self._holed = self._holed and not self.data.startswith(self._synced)
        del self._pending[:changes]

    def fail_to_sync(self, chance: Random) -> None:
        """Put a part on the disk, and forget of the rest that it is not there."""
        self._keep_a_part(chance)
        self._forgot = self._holed = True

    def lose_power(self, chance: Random) -> bool:
        """Keep what was synced and a part of the rest.

        Returns:
            Whether something was kept that was written after something that was not.
        """
        gap = self._keep_a_part(chance) or self._holed
        self._holed = False
        self.data = bytearray(self._synced)
        return gap

    def _keep_a_part(self, chance: Random) -> bool:
        pending, self._pending = self._pending, []
        if not pending:
            return False
        lose = _lose_the_end if chance.random() < 0.75 else _lose_some
        return lose(self._synced, pending, chance)

    def settle(self) -> None:
        """Put all of it on the disk."""
        self._synced = bytearray(self.data)
        self._pending.clear()

    def _change(self, change: _Change) -> None:
        _apply(self.data, change)
        self._pending.append(change)


class Folder:
    """A folder: its names as processes see them, and as they are on the disk."""

    def __init__(self, mode: int) -> None:
        self.mode = stat.S_IFDIR | mode
        self.names: dict[str, Node] = {}
        self._synced: dict[str, Node] = {}
        self._pending: list[_Naming] = []

    def name(self, name: str, node: Node | None, instead_of: str | None = None) -> None:
        """Give a node a name, perhaps instead of another; `None`: the name is given up."""
        change = (name, node, instead_of)
        _rename(self.names, change)
        self._pending.append(change)

    def removed(self) -> list[Node]:
        """Return what had a name on the disk, and may have it again after a power failure."""
        return list(self._synced.values())

    @property
    def changes(self) -> int:
        """The number of changes of names that are not synced."""
        return len(self._pending)

    def sync(self, changes: int | None = None) -> None:
        """Put so many changes on the disk, or all."""
        for change in self._pending[:changes]:
            _rename(self._synced, change)
        del self._pending[:changes]

    def lose_power(self, chance: Random) -> None:
        """Keep the names that were synced and a part of the rest."""
        names = self._synced
        if self._pending:
            if chance.random() < 0.6:
                kept = self._pending[: chance.randint(0, len(self._pending))]
            else:
                kept = [change for change in self._pending if chance.random() < 0.5]
            for change in kept:
                _rename(names, change)
        self.names, self._synced = names, dict(names)
        self._pending.clear()


Node: TypeAlias = File | Folder


class Disk:
    """Files and folders below `/sim`, and the room for them.

    Attributes:
        room: bytes that files may take altogether; `None`: no bound.
        gaps: power failures that kept a later write of a file and lost an earlier one.
    """

    def __init__(self) -> None:
        self.root = Folder(0o700)
        self.room: int | None = None
        self.gaps = 0

    def find(self, path: str) -> Node:
        """Return what a path stands for.

        Raises:
            OSError: nothing.
        """
        node: Node = self.root
        for part in _parts(path):
            if not isinstance(node, Folder):
                raise _error(errno.ENOTDIR, path)
            if part not in node.names:
                raise _error(errno.ENOENT, path)
            node = node.names[part]
        return node

    def folder_of(self, path: str) -> tuple[Folder, str]:
        """Return the folder that a path lies in, and the path's last part.

        Raises:
            OSError: there is no such folder.
        """
        parts = _parts(path)
        node = self.find("/sim/" + "/".join(parts[:-1]))
        if not isinstance(node, Folder):
            raise _error(errno.ENOTDIR, path)
        return node, parts[-1]

    def open(self, path: str, flags: int, mode: int) -> Node:
        """Return the node to open; it is made if the flags say so.

        Raises:
            OSError: it cannot be.
        """
        try:
            node = self.find(path)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            folder, name = self.folder_of(path)
            node = File(mode & ~0o022)
            folder.name(name, node)
            return node
        if flags & os.O_CREAT and flags & os.O_EXCL:
            raise _error(errno.EEXIST, path)
        if isinstance(node, Folder) and flags & (os.O_WRONLY | os.O_RDWR):
            raise _error(errno.EISDIR, path)
        if isinstance(node, File) and flags & os.O_TRUNC and node.data:
            node.truncate(0)
        return node

    def make_folder(self, path: str, mode: int) -> None:
        """Make a folder.

        Raises:
            OSError: the name is taken.
        """
        folder, name = self.folder_of(path)
        if name in folder.names:
            raise _error(errno.EEXIST, path)
        folder.name(name, Folder(mode))

    def remove(self, path: str) -> None:
        """Remove a name.

        Raises:
            OSError: it does not exist.
        """
        folder, name = self.folder_of(path)
        if name not in folder.names:
            raise _error(errno.ENOENT, path)
        folder.name(name, None)

    def link(self, old: str, new: str) -> None:
        """Give a file a second name.

        Raises:
            OSError: there is nothing under the old name, or the new one is taken.
        """
        node = self.find(old)
        folder, name = self.folder_of(new)
        if name in folder.names:
            raise _error(errno.EEXIST, new)
        folder.name(name, node)

    def rename(self, old: str, new: str) -> None:
        """Rename within a folder.

        Raises:
            OSError: there is nothing under the old name.
        """
        node = self.find(old)
        (folder, before), (target, after) = self.folder_of(old), self.folder_of(new)
        if folder is target:
            folder.name(after, node, before)
        else:  # two folders: nothing here depends on both being changed at once
            target.name(after, node)
            folder.name(before, None)

    def free(self) -> int | None:
        """Return how many bytes more fit; `None`: any number."""
        if self.room is None:
            return None
        return max(0, self.room - self.used())

    def used(self) -> int:
        """Return how many bytes the files take."""
        return sum([len(node.data) for node in self._nodes() if isinstance(node, File)])

    def settle(self) -> None:
        """Put all of it on the disk."""
        for node in self._nodes():
            if isinstance(node, Folder):
                node.sync()
            else:
                node.settle()

    def lose_power(self, chance: Random) -> None:
        """Keep what was synced and a part of the rest."""
        for node in self._nodes(also_removed=True):
            if isinstance(node, Folder):
                node.lose_power(chance)
            elif node.lose_power(chance):
                self.gaps += 1

    def _nodes(self, *, also_removed: bool = False) -> list[Node]:
        """Return all files and folders, those too whose removal is not on the disk if wanted."""
        found: dict[int, Node] = {id(self.root): self.root}
        waiting: list[Node] = [self.root]
        for node in waiting:
            if isinstance(node, Folder):
                below = [*node.names.values(), *(node.removed() if also_removed else ())]
                waiting += [one for one in below if id(one) not in found]
                found |= {id(one): one for one in below}
        return list(found.values())


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part][1:]


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


def _apply(data: bytearray, change: _Change) -> None:
    if isinstance(change, int):
        del data[change:]
        data.extend(bytes(change - len(data)))
        return
    offset, written = change
    if offset > len(data):
        data.extend(bytes(offset - len(data)))
    data[offset : offset + len(written)] = written


def _rename(names: dict[str, Node], change: _Naming) -> None:
    name, node, instead_of = change
    if instead_of is not None:
        names.pop(instead_of, None)
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


def _lose_the_end(kept: bytearray, pending: list[_Change], chance: Random) -> bool:
    """Keep the first changes; the next in part, or as zeros; return False: there is no gap."""
    count = chance.randint(0, len(pending))
    for change in pending[:count]:
        _apply(kept, change)
    if count < len(pending) and not isinstance(torn := pending[count], int):
        offset, data = torn
        part = data[: chance.randint(0, len(data))]
        if chance.random() < 0.5:  # the file's length is on the disk, its data are not
            _apply(kept, max(len(kept), offset + len(data)))
            part = part[: chance.choice((0, len(part)))]
        _apply(kept, (offset, part))
    return False


def _lose_some(kept: bytearray, pending: list[_Change], chance: Random) -> bool:
    """Keep any of the changes, in any sectors; return whether a later one outlived an earlier."""
    pieces = [piece for change in pending for piece in _sectors(change)]
    fates = [chance.random() < 0.5 for _ in pieces]
    for piece, fate in zip(pieces, fates, strict=True):
        if fate:
            _apply(kept, piece)
    return any(fates) and not all(fates[: len(fates) - fates[::-1].index(True)])


def _sectors(change: _Change) -> list[_Change]:
    if isinstance(change, int):
        return [change]
    offset, data = change
    return [(offset + at, data[at : at + _SECTOR]) for at in range(0, len(data), _SECTOR)]
