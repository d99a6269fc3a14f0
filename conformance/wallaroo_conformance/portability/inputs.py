"""Inputs of an application: given as they are, grown from samples, or drawn from a strategy.

Payloads that are grown are like samples: recombined, shortened, with unexpected values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeAlias

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


_Change: TypeAlias = Callable[[DrawFn, bytes, Sequence[bytes]], bytes]

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


class Inputs(Protocol):
    """Where the inputs come from."""

    def logs(self, count: int, random_seed: int) -> list[InputLog]:
        """Return inputs, at most `count` of those that are drawn; equal seeds give equal ones."""
        ...

    def smaller(self, payload: bytes) -> list[bytes]:
        """Return payloads that a reduction may put in the place of this one, the smallest first."""
        ...


@dataclass(frozen=True)
class GivenInput:
    """One input, and a few that are made of it without looking into its payloads."""

    log: InputLog

    def logs(self, count: int, random_seed: int) -> list[InputLog]:
        """Return the input, and others like it."""
        return [self.log, *mutated(self.log)]

    def smaller(self, payload: bytes) -> list[bytes]:
        """Return none: payloads stay as they are."""
        return []


@dataclass(frozen=True)
class SampledInputs:
    """Inputs grown from samples: some in a row, in which payloads may be changed."""

    samples: InputLog

    def logs(self, count: int, random_seed: int) -> list[InputLog]:
        """Return the samples' beginning and end as they stand, then grown inputs."""
        by_source: dict[str, list[bytes]] = {}
        for source, payload in self.samples:
            by_source.setdefault(source, []).append(payload)
        payloads = {source: _grown(tuple(given)) for source, given in by_source.items()}
        drawn = st.one_of(_in_a_row(self.samples, payloads), _drawn(payloads))
        ends = [self.samples[:_MOST_MESSAGES], self.samples[-_MOST_MESSAGES:]]
        return [*ends, *_collected(drawn, max(1, count - len(ends)), random_seed)]

    def smaller(self, payload: bytes) -> list[bytes]:
        """Return payloads with a part left out."""
        return _parts(payload)


class DrawnInputs:
    """Inputs whose payloads come from strategies, one for each source."""

    def __init__(self, payloads: Mapping[str, SearchStrategy[bytes]]) -> None:
        self._payloads = payloads
        self._met: set[bytes] = set()

    def logs(self, count: int, random_seed: int) -> list[InputLog]:
        """Return inputs that were drawn."""
        logs = _collected(_drawn(self._payloads), count, random_seed)
        self._met.update(payload for log in logs for _, payload in log)
        return logs

    def smaller(self, payload: bytes) -> list[bytes]:
        """Return smaller payloads that the strategies gave: only they know which are valid."""
        size = (len(payload), payload)
        smaller = sorted((len(met), met) for met in self._met if (len(met), met) < size)
        return [met for _, met in smaller[:_MOST_SMALLER]]


def drawn_inputs(module: Any, sources: Sequence[str]) -> DrawnInputs | None:
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
    return DrawnInputs(described)


def mutated(log: InputLog) -> list[InputLog]:
    """Return inputs like `log`: shorter, empty, altered, with some messages twice."""
    small = list(log[:24])
    return [
        small[::2],
        [entry for entry in small for _ in range(2)],
        [(source, payload[: len(payload) // 2]) for source, payload in small],
        [(source, b"") for source, _ in small[:2]] + small,
        [(source, payload[::-1]) for source, payload in small],
        [(source, bytes([byte ^ 128 for byte in payload[:3]])) for source, payload in small],
        small[::-1],
    ]


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
        payload = draw(st.sampled_from(_CHANGES))(draw, payload, samples)
    return payload


def _parts(payload: bytes) -> list[bytes]:
    """Return payloads with a part of `payload` left out, the shortest first."""
    parts: dict[bytes, None] = {b"": None}
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


_CHANGES: tuple[_Change, ...] = (
    _field_of_another,
    _two_halves,
    _unexpected_field,
    _field_twice_or_never,
    _shorter,
    _number,
    _byte,
)
