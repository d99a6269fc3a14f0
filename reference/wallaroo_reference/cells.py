"""The part of a machine that outlives its process: the seam between machines and checkpoints.

A machine's state lies in *cells*: one for each state entity, and one for each key's part of a
window step (a pane, the sessions, a count window). A cell has an identity inside the machine and a
name of bytes in a checkpoint. A machine that `keeps` notes in `Cells.changed` which cells may have
changed; the checkpoint's code takes them out, and asks for each as bytes. The bytes do not depend
on the mode: each machine can unpack what the other has packed.

Everything else is small and is stored whole: a `Moment`.
"""

from __future__ import annotations

import pickle
import struct
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

from wallaroo.keys import Key, decode_key, encode_key, identity
from wallaroo.operations import Windowed
from wallaroo.overriding import override
from wallaroo.times import SourceMoment
from wallaroo.windows import Shape, shape_of

Kind: TypeAlias = Literal["partition", "panes", "windows"]
"""What a cell is: an entity, a pane of a key's range windows, or a key's sessions or count window.

In the name of a pane its number stands before the key."""

PROTOCOL = 5
"""The pickle protocol of states and accumulators in a checkpoint."""


class _PaneNumber:
    """How the number of a pane is packed: windows behind windows go beyond the last event time."""

    size: Final = 9  # bytes

    def pack(self, number: int) -> bytes:
        """Return the number as bytes."""
        return number.to_bytes(self.size, "big", signed=True)

    def unpack_from(self, name: bytes) -> tuple[int]:
        """Return the number at the beginning of a name."""
        return (int.from_bytes(name[: self.size], "big", signed=True),)


PANE: Final = _PaneNumber()
VISITED = struct.Struct(">q")
"""The arrival time of an entity's last visit, which stands before its state."""
NOT_NOTED = -1
"""The last visit of an entity that does not expire."""


class Cells(Protocol):
    """The cells of one state partition or one window step.

    Attributes:
        kind: what they are.
        name: the name of the state partition, or of the aggregation.
        shape: of the windows; empty for entities.
        changed: the identities of cells that may have changed, or are gone, since they were last
            taken out of here. It stays empty unless the machine keeps.
    """

    kind: Kind
    name: str
    shape: Shape = ()
    changed: dict[Any, Any]

    @abstractmethod
    def count(self) -> int:
        """Return the number of cells there are now."""

    @abstractmethod
    def identities(self) -> list[Any]:
        """Return the identities of all cells there are now."""

    def named(self, identity: Any) -> bytes:
        """Return the name of the cell that has the identity `identity`."""

    def packed(self, identity: Any) -> bytes | None:
        """Return the cell that has the identity `identity`, as it is now; `None`: it is gone.

        Exceptions of user code that pickles its own objects are not caught.
        """

    def unpack(self, cells: Sequence[tuple[bytes, bytes]]) -> None:
        """Put in cells by name, as `packed` gave them; there must be none of these yet.

        Raises:
            UnpackError: the value of one of them cannot be made again.
        """


class WindowCells(Cells):
    """The cells of a window step: what both machines write alike."""

    kind: Kind = "windows"

    def __init__(self, operation: Windowed) -> None:
        self.name, self.shape = operation.name, shape_of(operation.windows)
        self.changed: dict[Any, Any] = {}
        self._keeps = False

    def touch(self, cell: Any) -> None:
        """Note that a cell may have changed, or is gone."""
        if self._keeps:
            self.changed[cell] = None

    @override
    def named(self, identity: Any) -> bytes:
        return name_of(identity)

    @override
    def packed(self, identity: Any) -> bytes | None:
        form = self._form(identity)
        return None if form is None else pickle.dumps(form, PROTOCOL)

    @override
    def unpack(self, cells: Sequence[tuple[bytes, bytes]]) -> None:
        for name, value in cells:
            try:
                self._make(name, pickle.loads(value))  # noqa: S301 - from the owner's directory
            except Exception as error:
                raise UnpackError(self, key_of_name(name, self.kind), error) from error

    @abstractmethod
    def go_on(self) -> None:
        """Find out what is due, after `unpack` and with the watermark set."""

    @abstractmethod
    def _form(self, identity: Any) -> Any:
        """Return what is pickled for a cell; accumulators are bytes in it."""

    @abstractmethod
    def _make(self, name: bytes, form: Any) -> None:
        """Put in the cell of this form."""


class UnpackError(Exception):
    """A cell's value cannot be made again.

    Args:
        cells: whose cell it is.
        key: its key.
        error: what making it raised.
    """

    def __init__(self, cells: Cells, key: Key, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.cells = cells
        self.key = key
        self.error = error


@dataclass(frozen=True)
class Moment:
    """Where a machine stands between two records, besides its cells.

    Args:
        sequence: number of the next record.
        now: arrival time of the latest record, in nanoseconds.
        first: arrival time of the first record; `None`: there was none.
        sources: their times, by name.
        watermarks: of the window steps, in the order of their calls; floats only where infinite.
    """

    sequence: int
    now: int
    first: int | None
    sources: Mapping[str, SourceMoment]
    watermarks: Sequence[float]


def name_of(identity: Any) -> bytes:
    """Return the name of the cell of a key's identity: the key's canonical encoding."""
    if type(identity) is str:  # most keys are text, and it has been judged (`keys.encode_key`)
        data = identity.encode("utf-8", "surrogatepass")
        return b"s" + len(data).to_bytes(4, "big") + data
    return identity[0] if type(identity) is tuple else encode_key(identity)


def identities_of(cells: Iterable[tuple[bytes, Any]]) -> list[Hashable]:
    """Return the identities of the keys that cells are named by."""
    return [
        # Most keys are text, and a restart reads all of them: the same as `identity_of`, quicker.
        name[5:].decode("utf-8", "surrogatepass")
        if name[0] == _TEXT and len(name) < _SURELY_TEXT
        else identity_of(name)
        for name, _ in cells
    ]


def identity_of(name: bytes) -> Hashable:
    """Return the identity of the key that a cell has as its name."""
    tag = name[:1]
    if tag == b"s":
        text = name[5:].decode("utf-8", "surrogatepass")
        if len(text) < _SURELY_TEXT:
            return text
    elif tag == b"t":
        return (name,)
    return identity(decode_key(name))


_TEXT = ord("s")  # the first byte of the name of a text
_SURELY_TEXT = 4096  # characters; the identity of such a text is the text itself


def key_of_name(name: bytes, kind: Kind = "partition") -> Key:
    """Return the key of a cell, from its name."""
    return decode_key(name[PANE.size :] if kind == "panes" else name)
