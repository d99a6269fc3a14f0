"""Compares what the connections of one sink brought with what must come (sink-3, recover-2)."""

from __future__ import annotations

from collections.abc import Sequence


def recovery_rule(
    before: Sequence[bytes], after: Sequence[bytes], stretches: Sequence[bytes]
) -> str:
    """Return which rule is broken where outputs did not come as they must, after a kill.

    Args:
        before: outputs of what was received before it.
        after: outputs of what was received after it, which show what the state was.
        stretches: what came.
    """
    if any(not _made_of({*before, *after}, stretch) for stretch in stretches):
        return "recover-1"  # an output that the right state never gives
    if not after or (stretches and stretches[-1].endswith(b"".join(after))):
        return "recover-2"  # the state seems right, so an output was lost on its way
    brought = any(
        not missing(before, [*stretches[:number], stretch[:length]])
        for number, stretch in enumerate(stretches)
        for length in range(len(stretch) + 1)
    )
    return "recover-1" if brought else "recover-2"


def _made_of(outputs: set[bytes], stretch: bytes) -> bool:
    """Whether a stretch is some of these outputs in any order; its last may be cut off."""
    waiting, met = [0], {0}
    while waiting:
        position = waiting.pop()
        rest = stretch[position:]
        if any(output.startswith(rest) for output in outputs):
            return True
        ends = {position + len(output) for output in outputs if output and rest.startswith(output)}
        waiting += ends - met
        met |= ends
    return stretch == b""


def missing(outputs: Sequence[bytes], stretches: Sequence[bytes]) -> str:
    """Return what is wrong with how `outputs` came, or nothing (sink-3, recover-2).

    Each stretch is what one connection brought: it begins at an output's first byte, no later than
    where the one before it ended; its last output may be cut off. All outputs must have come.
    """
    reached = {0}
    for number, stretch in enumerate(stretches):
        ends = {
            max(start, end)
            for start in range(max(reached) + 1)
            if (end := _end(outputs, start, stretch)) is not None
        }
        if not ends:
            got = f"{stretch[:60]!r}{'…' if len(stretch) > 60 else ''}"
            return f"connection {number} brought {got}, which is not a stretch of what must come"
        reached = {max(one, end) for one in reached for end in ends}
    if len(outputs) in reached:
        return ""
    came = max(reached)
    return f"{came} of {len(outputs)} outputs came; the next is {outputs[came]!r}"


def _end(outputs: Sequence[bytes], start: int, stretch: bytes) -> int | None:
    """Return how far outputs are complete if `stretch` begins with number `start`."""
    position = 0
    for number in range(start, len(outputs)):
        if position == len(stretch):
            return number
        output = outputs[number]
        came = stretch[position : position + len(output)]
        position += len(came)
        if came != output:
            cut_off = position == len(stretch) and output.startswith(came)
            return number if cut_off else None
    return len(outputs) if position == len(stretch) else None
