"""Inputs of an application: given as they are, grown from samples, or drawn from a strategy.

Payloads that are grown are like samples: recombined, shortened, with unexpected values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.strategies import DrawFn, SearchStrategy

from wallaroo.errors import WallarooError
from wallaroo.trace import InputLog

PAYLOADS = "wallaroo_payloads"
"""The function beside an application that returns the strategy of its payloads."""

_MOST_MESSAGES = 16  # of an input that is drawn
_MOST_DIFFERENT = 6  # payloads in most of them, so that keys come again
_MOST_SMALLER = 24  # payloads that are tried in the place of one

_SEPARATORS = re.compile(rb"([\s,;|&=:\"'\[\]{}()/]+)")
_OTHER_NUMBERS = (b"0", b"-1", b"1.5", b"18446744073709551616", b"")
_UNEXPECTED = (
    *(b"", b"0", b"-1", b"nan", b"1e400", b"null", b"x"),
    *(b" ", b"\0", b"\xff", "\u00e9".encode(), "\U0001f600".encode(), b"a" * 300),
)
_NUMBERS = tuple(
    number.to_bytes(width, "big")
    for width in (1, 2, 4, 8)
    for number in (0, 1, 1 << (8 * width - 1), (1 << 8 * width) - 1)
)


class InputError(WallarooError):
    """There is no input to run an application on."""


@dataclass(frozen=True)
class Inputs:
    """Where the inputs come from.

    Args:
        logs: returns inputs, of those that are drawn at most so many; equal seeds give equal ones.
        smaller: returns payloads that a reduction may put in the place of one, the smallest first.
        drawn: whether another seed gives other inputs.
    """

    logs: Callable[[int, int], list[InputLog]]
    smaller: Callable[[bytes], list[bytes]]
    drawn: bool = True


def given_input(log: InputLog) -> Inputs:
    """Return one input, and a few that are made of it without looking into its payloads."""
    small = list(log[:24])
    like_it = [
        small[::2],
        [entry for entry in small for _ in range(2)],
        [(source, payload[: len(payload) // 2]) for source, payload in small],
        [(source, b"") for source, _ in small[:2]] + small,
        [(source, payload[::-1]) for source, payload in small],
        [(source, bytes([byte ^ 128 for byte in payload[:3]])) for source, payload in small],
        small[::-1],
    ]
    return Inputs(lambda _count, _seed: [log, *like_it], lambda _: [], drawn=False)


def grown_inputs(samples: InputLog) -> Inputs:
    """Return samples' beginning and end as they stand, and others in which payloads are changed."""
    by_source: dict[str, list[bytes]] = {}
    for source, payload in samples:
        by_source.setdefault(source, []).append(payload)
    payloads = {source: _grown(tuple(some)) for source, some in by_source.items()}
    either = st.one_of(_in_a_row(samples, payloads), _drawn(payloads))
    ends = [samples[:_MOST_MESSAGES], samples[-_MOST_MESSAGES:]]
    return Inputs(
        lambda count, seed: [*ends, *_collected(either, max(1, count - len(ends)), seed)], _parts
    )


def drawn_inputs(payloads: Mapping[str, SearchStrategy[bytes]]) -> Inputs:
    """Return inputs whose payloads come from strategies, one for each source."""
    met: set[bytes] = set()

    def logs(count: int, random_seed: int) -> list[InputLog]:
        collected = _collected(_drawn(payloads), count, random_seed)
        met.update(payload for log in collected for _, payload in log)
        return collected

    def smaller(payload: bytes) -> list[bytes]:
        # Only the strategies know which payloads are valid.
        size = len(payload), payload
        sizes = sorted((len(other), other) for other in met if (len(other), other) < size)
        return [other for _, other in sizes[:_MOST_SMALLER]]

    return Inputs(logs, smaller)


def described_inputs(module: Any, sources: Sequence[str]) -> Inputs | None:
    """Return the inputs that an application's module describes; `None` if it describes none.

    Args:
        module: the module; its function `PAYLOADS` returns a Hypothesis strategy of payloads
            (`bytes`) for all sources, or a mapping from each source's name to one.
        sources: names of the application's sources that take frames.

    Raises:
        InputError: the function gives something else.
    """
    function = getattr(module, PAYLOADS, None)
    if function is None:
        return None
    described = function()
    if isinstance(described, SearchStrategy):
        described = dict.fromkeys(sources, described)
    expected = f"a Hypothesis strategy, or a mapping from each source to one: {', '.join(sources)}"
    if not isinstance(described, Mapping):
        raise InputError(f"{PAYLOADS}() returned a {type(described).__name__}; expected {expected}")
    wrong = [name for name, it in described.items() if not isinstance(it, SearchStrategy)]
    if set(described) != set(sources) or wrong:
        raise InputError(
            f"{PAYLOADS}() returned one for {', '.join(described)}; expected {expected}"
        )
    return drawn_inputs(described)


@st.composite
def _drawn(draw: DrawFn, payloads: Mapping[str, SearchStrategy[bytes]]) -> InputLog:
    """Return messages of all sources, with payloads that come again."""
    entries = st.sampled_from(sorted(payloads)).flatmap(
        lambda source: st.tuples(st.just(source), payloads[source])
    )
    pool = draw(st.lists(entries, min_size=1, max_size=_MOST_DIFFERENT))
    places = st.integers(0, len(pool) - 1)
    return [pool[place] for place in draw(st.lists(places, min_size=1, max_size=_MOST_MESSAGES))]


@st.composite
def _in_a_row(
    draw: DrawFn, samples: InputLog, payloads: Mapping[str, SearchStrategy[bytes]]
) -> InputLog:
    """Return samples that follow each other, some of them changed."""
    start = draw(st.integers(0, len(samples) - 1))
    length = draw(st.integers(1, _MOST_MESSAGES))
    return [
        (source, draw(payloads[source]) if draw(st.integers(0, 3)) == 3 else payload)
        for source, payload in samples[start : start + length]
    ]


def _collected(logs: SearchStrategy[InputLog], count: int, random_seed: int) -> list[InputLog]:
    drawn: list[InputLog] = []

    @seed(random_seed)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(logs)
    def collect(log: InputLog) -> None:
        for _, payload in log:
            if type(payload) is not bytes:
                name = type(payload).__name__
                raise InputError(f"{PAYLOADS}() drew a {name}; payloads are bytes")
        drawn.append(log)

    try:
        collect()
    except HypothesisException as error:
        raise InputError(f"no payloads could be drawn: {error}") from error
    return drawn


@st.composite
def _grown(draw: DrawFn, samples: Sequence[bytes]) -> bytes:
    """Return a sample, or one with up to three changes; rare kinds of sample come often."""
    payload = draw(st.sampled_from(draw(st.sampled_from(_kinds(tuple(samples))))))
    for _ in range(draw(st.sampled_from((0, 0, 1, 1, 2, 3)))):
        change = _other_field if draw(st.integers(0, 6)) < 4 else _other_bytes
        payload = change(draw, payload, samples)
    return payload


def _parts(payload: bytes) -> list[bytes]:
    """Return payloads with a field or another part of `payload` left out, the shortest first."""
    fields = _SEPARATORS.split(payload)
    parts = {b"".join([*fields[:at], *fields[at + 1 :]]): None for at in range(len(fields))}
    parts[b""] = None
    length = len(payload) // 2
    while length:
        for start in range(0, len(payload), length):
            parts[payload[:start] + payload[start + length :]] = None
        length //= 2
    parts.pop(payload, None)
    return sorted(parts, key=len)


@cache
def _kinds(samples: tuple[bytes, ...]) -> list[list[bytes]]:
    """Return samples that look alike together: by first byte, and roughly by size and fields."""
    kinds: dict[tuple[bytes, int, int], list[bytes]] = {}
    for sample in samples:
        fields = len(_SEPARATORS.split(sample))
        kind = sample[:1], len(sample).bit_length(), fields.bit_length()
        kinds.setdefault(kind, []).append(sample)
    return list(kinds.values())


def _other_field(draw: DrawFn, payload: bytes, samples: Sequence[bytes]) -> bytes:
    """Change a field: to another sample's, or something unexpected; left out, or twice."""
    fields, others = _SEPARATORS.split(payload), _SEPARATORS.split(draw(st.sampled_from(samples)))
    place = draw(st.integers(0, len(fields) - 1))
    match draw(st.integers(0, 4)):
        case 0:
            fields[place : place + 1] = others[place : place + 1] or fields[place : place + 1]
        case 1:  # end as the other one does
            fields[place:] = others[place:]
        case 2:
            place -= place % 2  # between fields stand the separators
            unexpected = _OTHER_NUMBERS if fields[place].isdigit() else _UNEXPECTED
            fields[place] = draw(st.sampled_from(unexpected))
        case times:
            fields[place : place + 1] = fields[place : place + 1] * (0 if times == 3 else 2)
    return b"".join(fields)


def _other_bytes(draw: DrawFn, payload: bytes, _samples: Sequence[bytes]) -> bytes:
    """Put a number or a byte over a place, as binary payloads have them, or end there."""
    place = draw(st.integers(0, len(payload)))
    if draw(st.booleans()):
        return payload[:place]
    put = draw(st.one_of(st.sampled_from(_NUMBERS), st.binary(min_size=1, max_size=1)))
    return payload[:place] + put + payload[place + len(put) :]
