"""`replay`: a recorded file of frames, sent again and again over one connection.

It is not known which outputs an application gives for it, so outputs are matched by position: each
message causes the same number of them, in order. Options: `file`; `outputs` for each message (1);
`framing` of the outputs, `lines` or `frames` (frames); `max_size` of a payload in bytes (1 MiB).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np

from wallaroo.frames import DEFAULT_MAX_SIZE, FrameParser
from wallaroo.overriding import override
from wallaroo_loadgen.workloads.cycle import CycleStream
from wallaroo_loadgen.workloads.protocol import Framing, Matched, Options, Workload, WorkloadError


class Replay(Workload):
    """The n-th output belongs to the n-th message."""

    sources: Sequence[str] = ("source",)

    def __init__(self, options: Options) -> None:
        options.known("file", "outputs", "framing", "max_size")
        framing = options.values.get("framing", "frames")
        if framing not in get_args(Framing):
            raise WorkloadError(f"option framing is lines or frames, not {framing!r}")
        self.framing: Framing = "lines" if framing == "lines" else "frames"
        outputs = options.integer("outputs", 1, high=1000)
        payloads = _payloads(
            options.values.get("file"), options.integer("max_size", DEFAULT_MAX_SIZE)
        )
        self.streams = [CycleStream(payloads, [outputs] * len(payloads), 0, 1.0)]
        self._seen = 0

    @override
    def match(self, outputs: list[bytes]) -> Matched:
        # Count on from the outputs before.
        first = self._seen
        self._seen += len(outputs)
        return Matched(
            np.zeros(len(outputs), dtype=np.int64), np.arange(first, self._seen, dtype=np.int64)
        )


def _payloads(file: str | None, max_size: int) -> list[bytes]:
    if file is None:
        raise WorkloadError("replay needs -o file=FILE, a file of frames")
    try:
        data = Path(file).read_bytes()
    except OSError as error:
        raise WorkloadError(f"option file: {file}: {error.strerror}") from None
    parser = FrameParser(max_size=max_size)
    payloads = parser.feed(data)
    if parser.error is not None:
        raise WorkloadError(f"option file: {file}: frame {len(payloads) + 1}: {parser.error}")
    if parser.pending:
        raise WorkloadError(f"option file: {file} ends inside frame {len(payloads) + 1}")
    if not payloads:
        raise WorkloadError(f"option file: {file} has no frame")
    return payloads
