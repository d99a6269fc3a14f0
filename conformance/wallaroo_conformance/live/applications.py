"""The applications of live runs. Their user code is plain: only their edges are special.

Those with windows have the catalogue's operators, for messages of three parts. In the others,
messages are bytes, and a payload decides what a component does with it: `UNREADABLE` is refused by
the decoder, `BAD` by the computation, `UNWRITABLE` by the encoder; `QUIT` ends the process; of
`MUCH` come many items.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import wallaroo
from wallaroo.components import OwnState
from wallaroo.topology import Application, SinkId
from wallaroo_conformance.cases.operators.aggregations import Texts
from wallaroo_conformance.cases.operators.states import Notebook
from wallaroo_conformance.cases.operators.triples import (
    ByLetter,
    RememberEach,
    own_time,
    triple,
    triple_line,
)

Address: TypeAlias = tuple[str, int]

UNREADABLE, BAD, UNWRITABLE, QUIT, MUCH = b"unreadable", b"bad", b"unwritable", b"quit", b"much"

MAX_SIZE = 8
"""Bytes of the largest payload that the source ``signed`` of `INPUT` takes."""

SHORT = wallaroo.milliseconds(200)
"""The size of the windows by arrival time that are to fire."""

VALUES, _PORTABLE = 200, 4
"""So many values the generator of `RECOVERY` makes; each fourth of them can be pickled."""
NUMBERS = [b"n %d m\n" % number for number in range(_PORTABLE, VALUES + 1, _PORTABLE)]
"""Outputs that come of them."""

_HOST = "127.0.0.1"
_LONG = wallaroo.days(40_000)  # a window that is open until the year 2079
_ITEMS = 300  # that come of `MUCH`: more bytes than an engine may deliver at once
_ITEM = 4_000  # bytes of each
_PAUSE = 0.005  # seconds that the generator takes for a number, so that kills come in between


@dataclass(frozen=True)
class LiveApplication:
    """An application of a live run.

    Args:
        build: makes it, of the addresses of its sinks.
        sinks: those that have an address of their own.
        shared: pipelines all of whose sinks are at the address of the first.
        remembered: sinks whose peers remember; true: these say it again whenever they keep more.
        generated: what sinks get that no frame leads to.
    """

    build: Callable[[Mapping[SinkId, Address]], Application]
    sinks: tuple[SinkId, ...]
    shared: frozenset[str] = frozenset()
    remembered: Mapping[SinkId, bool] = field(default_factory=dict)
    generated: Mapping[SinkId, list[bytes]] = field(default_factory=dict)

    def check(self, check: Callable[[Application], None]) -> None:
        """Let an engine look at it before it is served; what that raises is raised."""
        check(self.build(dict.fromkeys(self.sinks, (_HOST, 1))))


# -- user code -------------------------------------------------------------------------------


def _decoder(header_length: int, length_fmt: str) -> Any:
    @wallaroo.decoder(header_length=header_length, length_fmt=length_fmt)
    def decode(payload: bytes) -> Any:
        if type(payload) is not bytes or payload == UNREADABLE:  # decode-1
            raise ValueError("this payload cannot be read")
        return payload

    return decode


_plain, _one, _two = _decoder(4, ">I"), _decoder(1, "B"), _decoder(2, ">H")
_signed, _eight = _decoder(4, ">i"), _decoder(8, "<Q")


@wallaroo.encoder
def _line(message: Any) -> bytes:
    return bytes(message) + b"\n"


@wallaroo.encoder
def _loud_line(message: Any) -> bytes:
    if message == UNWRITABLE:
        raise ValueError("this message cannot be written")
    return bytes(message) + b"!\n"


@wallaroo.computation(name="check")
def _check(message: Any) -> Any:
    if message == BAD:
        raise ValueError("this message is bad")
    if message == QUIT:
        sys.exit("this message ends the run")
    return message


@wallaroo.computation_multi(name="multiply")
def _multiply(message: Any) -> Any:
    if message != MUCH:
        return [message]
    return [b"%d." % number + b"m" * _ITEM for number in range(_ITEMS)]


@wallaroo.computation_multi(name="bytes")
def _bytes(message: Any) -> Any:
    return [bytes([byte]) for byte in message]


class _Met:
    """The last messages that an entity has met, and how many it has met in all."""

    def __init__(self) -> None:
        self.number = 0
        self.last: list[bytes] = []


@wallaroo.state_computation(name="remember")
def _remember(message: bytes, met: _Met) -> Any:
    met.number += 1
    met.last = [*met.last, message][-3:]
    return b"%d %s" % (met.number, b"|".join(met.last)), True


@wallaroo.partition
def _by_message(message: bytes) -> Any:
    return message


@wallaroo.partition
def _all_together(_message: bytes) -> Any:
    return b"all"


class _Unportable(list[Any]):
    def __reduce__(self) -> Any:
        raise TypeError("it cannot be pickled")


class _Upwards:
    def initial_value(self) -> Any:
        return self.apply(["n", 0, "m"])

    def apply(self, last: Any) -> Any:
        time.sleep(_PAUSE)
        number = last[1] + 1
        kind = _Unportable if number % _PORTABLE else list
        return kind(["n", number, "m"]) if number <= VALUES else None


# -- pipelines ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pipe:
    """A pipeline; each has a step that checks payloads.

    Args:
        decoder: its source's.
        steps: computations behind the one that checks.
        key: finds the entity of a state step behind these; `None`: there is no such step.
        max_size: the largest payload that its source takes, in bytes.
        sinks: how many; the first one's encoder never fails.
        one_address: its sinks share an address.
        remembered: their peers remember; those of all but the first say it again and again.
    """

    decoder: Any = _plain
    steps: tuple[Any, ...] = ()
    key: Any = None
    max_size: int = 1 << 20
    sinks: int = 1
    one_address: bool = False
    remembered: bool = False


def _of_pipes(**pipes: Pipe) -> LiveApplication:
    def build(addresses: Mapping[SinkId, Address]) -> Application:
        builder = wallaroo.ApplicationBuilder("live")
        for name, pipe in pipes.items():
            config = wallaroo.TCPSourceConfig(_HOST, 0, pipe.decoder, max_size=pipe.max_size)
            builder.new_pipeline(name, config).to(_check)
            for step in pipe.steps:
                builder.to(step)
            if pipe.key is not None:
                builder.to_state_partition(_remember, _Met, "met", pipe.key)
            at = [addresses[name, 0 if pipe.one_address else n] for n in range(pipe.sinks)]
            encoders = [_line, *[_loud_line] * (pipe.sinks - 1)]
            builder.to_sinks(
                [
                    wallaroo.TCPSinkConfig(*address, encoder, resume=pipe.remembered)
                    for address, encoder in zip(at, encoders, strict=True)
                ]
            )
        return builder.build()

    return LiveApplication(
        build,
        tuple(
            (name, number)
            for name, pipe in pipes.items()
            for number in range(1 if pipe.one_address else pipe.sinks)
        ),
        shared=frozenset(name for name, pipe in pipes.items() if pipe.one_address),
        remembered={
            (name, number): number > 0
            for name, pipe in pipes.items()
            if pipe.remembered
            for number in range(pipe.sinks)
        },
    )


PLAIN: tuple[LiveApplication, ...] = (
    _of_pipes(first=Pipe(key=_by_message, sinks=2)),
    _of_pipes(first=Pipe(key=_all_together), second=Pipe(_two, key=_all_together)),
    _of_pipes(first=Pipe(_eight, (_bytes,)), second=Pipe(sinks=2, remembered=True)),
)
"""Without findings, so that both modes keep the rules."""

INPUT = _of_pipes(
    one=Pipe(_one),
    two=Pipe(_two),
    signed=Pipe(_signed, max_size=MAX_SIZE),
    many=Pipe(),
    eight=Pipe(_eight),
)
"""Sources with headers of several widths."""

SINKS = _of_pipes(
    together=Pipe(sinks=2, one_address=True),
    much=Pipe(steps=(_multiply,)),
    late=Pipe(),
    broken=Pipe(),
    bulk=Pipe(),
)
"""Sinks that are slow, break off, share an address or come late."""

REMEMBERED = _of_pipes(kept=Pipe(steps=(_multiply,), key=_all_together, sinks=2, remembered=True))
"""Sinks whose peers remember, and states that tell one run of a message from another."""

LETTERS = _of_pipes(checked=Pipe(sinks=2), away=Pipe(sinks=2))
CHECKED = _of_pipes(checked=Pipe(sinks=2))


# -- windows ---------------------------------------------------------------------------------

NEW = "longest"
"""The attribute that states have in `NEWER` and have not in `OLDER`."""

FRAMES, NUMBERED = "frames", "numbers"
"""The source of frames, and the generator, of the applications with windows."""


def _of_steps(steps: list[Any], event_time: Any, generator: Any = None) -> LiveApplication:
    """Return steps over one keyed source, each with a sink; and a generator, if there is one."""
    sinks: tuple[SinkId, ...] = tuple((FRAMES, number) for number in range(len(steps)))
    generated: dict[SinkId, list[bytes]] = {} if generator is None else {(NUMBERED, 0): NUMBERS}

    def build(addresses: Mapping[SinkId, Address]) -> Application:
        config = wallaroo.TCPSourceConfig(_HOST, 0, triple, event_time=event_time)
        keyed: Any = wallaroo.source(FRAMES, config).key_by(ByLetter("letter"))
        streams = {sink: keyed.to(step) for sink, step in zip(sinks, steps, strict=True)}
        for sink in generated:
            streams[sink] = wallaroo.source(sink[0], wallaroo.GenSourceConfig(generator))
        ends = [
            stream.to_sink(wallaroo.TCPSinkConfig(*addresses[sink], triple_line))
            for sink, stream in streams.items()
        ]
        return wallaroo.build_application("live", *ends)

    return LiveApplication(build, (*sinks, *generated), generated=generated)


RECOVERY = _of_steps(
    [
        wallaroo.range_windows(10).with_slide(4).over(Texts("ranges")),
        wallaroo.session_windows(5).with_delay(5).over(Texts("sessions")),
        wallaroo.count_windows(3).over(Texts("counts")),
        RememberEach("remember for a day", OwnState(Notebook, "texts", wallaroo.days(1))),
    ],
    own_time,
    _Upwards(),
)
"""Event times are in the frames, so what must come out does not depend on when they arrive."""

# -- states that are built otherwise -----------------------------------------------------------


class _Kept:
    count: int


class KeptState(_Kept):
    """A state with the attributes that are built."""


class KeptAccumulator(_Kept):
    """An accumulator with the attributes that are built."""


class TakesCare(_Kept):
    """A state that fills in what it lacks when it is read."""

    def __setstate__(self, state: dict[str, int]) -> None:
        self.__dict__.update({NEW: 0, **state})


@dataclass(frozen=True)
class _Builder:
    kind: type[_Kept]
    attributes: tuple[str, ...]

    def build(self) -> _Kept:
        kept = self.kind()
        kept.__dict__.update(dict.fromkeys(self.attributes, 0))
        return kept


@dataclass(frozen=True)
class _Keeping:
    """An aggregation that counts."""

    builder: _Builder

    def name(self) -> str:
        return "kept of windows"

    def initial_accumulator(self) -> _Kept:
        return self.builder.build()

    def update(self, _message: Any, kept: _Kept) -> _Kept:
        kept.count += 1
        return kept

    def output(self, key: str, kept: _Kept) -> Any:
        return [key, kept.count, "kept"]


def _counting(name: str, builder: _Builder) -> Any:
    @wallaroo.state_computation(name=name, state=builder)
    def count(message: Any, kept: _Kept) -> Any:
        kept.count += 1
        return [message[0], kept.count, name]

    return count


def _keeping(*attributes: str) -> LiveApplication:
    return _of_steps(
        [
            _counting("kept", _Builder(KeptState, attributes)),
            wallaroo.range_windows(_LONG).over(_Keeping(_Builder(KeptAccumulator, attributes))),
            _counting("takes care", _Builder(TakesCare, attributes)),
        ],
        None,
    )


OLDER, NEWER = _keeping("count"), _keeping("count", NEW)
"""One application whose states and accumulators have an attribute more in the second one."""

_SOON = [
    wallaroo.range_windows(SHORT).over(Texts("ranges")),
    wallaroo.session_windows(SHORT).over(Texts("sessions")),
    wallaroo.count_windows(1_000).with_timeout(SHORT).over(Texts("counts")),
]
SOON = _of_steps(_SOON, None)
"""Windows by arrival time."""
TIME = _of_steps([*_SOON, wallaroo.range_windows(_LONG).over(Texts("never"))], None)
"""The same, and windows that do not fire before the year 2079."""
