"""Reduction of an input: messages left out, payloads made smaller, as long as it still fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from wallaroo.trace import InputLog

Smaller: TypeAlias = Callable[[bytes], Sequence[bytes]]

MOST_CANDIDATES = 48  # that are tried at a time, by default
_MOST_ROUNDS = 40


def reduced(
    log: InputLog,
    failing: Callable[[Sequence[InputLog]], Sequence[bool]],
    smaller: Smaller,
    *,
    most: int = MOST_CANDIDATES,
) -> InputLog:
    """Return an input like `log` that fails too, and that no single step can make smaller.

    Args:
        log: an input that fails.
        failing: says of several inputs which fail.
        smaller: what may be tried in the place of a payload, the smallest first.
        most: inputs tried at a time.
    """
    for steps in (_without, lambda log: _with_smaller_payloads(log, smaller)):
        for _ in range(_MOST_ROUNDS):
            candidates = steps(log)[:most]
            fails = failing(candidates) if candidates else []
            if not any(fails):
                break
            log = candidates[list(fails).index(True)]
    return log


def _without(log: InputLog) -> list[InputLog]:
    """Return the input without a part of its messages, the shortest first; never empty."""
    parts: list[InputLog] = []
    length = len(log) // 2
    while length:
        parts += [[*log[:at], *log[at + length :]] for at in range(0, len(log), length)]
        length //= 2
    return sorted(filter(None, parts), key=len)


def _with_smaller_payloads(log: InputLog, smaller: Smaller) -> list[InputLog]:
    logs = [
        [*log[:place], (source, payload), *log[place + 1 :]]
        for place, (source, whole) in enumerate(log)
        for payload in smaller(whole)
    ]
    return sorted(logs, key=lambda log: sum(len(payload) for _, payload in log))
