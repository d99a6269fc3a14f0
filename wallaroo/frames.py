r"""Frames: a header of 1 to 8 bytes with the payload's length, then the payload.

Sans-IO: bytes go in, payloads come out. The frames depend on the bytes alone, never on how TCP
divided them (frame-1), so `FrameParser` may be fed one byte at a time.

>>> parser = FrameParser()
>>> parser.feed(b"\0\0\0\x02h"), parser.feed(b"i\0\0\0\0")
([], [b'hi', b''])
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

from wallaroo.errors import FrameError

DEFAULT_MAX_SIZE = 1 << 20
"""Largest payload that a source accepts by default, in bytes (frame-3)."""

MAX_HEADER_LENGTH = 8
"""Longest header, in bytes (frame-1)."""

_UINT32 = struct.Struct(">I")


def payload_of_line(line: bytes) -> bytes:
    r"""Return a line of a text without its end: a newline, or a carriage return and a newline.

    >>> payload_of_line(b"one word\r\n"), payload_of_line(b"the last line")
    (b'one word', b'the last line')
    """
    return line.removesuffix(b"\n").removesuffix(b"\r")


def frame(payload: bytes) -> bytes:
    """Return a 4-byte big-endian header and `payload`, as all published senders write it.

    Raises:
        FrameError: the payload's length does not fit into four bytes.
    """
    try:
        return _UINT32.pack(len(payload)) + payload
    except struct.error:
        raise FrameError(
            f"a payload of {len(payload)} bytes does not fit a 4-byte header"
        ) from None


def frames(payloads: Iterable[bytes]) -> bytes:
    """Return several payloads as one byte stream, each as `frame` makes it."""
    return b"".join([frame(payload) for payload in payloads])


class StructLength:
    """Turns a header into the payload's length by a `struct` format.

    `FrameParser` knows this class and reads the length itself, without a call for each frame.

    Args:
        length_fmt: yields one number; its size is the header's.
    """

    __slots__ = ("unpack_from",)

    def __init__(self, length_fmt: struct.Struct) -> None:
        self.unpack_from = length_fmt.unpack_from

    def __call__(self, header: bytes) -> int:
        """Return the payload's length that `header` claims, in bytes."""
        length: int = self.unpack_from(header)[0]
        return length

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the format, since a `struct.Struct` cannot be pickled."""
        format_of: struct.Struct = self.unpack_from.__self__  # type: ignore[attr-defined]  # a method has it
        return _struct_length, (format_of.format,)


def _struct_length(length_fmt: str) -> StructLength:
    return StructLength(struct.Struct(length_fmt))


uint32_length = StructLength(_UINT32)
"""Returns the length in a 4-byte big-endian header."""


class FrameParser:
    """Divides one connection's byte stream into payloads.

    Args:
        header_length: bytes of a header, 1 to 8.
        payload_length: turns a header into the payload's length in bytes.
        max_size: the largest accepted payload, in bytes.

    A header is refused if its length is over `max_size`, negative or missing, or if
    `payload_length` raises. Then `error` says what happened, the payloads before it have been
    returned, and everything fed later is discarded (frame-3).
    """

    def __init__(
        self,
        header_length: int = 4,
        payload_length: Callable[[bytes], int] = uint32_length,
        max_size: int = DEFAULT_MAX_SIZE,
    ) -> None:
        if not 1 <= header_length <= MAX_HEADER_LENGTH:
            raise ValueError(f"header_length is 1 to {MAX_HEADER_LENGTH}, not {header_length}")
        self.error: FrameError | None = None
        self._header_length = header_length
        self._payload_length = payload_length
        self._unpack = payload_length.unpack_from if type(payload_length) is StructLength else None
        self._max_size = max_size
        self._buffer = bytearray()
        self._needed = header_length  # bytes the buffer must hold before parsing is worth a try

    @property
    def pending(self) -> int:
        """Number of bytes kept of an incomplete frame; never more than one frame."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """Parse the next bytes; return the payloads that are now complete, in order."""
        if self.error is not None:
            return []
        buffer = self._buffer
        if buffer:
            if len(buffer) + len(data) < self._needed:
                buffer += data
                return []
            data = b"".join((buffer, data))
            buffer.clear()
        payloads: list[bytes] = []
        position = 0
        end = len(data)
        header_length = self._header_length
        max_size = self._max_size
        unpack = self._unpack
        while (start := position + header_length) <= end:
            length = (
                self._claim(data[position:start]) if unpack is None else unpack(data, position)[0]
            )
            if type(length) is not int or not 0 <= length <= max_size:
                self._refuse(data[position:start], length)
                return payloads
            stop = start + length
            if stop > end:
                self._needed = stop - position
                buffer += data[position:]
                return payloads
            payloads.append(data[start:stop])
            position = stop
        self._needed = header_length
        buffer += data[position:]
        return payloads

    def _claim(self, header: bytes) -> object:
        """Return the result of `payload_length(header)`, or the exception it raised."""
        try:
            return self._payload_length(header)
        except Exception as error:  # noqa: BLE001 - the decoder is the user's; all it raises counts
            return error

    def _refuse(self, header: bytes, length: object) -> None:
        if isinstance(length, Exception):
            claim = f"yields no length ({type(length).__name__}: {_shown(length, str)})"
        elif type(length) is not int:
            claim = f"yields no length (payload_length gave {_shown(length, repr)})"
        else:
            claim = f"claims a payload of {_shown(length, str)} bytes"
            if length > self._max_size:
                claim = f"{claim}; at most {self._max_size} are taken (max_size)"
        self.error = FrameError(f"header {header.hex(' ')} {claim}")


def _shown(value: object, how: Callable[[object], str]) -> str:
    try:
        return f"{how(value):.200}"
    except Exception as error:  # noqa: BLE001 - user code: its __str__ may raise anything
        return f"(cannot be shown: {type(error).__name__})"
