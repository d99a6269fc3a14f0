"""Frames: a header of 1 to 8 bytes that tells a payload's length, then the payload.

Sans-IO: bytes go in, payloads come out. The frames depend on the bytes alone, never on how they
were cut on the way (frame-1), so `FrameParser` may be fed a byte at a time.

>>> parser = FrameParser()
>>> parser.feed(b"\\0\\0\\0\\x02h"), parser.feed(b"i\\0\\0\\0\\0")
([], [b'hi', b''])
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from wallaroo.errors import FrameError

DEFAULT_MAX_SIZE = 1 << 20
"""Largest payload a source takes unless told otherwise, in bytes (frame-3)."""

MAX_HEADER_LENGTH = 8
"""Longest header, in bytes (frame-1)."""

_UINT32 = struct.Struct(">I")


def frame(payload: bytes) -> bytes:
    """Return `payload` behind a 4-byte big-endian header, as every published sender writes it.

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


def uint32_length(header: bytes) -> int:
    """Return the length a 4-byte big-endian header claims."""
    length: int = _UINT32.unpack(header)[0]
    return length


class FrameParser:
    """Cuts one connection's byte stream into payloads.

    Args:
        header_length: bytes of a header, 1 to 8.
        payload_length: turns a header into the payload's length in bytes.
        max_size: the largest payload taken, in bytes.

    After a header that cannot be met (`max_size`, a negative or missing length, a
    `payload_length` that raises) `error` says what happened, the payloads before it have been
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
        self._max_size = max_size
        self._buffer = bytearray()
        self._needed = header_length  # bytes the buffer must hold before parsing is worth a try

    @property
    def pending(self) -> int:
        """Bytes of an incomplete frame that are held, never more than one frame's."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes of the stream and return the payloads they complete, in order."""
        if self.error is not None:
            return []
        buffer = self._buffer
        if buffer:
            buffer += data
            if len(buffer) < self._needed:
                return []
            data = bytes(buffer)
            buffer.clear()
        payloads: list[bytes] = []
        position = 0
        end = len(data)
        header_length = self._header_length
        while position + header_length <= end:
            start = position + header_length
            length = self._claim(data[position:start])
            if length < 0:
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

    def _claim(self, header: bytes) -> int:
        """Return the length `header` claims, or -1 with `error` set."""
        try:
            length = self._payload_length(header)
        except Exception as error:  # noqa: BLE001 - the decoder is the user's; all it raises counts
            return self._refuse(header, f"yields no length ({type(error).__name__}: {error})")
        if type(length) is not int:
            return self._refuse(header, f"yields no length (payload_length gave {length!r:.80})")
        if length < 0:
            return self._refuse(header, f"claims a payload of {length} bytes")
        if length > self._max_size:
            claim = f"claims a payload of {length} bytes; at most {self._max_size} are taken"
            return self._refuse(header, f"{claim} (max_size)")
        return length

    def _refuse(self, header: bytes, claim: str) -> int:
        self.error = FrameError(f"header {header.hex(' ')} {claim}")
        self._buffer.clear()
        return -1
