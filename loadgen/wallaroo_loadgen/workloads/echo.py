"""`echo`: numbered messages of one size, for a target that connects to `--listen` and returns each.

It measures a network path, an application that passes its input on, or the load generator itself.
Options: `size`, bytes of a message with its header (50).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from wallaroo.frames import frame
from wallaroo.overriding import override
from wallaroo_loadgen.workloads.cycle import NumberedStream, from_digits, matched, rows_of
from wallaroo_loadgen.workloads.protocol import IGNORED, Framing, Matched, Options, Workload

_HEAD = struct.Struct(">IH")  # the run and the stream; the number follows
_DIGITS = 8
_PROBE = 0xFFFF


class Echo(Workload):
    """Each message comes back once, as it was sent."""

    sources: Sequence[str] = ("source",)
    framing: Framing = "frames"

    def __init__(self, options: Options) -> None:
        options.known("size")
        self._size = options.integer("size", 50, low=4 + _HEAD.size + _DIGITS, high=1 << 20) - 4
        self._run = options.run
        count = options.connections
        filler = np.random.default_rng(options.seed).bytes(self._size)
        self._filler = filler[_HEAD.size :]
        cycle = max(1, min(1024, (1 << 22) // self._size))
        self.streams = [
            NumberedStream(
                [self._payload(stream)] * cycle,
                [1] * cycle,
                at=_HEAD.size,
                width=_DIGITS,
                source=0,
                share=1 / count,
            )
            for stream in range(count)
        ]

    def _payload(self, stream: int) -> bytes:
        return _HEAD.pack(self._run, stream) + self._filler

    @override
    def match(self, outputs: list[bytes]) -> Matched:
        # The streams and numbers that the outputs hold.
        result = matched(len(outputs))
        rows, which = rows_of(outputs, self._size)
        if not len(rows):
            return result
        head = rows[:, : _HEAD.size].copy().view([("run", ">u4"), ("stream", ">u2")]).reshape(-1)
        numbers = from_digits(rows[:, _HEAD.size : _HEAD.size + _DIGITS])
        streams = head["stream"].astype(np.int64)
        ours = head["run"] == self._run
        good = ours & (numbers >= 0) & (streams < len(self.streams))
        result.streams[which[good]] = streams[good]
        result.numbers[which[good]] = numbers[good]
        result.streams[which[ours & (streams == _PROBE)]] = IGNORED
        return result

    @override
    def probe(self, attempt: int) -> dict[int, bytes]:
        # One message that counts for nothing.
        return {0: frame(self._payload(_PROBE))}

    @override
    def answers(self, outputs: list[bytes]) -> bool:
        return self._payload(_PROBE) in outputs
