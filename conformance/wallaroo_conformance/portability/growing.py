"""Payloads that are like samples: recombined, shortened, with unexpected values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

Change: TypeAlias = Callable[[DrawFn, bytes, Sequence[bytes]], bytes]

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


@st.composite
def grown(draw: DrawFn, samples: Sequence[bytes]) -> bytes:
    """Return a sample, or one with up to three changes; rare kinds of sample come often."""
    payload = draw(st.sampled_from(draw(st.sampled_from(_kinds(tuple(samples))))))
    for _ in range(draw(st.sampled_from((0, 0, 1, 1, 2, 3)))):
        payload = draw(st.sampled_from(_CHANGES))(draw, payload, samples)
    return payload


def smaller(payload: bytes) -> list[bytes]:
    """Return payloads with a part of `payload` left out, the shortest first."""
    found: dict[bytes, None] = {b"": None}
    length = len(payload) // 2
    while length:
        for start in range(0, len(payload), length):
            found[payload[:start] + payload[start + length :]] = None
        length //= 2
    found.pop(payload, None)
    return sorted(found, key=len)


@cache
def _kinds(samples: tuple[bytes, ...]) -> list[list[bytes]]:
    """Return samples that look alike together: by first byte, and roughly by size and fields."""
    kinds: dict[tuple[bytes, int, int], list[bytes]] = {}
    for one in samples:
        fields = len(_SEPARATORS.split(one))
        kinds.setdefault((one[:1], len(one).bit_length(), fields.bit_length()), []).append(one)
    return list(kinds.values())


def _shorter(draw: DrawFn, payload: bytes, _samples: Sequence[bytes]) -> bytes:
    return payload[: draw(st.integers(0, len(payload)))]


def _field_of_another(draw: DrawFn, payload: bytes, samples: Sequence[bytes]) -> bytes:
    """Put in what another sample has at the same place."""
    fields, others = _SEPARATORS.split(payload), _SEPARATORS.split(draw(st.sampled_from(samples)))
    place = draw(st.integers(0, len(fields) - 1))
    if place < len(others):
        fields[place] = others[place]
    return b"".join(fields)


def _two_halves(draw: DrawFn, payload: bytes, samples: Sequence[bytes]) -> bytes:
    """Begin as one, end as another."""
    fields, others = _SEPARATORS.split(payload), _SEPARATORS.split(draw(st.sampled_from(samples)))
    place = draw(st.integers(0, min(len(fields), len(others)) - 1))
    return b"".join([*fields[:place], *others[place:]])


def _unexpected_field(draw: DrawFn, payload: bytes, _samples: Sequence[bytes]) -> bytes:
    fields = _SEPARATORS.split(payload)
    place = 2 * draw(st.integers(0, len(fields) // 2))  # between them stand the separators
    unexpected = _OTHER_NUMBERS if fields[place].isdigit() else _UNEXPECTED
    fields[place] = draw(st.sampled_from(unexpected))
    return b"".join(fields)


def _field_twice_or_never(draw: DrawFn, payload: bytes, _samples: Sequence[bytes]) -> bytes:
    fields = _SEPARATORS.split(payload)
    place = draw(st.integers(0, len(fields) - 1))
    fields[place : place + 1] = fields[place : place + 1] * draw(st.sampled_from((0, 2)))
    return b"".join(fields)


def _number(draw: DrawFn, payload: bytes, _samples: Sequence[bytes]) -> bytes:
    """Put the least or the greatest number of some width over a place, as binary payloads have."""
    number = draw(st.sampled_from(_NUMBERS))
    place = draw(st.integers(0, max(0, len(payload) - len(number))))
    return payload[:place] + number + payload[place + len(number) :]


def _byte(draw: DrawFn, payload: bytes, _samples: Sequence[bytes]) -> bytes:
    place = draw(st.integers(0, max(0, len(payload) - 1)))
    return payload[:place] + bytes([draw(st.integers(0, 255))]) + payload[place + 1 :]


_CHANGES: tuple[Change, ...] = (
    _field_of_another,
    _two_halves,
    _unexpected_field,
    _field_twice_or_never,
    _shorter,
    _number,
    _byte,
)
