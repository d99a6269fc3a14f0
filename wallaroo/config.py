"""Sources and sinks, and the two command line options that the published applications read."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Generic, overload

from wallaroo import kinds
from wallaroo.checks import checked_at
from wallaroo.components import (
    Decoder,
    Encoder,
    EventTime,
    Generator,
    decoder_of,
    encoder_of,
    event_time_of,
    generator_of,
)
from wallaroo.errors import AddressArgumentError, WallarooParameterError
from wallaroo.frames import DEFAULT_MAX_SIZE
from wallaroo.times import duration

_HIGHEST_PORT = 65535
_DIGITS = len(str(_HIGHEST_PORT))
_WITH_A_NAME = 4  # positional arguments of a source
_LATER_ARGUMENTS = frozenset({"parallelism", "valid", "max_received_count"})
_said: set[tuple[str, str]] = set()

_log = logging.getLogger("wallaroo")


@dataclass(frozen=True, init=False)
class TCPSourceConfig(Generic[kinds.Message]):
    """Frames that come over TCP: the engine listens on `host`:`port`.

    Written as ``TCPSourceConfig(host, port, decoder)`` or, as in later published applications,
    ``TCPSourceConfig(name, host, port, decoder)``. The later arguments `parallelism`, `valid` and
    `max_received_count` are accepted and have no effect.

    Args:
        host: address to listen on; ``127.0.0.1`` if only this machine should reach it.
        port: port to listen on; with 0 the system chooses one, and the engine prints it.
        decoder: a decoder, class-based or decorated.
        max_size: largest accepted payload, in bytes (frame-3).
        event_time: function of a message that returns its event time: nanoseconds since 1970, or
            an aware `datetime`; `None`: the time at which it arrives (time-2).
        idle_after: nanoseconds without a frame after which the source's watermark runs on with the
            arrival time (time-3); `None`: never.
        max_ahead: nanoseconds that an event time may be ahead of the arrival time; a message with a
            later one is a dead letter, `bad-time` (time-2); `None`: any.

    Raises:
        WallarooParameterError: an argument has a wrong type or value.
    """

    host: str
    port: int
    decoder: Decoder
    max_size: int = field(default=DEFAULT_MAX_SIZE)
    event_time: EventTime | None = None
    idle_after: int | None = None
    max_ahead: int | None = None

    @overload
    def __init__(
        self,
        host: str,
        port: int | str,
        decoder: kinds.AnyDecoder[kinds.Message],
        max_size: int = DEFAULT_MAX_SIZE,
        *,
        event_time: Callable[[kinds.Message], int | datetime] | None = None,
        idle_after: int | None = None,
        max_ahead: int | None = None,
        parallelism: object = None,
        valid: object = None,
        max_received_count: object = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        name: str,
        host: str,
        port: int | str,
        decoder: kinds.AnyDecoder[kinds.Message],
        *,
        max_size: int = DEFAULT_MAX_SIZE,
        event_time: Callable[[kinds.Message], int | datetime] | None = None,
        idle_after: int | None = None,
        max_ahead: int | None = None,
        parallelism: object = None,
        valid: object = None,
        max_received_count: object = None,
    ) -> None: ...

    @overload  # the published TCPSourceConfig(*ADDRESS, DECODER): a pair or a triple, and a decoder
    def __init__(
        self,
        *given: str | int | kinds.AnyDecoder[kinds.Message],
        max_size: int = DEFAULT_MAX_SIZE,
        event_time: Callable[[kinds.Message], int | datetime] | None = None,
        idle_after: int | None = None,
        max_ahead: int | None = None,
    ) -> None: ...

    def __init__(
        self,
        *given: Any,
        max_size: int = DEFAULT_MAX_SIZE,
        event_time: Any = None,
        idle_after: int | None = None,
        max_ahead: int | None = None,
        **named: Any,
    ) -> None:
        what = "TCPSourceConfig"
        if len(given) == _WITH_A_NAME and not isinstance(given[3], int):
            given = given[1:]  # a later form begins with the source's name, which has no use here
        elif len(given) == _WITH_A_NAME:
            *given, max_size = given  # type: ignore[assignment]  # unpacking makes a list
        host, port, decoder = _arguments(what, given, named, ("host", "port", "decoder"))
        if type(max_size) is not int or max_size < 0:
            raise WallarooParameterError(f"{what}: max_size is a number of bytes, not {max_size!r}")
        object.__setattr__(self, "host", _host(what, host))
        object.__setattr__(self, "port", _port(what, port))
        object.__setattr__(self, "decoder", checked_at(what, decoder_of, decoder))
        object.__setattr__(self, "max_size", max_size)
        set_time(self, what, event_time, idle_after, max_ahead)

    @property
    def address(self) -> str:
        """``HOST:PORT``, for people."""
        return format_address(self.host, self.port)


@dataclass(frozen=True, init=False)
class GenSourceConfig(Generic[kinds.Message]):
    """Messages that a generator makes: a source without a network (graph-4).

    Written as ``GenSourceConfig(generator)`` or ``GenSourceConfig(name, generator)``.

    Args:
        generator: has `initial_value()` and `apply(last)`, which return messages; the first `None`
            ends the source.
        event_time: as for `TCPSourceConfig`.
        idle_after: as for `TCPSourceConfig`.
        max_ahead: as for `TCPSourceConfig`.

    Raises:
        WallarooParameterError: an argument has a wrong type or value.
    """

    generator: Generator
    event_time: EventTime | None = None
    idle_after: int | None = None
    max_ahead: int | None = None
    decoder: None = None

    @overload
    def __init__(
        self,
        generator: kinds.AnyGenerator[kinds.Message],
        *,
        event_time: Callable[[kinds.Message], int | datetime] | None = None,
        idle_after: int | None = None,
        max_ahead: int | None = None,
        parallelism: object = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        name: str,
        generator: kinds.AnyGenerator[kinds.Message],
        *,
        event_time: Callable[[kinds.Message], int | datetime] | None = None,
        idle_after: int | None = None,
        max_ahead: int | None = None,
        parallelism: object = None,
    ) -> None: ...

    def __init__(
        self,
        *given: Any,
        event_time: Any = None,
        idle_after: int | None = None,
        max_ahead: int | None = None,
        **named: Any,
    ) -> None:
        what = "GenSourceConfig"
        if len(given) == len(("name", "generator")) and isinstance(given[0], str):
            given = given[1:]
        (generator,) = _arguments(what, given, named, ("generator",))
        object.__setattr__(self, "generator", checked_at(what, generator_of, generator))
        object.__setattr__(self, "decoder", None)
        set_time(self, what, event_time, idle_after, max_ahead)

    @property
    def address(self) -> str:
        """What makes its messages, for people."""
        return f"generator {self.generator.name}"


@dataclass(frozen=True, init=False)
class TCPSinkConfig(Generic[kinds.Taken]):
    """Outputs that go out over TCP: the engine connects to `host`:`port`.

    Args:
        host: address to connect to.
        port: port to connect to.
        encoder: an encoder, class-based or decorated.
        parallelism: an argument of later published applications, which has no effect.
        resume: the peer remembers: it says at each connection how many bytes of the sink's stream
            it has kept, and gets what comes behind them (sink-9).

    Raises:
        WallarooParameterError: an argument has a wrong type or value.
    """

    host: str
    port: int
    encoder: Encoder
    resume: bool = False

    def __init__(
        self,
        host: str,
        port: int | str,
        encoder: kinds.AnyEncoder[kinds.Taken],
        parallelism: int | None = None,
        *,
        resume: bool = False,
    ) -> None:
        if type(resume) is not bool:
            raise WallarooParameterError(
                f"TCPSinkConfig: resume is True or False, not {resume!r:.80}"
            )
        _without_effect("TCPSinkConfig", () if parallelism is None else ("parallelism",))
        object.__setattr__(self, "host", _host("TCPSinkConfig", host))
        object.__setattr__(self, "port", _port("TCPSinkConfig", port))
        object.__setattr__(self, "encoder", checked_at("TCPSinkConfig", encoder_of, encoder))
        object.__setattr__(self, "resume", resume)

    @property
    def address(self) -> str:
        """``HOST:PORT``, for people."""
        return format_address(self.host, self.port)


def tcp_parse_input_addrs(args: Sequence[str]) -> list[tuple[str, int]]:
    """Return the addresses after ``--in``, ``-i`` or ``--input``, leaving other arguments alone.

    Returns:
        For each ``HOST:PORT`` a pair (host, port), for each ``NAME@HOST:PORT`` a triple (name,
        host, port).

    Raises:
        AddressArgumentError: the option is missing or not ``HOST:PORT,HOST:PORT…``.
    """
    found: list[Any] = []  # the annotated type is the usual form
    for text in _addresses(args, ("--in", "-i", "--input")):
        name, at, address = text.strip().rpartition("@")
        found.append((name, *_address(address)) if at else _address(text))
    return found


def tcp_parse_output_addrs(args: Sequence[str]) -> list[tuple[str, int]]:
    """Return the addresses after ``--out``, ``-o`` or ``--output``, leaving other arguments alone.

    Raises:
        AddressArgumentError: the option is missing or not ``HOST:PORT,HOST:PORT…``.
    """
    return [_address(text) for text in _addresses(args, ("--out", "-o", "--output"))]


def parse_address(text: str) -> tuple[str, int]:
    """Return the host and port of ``HOST:PORT``; an IPv6 host may stand in brackets.

    Raises:
        WallarooParameterError: `text` is not such an address.
    """
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host:
        raise WallarooParameterError(
            f"{text!r:.80} is not an address; write HOST:PORT, as 127.0.0.1:7010"
        )
    return host.removeprefix("[").removesuffix("]"), _port(f"{text!r:.80}", port)


def format_address(host: str, port: int) -> str:
    """Return ``HOST:PORT``, an IPv6 host in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _addresses(args: Sequence[str], options: tuple[str, ...]) -> list[str]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument(*options, dest="addresses")
    wanted = f"write {options[0]} HOST:PORT or {options[0]} HOST:PORT,HOST:PORT"
    try:
        parsed, _ = parser.parse_known_args(list(args))
    except argparse.ArgumentError:
        raise AddressArgumentError(f"{options[0]} has no address after it; {wanted}") from None
    if parsed.addresses is None:
        raise AddressArgumentError(f"the application wants {options[0]}; {wanted}")
    return str(parsed.addresses).split(",")


def _address(text: str) -> tuple[str, int]:
    try:
        return parse_address(text)
    except WallarooParameterError as error:
        raise AddressArgumentError(str(error)) from None


def _arguments(
    what: str, given: Sequence[Any], named: dict[str, Any], names: tuple[str, ...]
) -> list[Any]:
    """Return the arguments called `names`, by position or by name."""
    _without_effect(what, set(named) & _LATER_ARGUMENTS)
    by_name = {name: value for name, value in named.items() if name not in _LATER_ARGUMENTS}
    values = dict(zip(names, given, strict=False))
    wrong = len(given) > len(names) or by_name.keys() - names or by_name.keys() & values.keys()
    if wrong or values.keys() | by_name.keys() != set(names):
        raise WallarooParameterError(
            f"{what} takes {', '.join(names)}; here are {len(given)} arguments"
            f"{' and ' + ', '.join(by_name) if by_name else ''}. Write: "
            f"wallaroo.{what}({', '.join(names).upper()})"
        )
    values.update(by_name)
    return [values[name] for name in names]


def _without_effect(what: str, names: Iterable[str]) -> None:
    """Say once for each argument that it has no effect."""
    for name in sorted(names):
        if (what, name) not in _said:
            _said.add((what, name))
            _log.warning("%s: the argument %s is accepted and has no effect here", what, name)


def set_time(
    config: Any,
    what: str,
    event_time: Any,
    idle_after: Any,
    max_ahead: Any,
    *,
    of_kafka: bool = False,
) -> None:
    """Set the fields of a source that are about time, checked.

    Args:
        config: the configuration.
        what: its class, for errors.
        event_time: as given.
        idle_after: as given.
        max_ahead: as given.
        of_kafka: it is of a Kafka source (kafka-8).

    Raises:
        WallarooParameterError: one of them is not what it should be.
    """
    if event_time is not None:
        event_time = checked_at(what, partial(event_time_of, of_kafka=of_kafka), event_time)
    if idle_after is not None:
        duration(f"{what}: idle_after", idle_after)
    if max_ahead is not None:
        duration(f"{what}: max_ahead", max_ahead)
        if event_time is None:
            raise WallarooParameterError(
                f"{what}: max_ahead is about event times, and here they are the arrival times. "
                "Write: event_time=FUNCTION, or leave max_ahead out"
            )
    object.__setattr__(config, "event_time", event_time)
    object.__setattr__(config, "idle_after", idle_after)
    object.__setattr__(config, "max_ahead", max_ahead)


def _host(what: str, host: object) -> str:
    if not isinstance(host, str) or not host:
        raise WallarooParameterError(f"{what}: host is a non-empty str, not {host!r}")
    return host


def _port(what: str, port: object) -> int:
    # The published applications pass the port as text.
    digits = isinstance(port, str) and port.isascii() and port.isdigit() and len(port) <= _DIGITS
    number = int(port) if digits else port  # type: ignore[call-overload]
    if type(number) is not int or not 0 <= number <= _HIGHEST_PORT:
        raise WallarooParameterError(
            f"{what}: a port is a number from 0 to {_HIGHEST_PORT}, not {port!r:.80}"
        )
    return number
