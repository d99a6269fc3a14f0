"""`replay`: a recorded file of frames, sent again and again over one connection.

Outputs are matched by position. How many of them each message causes, `outputs` says:

- a number (1): each message causes so many;
- a file that `wallaroo rerun DIR APP --json` has written, of a recording of these frames. A message
  in a window causes no output by itself: what a window gives is the answer to the message that made
  it fire;
- ``any``: it is not known, as with windows by arrival time. No output is missing, and there is no
  latency.

Further options: `file`; `sink`, if the application has several (PIPELINE/N); `framing` of the
outputs, `lines` or `frames` (frames); `max_size` of a payload in bytes (1 MiB).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np

from wallaroo.frames import DEFAULT_MAX_SIZE, FrameParser
from wallaroo.overriding import override
from wallaroo_loadgen.workloads.cycle import CycleStream
from wallaroo_loadgen.workloads.protocol import (
    IGNORED,
    Framing,
    Matched,
    Options,
    Workload,
    WorkloadError,
)


class Replay(Workload):
    """The n-th output belongs to the message that causes the n-th."""

    sources: Sequence[str] = ("source",)

    def __init__(self, options: Options) -> None:
        options.known("file", "outputs", "sink", "framing", "max_size")
        framing = options.values.get("framing", "frames")
        if framing not in get_args(Framing):
            raise WorkloadError(f"option framing is lines or frames, not {framing!r}")
        self.framing: Framing = "lines" if framing == "lines" else "frames"
        payloads = _payloads(
            options.values.get("file"), options.integer("max_size", DEFAULT_MAX_SIZE)
        )
        given = options.values.get("outputs", "1")
        if given == "any":
            self.unanswered = True
            self.counted = "which message an output answers is not known (-o outputs=any)"
            outputs = [0] * len(payloads)
        elif not given.isdecimal() and Path(given).is_file():
            outputs = _outputs(given, options.values.get("sink"), len(payloads))
            self.counted = (
                f"an output answers the message that caused it in {given}; a message that causes "
                "none there is not waited for"
            )
        else:
            number = options.integer("outputs", 1, high=1000)
            outputs = [number] * len(payloads)
            self.counted = (
                f"each message is to be answered by {number} output{'s' * (number > 1)}, in order; "
                "if it can go into a window, say -o outputs=FILE or -o outputs=any"
            )
        self.streams = [CycleStream(payloads, outputs, 0, 1.0)]
        self._seen = 0

    @override
    def match(self, outputs: list[bytes]) -> Matched:
        # Count on from the outputs before.
        first = self._seen
        self._seen += len(outputs)
        stream = IGNORED if self.unanswered else 0
        return Matched(
            np.full(len(outputs), stream, dtype=np.int64),
            np.arange(first, self._seen, dtype=np.int64),
        )


def _outputs(file: str, sink: str | None, messages: int) -> list[int]:
    """Return how many outputs each message causes, as `wallaroo rerun --json` says.

    Raises:
        WorkloadError: the file says something else, or not about these messages.
    """
    counts: dict[str, list[int]] = {}
    records = None
    try:
        with Path(file).open(encoding="utf-8") as lines:
            for line in lines:
                form = json.loads(line)
                if "begin" in form:
                    records = form["begin"]["records"]
                elif "output" in form:
                    output = form["output"]
                    of_sink = counts.setdefault(output["sink"], [0] * messages)
                    if output["record"] < messages:
                        of_sink[output["record"]] += 1
    except OSError as error:
        raise WorkloadError(f"option outputs: {file}: {error.strerror}") from None
    except (ValueError, LookupError, TypeError):
        raise WorkloadError(
            f"option outputs: {file} is not what `wallaroo rerun DIR APP --json` prints"
        ) from None
    if records != messages:
        raise WorkloadError(
            f"option outputs: {file} is about {records} records, and there are {messages} frames. "
            "Record exactly these: run the application with --record DIR, and wallaroo send "
            "--frames"
        )
    if sink is None and len(counts) == 1:
        (sink,) = counts
    if sink not in counts:
        there_are = ", ".join(counts) or "none"
        raise WorkloadError(f"option sink: one of those that have outputs in {file}: {there_are}")
    return counts[sink]


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
