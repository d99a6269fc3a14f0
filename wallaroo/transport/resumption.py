"""What a sink and a peer that remembers say to each other (sink-9), and what is kept for it.

The peer says at each connection how many bytes of the sink's stream it has kept, and the sink goes
on right behind them. The peer may say it again whenever it has kept more; then the sink need not
guess how much it may let go.
"""

from __future__ import annotations

import base64
import re
from typing import Any, NamedTuple

from wallaroo.errors import WallarooError

LONGEST_LINE = 64
"""No line that a peer may say has more bytes."""

_LINE = re.compile(rb"wallaroo-resume 1 (0|[1-9][0-9]{0,18})")


class ResumptionError(WallarooError):
    """A peer said something else than how many bytes it has kept."""


def kept_line(kept: int) -> bytes:
    """Return how a peer says that it has kept the first `kept` bytes of a stream."""
    return b"wallaroo-resume 1 %d\n" % kept


class Lines:
    """What a peer says on one connection."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[int]:
        """Return how many bytes of the stream it has kept, of each line that `data` ends.

        Raises:
            ResumptionError: it said something else.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            lines.append(self._rest)
        said = []
        for line in lines:
            if (match := _LINE.fullmatch(line)) is None:
                raise ResumptionError(
                    f"it said {line[:LONGEST_LINE]!r}, and not how many bytes of the stream it has "
                    "kept (wallaroo-resume 1 N)"
                )
            said.append(int(match[1]))
        return said


class Stream(NamedTuple):
    """How far a sink's stream is, and the end of it that its peer may not have kept.

    Args:
        first: number of the first byte in `data`; the stream begins with byte 0.
        data: the end of the stream.
    """

    first: int = 0
    data: bytes = b""

    @property
    def end(self) -> int:
        """Number of bytes of the whole stream."""
        return self.first + len(self.data)

    def up_to(self, end: int) -> Stream:
        """Return the stream as it was when it had `end` bytes."""
        return Stream(min(self.first, end), self.data[: max(0, end - self.first)])

    @property
    def form(self) -> list[Any]:
        """As JSON has it."""
        return [self.first, base64.b64encode(self.data).decode()]

    @classmethod
    def from_form(cls, first: Any, data: Any) -> Stream:
        """Return it from its form.

        Raises:
            TypeError, ValueError: it is not the form of one.
        """
        if type(first) is not int or first < 0:
            raise ValueError(f"{first!r:.40} is no number of bytes")
        return cls(first, base64.b64decode(data, validate=True))


NEW = Stream()
"""A stream that has not begun."""
