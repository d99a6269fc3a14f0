"""One run as a value: what is sent, what breaks, where the process dies. Drawn from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from random import Random
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["word", "slow", "undecodable", "raising"]
FAULTS = {
    "log": ("fsync", "fsync", "write", "short", "truncate", "open", "remove"),
    "letters": ("fsync", "fsync", "write", "short", "truncate", "open", "rename", "remove"),
    "other": ("fsync", "fsync", "write", "short", "rename", "remove", "open", "commit"),
}
"""Calls that can fail, or do less than they were asked for, by the kind of file."""


@dataclass(frozen=True)
class Sending:
    """A sender's connection.

    Args:
        number: of this connection, from 0; it stands in every frame.
        source: number of the source.
        frames: what is sent.
        life: the process to which it first tries to connect, and may come too late.
        after: seconds after that life began.
        breaks_at: bytes after which the sender resets; `None`: it sends all.
        half_closes: it says that it sends nothing more, else it waits.
        too_large: after the frames comes a header that claims too much (frame-3).
    """

    number: int
    source: int
    frames: tuple[Kind, ...]
    life: int = 0
    after: float = 0.0
    breaks_at: int | None = None
    half_closes: bool = True
    too_large: bool = False


@dataclass(frozen=True)
class Trouble:
    """A receiver does something to its connection.

    Args:
        sink: number of the receiver.
        at: bytes that it has received altogether.
        does: what it does.
        seconds: how long a receiver that is gone stays away, or a slow one takes nothing.
    """

    sink: int
    at: int
    does: Literal["reset", "half-close", "stall", "go away"]
    seconds: float


@dataclass(frozen=True)
class Life:
    """A process.

    Args:
        crash_at: step at which it dies, if it comes so far; else it is stopped in order.
        crash_in: only steps of this name count; empty: all do.
        power: the machine loses its power, too.
        faults: (call, kind of file, number of such a call in this life) that fails.
        stop_after: seconds after which it is stopped, whatever is being sent; `None`: once all is.
        full: (after how many seconds, bytes that still fit, for how many seconds) the disk is full.
        breaks_when_full: once it has room again, the next write of the log fails for good.
        told: once so many senders have been told that all is taken, it dies at its next step.
        accept_fails: number of times that there is no descriptor for a connection.
    """

    crash_at: int | None = None
    power: bool = False
    stop_after: float | None = None
    faults: tuple[tuple[str, str, int], ...] = ()
    full: tuple[float, int, float] | None = None
    accept_fails: int = 0
    crash_in: str = ""
    breaks_when_full: bool = False
    told: int | None = None


@dataclass(frozen=True)
class Plan:
    """A run. After `lives` comes one without a crash: all must be delivered in the end."""

    seed: int
    lives: tuple[Life, ...]
    sendings: tuple[Sending, ...]
    troubles: tuple[Trouble, ...] = ()


def drawn(seed: int, *, durable: bool, sources: int, sinks: int) -> Plan:
    """Return the plan of a seed.

    Args:
        seed: of everything.
        durable: lives may lose power, and their disk may fail.
        sources: number of sources.
        sinks: number of receivers.
    """
    chance = Random(repr((seed, "plan")))
    lives = [drawn_life(chance, durable=durable) for _ in range(chance.randint(3, 9))]
    sendings = []
    for life in range(len(lives) + 1):
        for _ in range(chance.randint(0 if life else 1, 3)):
            sendings.append(_sending(chance, len(sendings), life, sources))
    troubles = [
        Trouble(
            chance.randrange(sinks),
            chance.randint(0, 600),
            chance.choice(("reset", "half-close", "stall", "go away")),
            chance.uniform(0, 0.2),
        )
        for _ in range(chance.choice((0, 0, 1, 2, 4)))
    ]
    return Plan(seed, tuple(lives), tuple(sendings), tuple(troubles))


def drawn_life(chance: Random, *, durable: bool = True, longest: float = 11) -> Life:
    """Return a life that dies sooner more often than later, before step 2 to the `longest`."""
    crash_at = int(2 ** chance.uniform(0, longest)) if chance.random() < 0.85 else None
    stop_after = chance.uniform(0, 0.1) if chance.random() < 0.1 else None
    if stop_after is not None:
        crash_at = None
    if not durable:
        fails = 1 if chance.random() < 0.05 else 0
        return Life(crash_at, stop_after=stop_after, accept_fails=fails)
    faults = []
    if chance.random() < 0.3:
        for _ in range(chance.randint(1, 3)):
            area = chance.choice(tuple(FAULTS))
            number = int(2 ** chance.uniform(0, 4 if area == "other" else 2.6))
            faults.append((chance.choice(FAULTS[area]), area, number))
    full = None
    if chance.random() < 0.1:
        full = (chance.uniform(0, 0.1), chance.choice((0, 0, 1, 20, 100)), chance.uniform(0, 1.0))
        if chance.random() < 0.5:
            crash_at, stop_after = None, full[0] + chance.uniform(0, full[2])
    told = chance.randint(1, 2) if chance.random() < 0.15 else None
    power = chance.random() < 0.5 or told is not None
    return Life(crash_at, power, stop_after, tuple(faults), full, told=told)


def _sending(chance: Random, number: int, life: int, sources: int) -> Sending:
    kinds: tuple[Kind, ...] = ("word",) * 10 + ("slow", "undecodable", "raising")
    count = chance.choice((0, 1, 1, 2, 3, 5, 8))
    frames = tuple([chance.choice(kinds) for _ in range(count)])
    return Sending(
        number,
        source=chance.randrange(sources),
        after=chance.choice((0.0, 0.0, 0.01, 0.05)),
        frames=frames,
        life=life,
        breaks_at=chance.randint(0, 30 * count) if chance.random() < 0.15 else None,
        half_closes=chance.random() < 0.8,
        too_large=chance.random() < 0.05,
    )


def smaller(value: Any) -> Iterator[Any]:
    """Yield values with one thing less: a field with its default, a tuple without an item."""
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            before, after = value[:index], value[index + 1 :]
            yield before + after
            yield from [(*before, less, *after) for less in smaller(item) if is_dataclass(item)]
    elif is_dataclass(value):
        for field in fields(value):
            now = getattr(value, field.name)
            if field.default is not MISSING and now != field.default:
                yield replace(value, **{field.name: field.default})
            if field.default is not None:
                for less in smaller(now):
                    yield replace(value, **{field.name: less})
