"""Sources and sinks over TCP, and the two command line options the published applications read."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from wallaroo import kinds
from wallaroo.components import Decoder, Encoder, decoder_of, encoder_of
from wallaroo.errors import WallarooParameterError
from wallaroo.frames import DEFAULT_MAX_SIZE

if TYPE_CHECKING:
    # An annotation that does not name a configuration's messages means any messages. A type
    # variable can say so from Python 3.13 on; type checkers know it as typing_extensions'.
    from typing_extensions import TypeVar as TypeVarWithDefault

    Decoded = TypeVarWithDefault("Decoded", covariant=True, default=Any)
    Encoded = TypeVarWithDefault("Encoded", contravariant=True, default=Any)
else:
    Decoded = TypeVar("Decoded", covariant=True)
    Encoded = TypeVar("Encoded", contravariant=True)

C = TypeVar("C")

_HIGHEST_PORT = 65535
_DIGITS = len(str(_HIGHEST_PORT))


@dataclass(frozen=True, init=False)
class TCPSourceConfig(Generic[Decoded]):
    """Frames that come over TCP: the engine listens on `host`:`port`.

    Args:
        host: address to listen on; ``127.0.0.1`` if only this machine should reach it.
        port: port to listen on; with 0 the system chooses one, and the engine prints it.
        decoder: a decoder, class-based or decorated.
        max_size: largest accepted payload, in bytes (frame-3).

    Raises:
        WallarooParameterError: an argument has a wrong type or value.
    """

    host: str
    port: int
    decoder: Decoder
    max_size: int = field(default=DEFAULT_MAX_SIZE)

    def __init__(
        self,
        host: str,
        port: int | str,
        decoder: kinds.AnyDecoder[Decoded],
        max_size: int = DEFAULT_MAX_SIZE,
    ) -> None:
        if type(max_size) is not int or max_size < 0:
            raise WallarooParameterError(
                f"TCPSourceConfig: max_size is a number of bytes, not {max_size!r}"
            )
        object.__setattr__(self, "host", _host("TCPSourceConfig", host))
        object.__setattr__(self, "port", _port("TCPSourceConfig", port))
        object.__setattr__(self, "decoder", _component("TCPSourceConfig", decoder_of, decoder))
        object.__setattr__(self, "max_size", max_size)

    @property
    def address(self) -> str:
        """``HOST:PORT``, for people."""
        return format_address(self.host, self.port)


@dataclass(frozen=True, init=False)
class TCPSinkConfig(Generic[Encoded]):
    """Outputs that go out over TCP: the engine connects to `host`:`port`.

    Args:
        host: address to connect to.
        port: port to connect to.
        encoder: an encoder, class-based or decorated.

    Raises:
        WallarooParameterError: an argument has a wrong type or value.
    """

    host: str
    port: int
    encoder: Encoder

    def __init__(self, host: str, port: int | str, encoder: kinds.AnyEncoder[Encoded]) -> None:
        object.__setattr__(self, "host", _host("TCPSinkConfig", host))
        object.__setattr__(self, "port", _port("TCPSinkConfig", port))
        object.__setattr__(self, "encoder", _component("TCPSinkConfig", encoder_of, encoder))

    @property
    def address(self) -> str:
        """``HOST:PORT``, for people."""
        return format_address(self.host, self.port)


def tcp_parse_input_addrs(args: Sequence[str]) -> list[tuple[str, int]]:
    """Return the addresses after ``--in``, ``-i`` or ``--input``, leaving other arguments alone.

    Raises:
        WallarooParameterError: the option is missing or not ``HOST:PORT,HOST:PORT…``.
    """
    return _addresses(args, ("--in", "-i", "--input"))


def tcp_parse_output_addrs(args: Sequence[str]) -> list[tuple[str, int]]:
    """Return the addresses after ``--out``, ``-o`` or ``--output``, leaving other arguments alone.

    Raises:
        WallarooParameterError: the option is missing or not ``HOST:PORT,HOST:PORT…``.
    """
    return _addresses(args, ("--out", "-o", "--output"))


def parse_address(text: str) -> tuple[str, int]:
    """Return the host and port of ``HOST:PORT``; an IPv6 host may stand in brackets.

    Raises:
        WallarooParameterError: `text` is no such address.
    """
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host:
        raise WallarooParameterError(
            f"{text!r:.80} is no address; write HOST:PORT, as 127.0.0.1:7010"
        )
    return host.removeprefix("[").removesuffix("]"), _port(f"{text!r:.80}", port)


def format_address(host: str, port: int) -> str:
    """Return ``HOST:PORT``, an IPv6 host in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _addresses(args: Sequence[str], options: tuple[str, ...]) -> list[tuple[str, int]]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument(*options, dest="addresses")
    wanted = f"write {options[0]} HOST:PORT or {options[0]} HOST:PORT,HOST:PORT"
    try:
        known, _ = parser.parse_known_args(list(args))
    except argparse.ArgumentError:
        raise WallarooParameterError(f"{options[0]} has no address after it; {wanted}") from None
    if known.addresses is None:
        raise WallarooParameterError(f"the application wants {options[0]}; {wanted}")
    return [parse_address(part) for part in known.addresses.split(",")]


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


def _component(what: str, of: Callable[[object], C], component: object) -> C:
    try:
        return of(component)
    except WallarooParameterError as error:
        raise WallarooParameterError(f"{what}: {error}") from error.__cause__
