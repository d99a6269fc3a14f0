"""From the bytes of the application's sink to its outputs, which are lines or frames."""

from __future__ import annotations

from typing import Protocol

from wallaroo.frames import FrameParser
from wallaroo_loadgen.workloads.protocol import Framing

_LARGEST_OUTPUT = 1 << 24  # bytes


class Splitter(Protocol):
    """Splits one connection's bytes into outputs."""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the outputs that these bytes complete."""


class LineSplitter:
    """Outputs end with a line feed."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that these bytes complete, without their ends."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > _LARGEST_OUTPUT:
            lines.append(self._rest)
            self._rest = b""
        return lines


class FrameSplitter:
    """Outputs are frames; other bytes become one output that matches nothing."""

    def __init__(self) -> None:
        self._parser = FrameParser(max_size=_LARGEST_OUTPUT)
        self._told = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the payloads that these bytes complete."""
        payloads = self._parser.feed(data)
        if self._parser.error is not None and not self._told:
            self._told = True
            payloads.append(f"not a frame: {self._parser.error}".encode())
        return payloads


def splitter(framing: Framing) -> Splitter:
    """Return a splitter for a new connection."""
    return LineSplitter() if framing == "lines" else FrameSplitter()
