"""Reduction of inputs: messages left out, payloads made smaller; many inputs at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias

from wallaroo.trace import InputLog

Smaller: TypeAlias = Callable[[bytes], Sequence[bytes]]

Reduction: TypeAlias = Generator[list[InputLog], Sequence[bool], InputLog]
"""A generator: yields inputs, is sent whether each still fails, and returns the smallest."""

_MOST_ROUNDS = 40


def reduction(log: InputLog, smaller: Smaller, *, most: int) -> Reduction:
    """Reduce an input that fails.

    Args:
        log: the input.
        smaller: what may be tried in the place of a payload, the smallest first.
        most: inputs tried at a time.
    """
    for steps in (_without, lambda log: _with_smaller_payloads(log, smaller)):
        for _ in range(_MOST_ROUNDS):
            candidates = steps(log)[:most]
            failing = (yield candidates) if candidates else []
            found = [one for one, fails in zip(candidates, failing, strict=True) if fails]
            if not found:
                break
            log = found[0]
    return log


def reduced(
    log: InputLog,
    failing: Callable[[Sequence[InputLog]], Sequence[bool]],
    smaller: Smaller,
    *,
    most: int = 48,
) -> InputLog:
    """Return an input like `log` that fails too, and that no single step can make smaller.

    Args:
        log: an input that fails.
        failing: says of several inputs which fail.
        smaller: what may be tried in the place of a payload.
        most: inputs tried at a time.
    """
    [least] = reduced_together(
        [reduction(log, smaller, most=most)], lambda asked: [failing(one) for one in asked]
    )
    return least


def reduced_together(
    reductions: Sequence[Reduction],
    failing: Callable[[Sequence[list[InputLog]]], Sequence[Sequence[bool]]],
) -> list[InputLog]:
    """Finish several reductions in common rounds, and return what they found.

    Args:
        reductions: the reductions.
        failing: takes the inputs that each reduction asks for, an empty list for one that is
            finished, and returns of each input whether it fails.
    """
    least: list[InputLog] = [[] for _ in reductions]
    asked: list[list[InputLog]] = [[] for _ in reductions]
    answers: list[Sequence[bool] | None] = [None for _ in reductions]
    going = set(range(len(reductions)))
    while going:
        for number in sorted(going):
            try:
                answer = answers[number]
                one = reductions[number]
                asked[number] = next(one) if answer is None else one.send(answer)
            except StopIteration as end:
                least[number], asked[number] = end.value, []
                going.discard(number)
        if going:
            answers = list(failing(asked))
    return least


def _without(log: InputLog) -> list[InputLog]:
    """Return the input without a part of its messages, the shortest first; never empty."""
    parts: list[InputLog] = []
    length = len(log) // 2
    while length:
        for start in range(0, len(log), length):
            part = [*log[:start], *log[start + length :]]
            if part:
                parts.append(part)
        length //= 2
    return sorted(parts, key=len)


def _with_smaller_payloads(log: InputLog, smaller: Smaller) -> list[InputLog]:
    found = [
        [*log[:place], (source, one), *log[place + 1 :]]
        for place, (source, payload) in enumerate(log)
        for one in smaller(payload)
    ]
    return sorted(found, key=lambda log: sum(len(payload) for _, payload in log))
