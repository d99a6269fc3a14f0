"""``wallaroo receive``: prints or stores what a sink sends."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeAlias

from wallaroo.cli.arguments import address, count, seconds
from wallaroo.cli.main import Subparsers
from wallaroo.cli.receive_resumed import StoringReceiver, opened
from wallaroo.cli.receiving import Receiver, peer_of, say
from wallaroo.errors import UsageError, WallarooError
from wallaroo.frames import FrameParser
from wallaroo.overriding import override
from wallaroo.text import escaped
from wallaroo.transport.streams import LineParser, TooLongError

_LARGEST = 64 * 1024 * 1024  # bytes of a line or a frame
_MOST_HELD = 4 * _LARGEST  # bytes of incomplete messages, of all connections together
_MOST_CONNECTIONS = 256

_EXAMPLES = """\
examples:
  wallaroo receive --listen 127.0.0.1:7002
  wallaroo receive --listen 127.0.0.1:7002 --expect 1000 --timeout 30 --output out.txt
  wallaroo receive --listen 127.0.0.1:0 --framed | jq .
  wallaroo receive --listen 127.0.0.1:7002 --resume out.txt
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "receive",
        help="print or store what a sink sends",
        description="Listen, and print or store what sinks send, on as many connections as come. "
        "Exits 0 when as much came as expected, 1 if it did not in time; without --expect it "
        "runs until Ctrl-C or the time is over.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        type=address,
        required=True,
        help="where to listen; with port 0 the system chooses a free port, which stderr tells",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--lines", action="store_true", help="a line is a message (default)")
    form.add_argument(
        "--framed",
        action="store_true",
        help="a frame with a 4-byte header is a message; its payload is written as it is, and a "
        "newline after it",
    )
    form.add_argument("--raw", action="store_true", help="bytes as they come; a byte is a message")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--output", metavar="FILE", help="write there instead of to stdout")
    place.add_argument(
        "--resume",
        metavar="FILE",
        help="append there what one sink with resume=True sends, and tell it how many bytes FILE "
        "has: after a crash of either side the sink goes on right behind them; --expect counts "
        "what FILE has already",
    )
    parser.add_argument("--expect", metavar="N", type=count, help="end after N messages")
    parser.add_argument("--timeout", metavar="S", type=seconds, help="end after S seconds")
    parser.add_argument(
        "--max-connections",
        metavar="N",
        type=count,
        default=_MOST_CONNECTIONS,
        help=f"connections at once; more are refused ({_MOST_CONNECTIONS})",
    )
    parser.set_defaults(run=receive)


def receive(options: argparse.Namespace) -> int:
    """Run the command."""
    form = framed if options.framed else raw if options.raw else lines
    unit = "bytes" if options.raw else "messages"
    if options.resume is not None:
        if options.framed:
            raise UsageError(
                "--resume stores bytes as they come, so that their number is that of the sink's "
                "stream: leave --framed out"
            )
        with opened(Path(options.resume)) as file:
            storing = StoringReceiver(file, unit, options.expect)
            return asyncio.run(storing.run(options.listen, options.timeout))
    with contextlib.ExitStack() as stack:
        output: IO[bytes] = sys.stdout.buffer
        if options.output is not None:
            output = stack.enter_context(Path(options.output).open("wb"))
        receiver = MessageReceiver(
            output, unit, options.expect, form=form, most=options.max_connections
        )
        return asyncio.run(receiver.run(options.listen, options.timeout))


Messages: TypeAlias = list[bytes] | bytes
"""A list of messages, as they are written; or bytes, each of which is one message."""


@dataclass(frozen=True)
class Form:
    """How one connection's bytes become messages.

    Args:
        receive: returns the messages that bytes complete; raises `WallarooError` if they are wrong.
        end: returns the messages that the connection's end completes; raises likewise.
        held: returns how many bytes of an incomplete message are kept.
    """

    receive: Callable[[bytes], Messages]
    end: Callable[[], Messages]
    held: Callable[[], int]


def lines() -> Form:
    """Return a form whose messages end with a newline; the last line gets one if it has none."""
    parser = LineParser(_LARGEST)

    def receive(data: bytes) -> list[bytes]:
        try:
            return [line + b"\n" for line in parser.feed(data)]
        except TooLongError as error:
            raise WallarooError(
                f"it sent {_LARGEST:,} bytes without a newline; for bytes that are not "
                "text use --raw or --framed"
            ) from error

    return Form(receive, lambda: [line + b"\n" for line in parser.end()], lambda: parser.held)


def framed() -> Form:
    """Return a form whose messages are frames; a payload is written with a newline after it."""
    parser = FrameParser(max_size=_LARGEST)

    def receive(data: bytes) -> list[bytes]:
        payloads = parser.feed(data)
        if parser.error is not None and not payloads:
            raise parser.error
        return [payload + b"\n" for payload in payloads]

    def end() -> list[bytes]:
        if parser.error is not None:
            raise parser.error
        if parser.pending:
            raise WallarooError(f"it ended {parser.pending} bytes into a frame")
        return []

    return Form(receive, end, lambda: parser.pending)


def raw() -> Form:
    """Return a form in which every byte is a message."""
    return Form(lambda data: data, lambda: b"", lambda: 0)


@dataclass
class MessageReceiver(Receiver):
    """Writes the messages of all connections, as they come.

    Args:
        form: makes the `Form` of a connection.
        most: connections at the same time.
        held: bytes of incomplete messages.
    """

    form: Callable[[], Form] = field(kw_only=True)
    most: int = field(default=_MOST_CONNECTIONS, kw_only=True)
    held: int = field(default=0, kw_only=True)

    @override
    def connection(self) -> asyncio.Protocol:
        return _Connection(self)

    def write(self, messages: Messages) -> None:
        """Write messages, as many as are still expected."""
        if self.ended:
            return
        if self.expected is not None:
            messages = messages[: self.expected - self.received]
        try:
            self.output.write(messages if isinstance(messages, bytes) else b"".join(messages))
            self.output.flush()
        except OSError as error:
            self.end(error)
            return
        self.received += len(messages)
        if self.received == self.expected:
            self.end(None)


class _Connection(asyncio.Protocol):
    def __init__(self, receiver: MessageReceiver) -> None:
        self._receiver = receiver
        self._form = receiver.form()
        self._held = 0
        self._peer = ""
        self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._peer = peer_of(transport)
        self._receiver.open += 1
        if self._receiver.open > self._receiver.most:
            self._refused = True
            text = f"{self._receiver.most} are open (--max-connections); it is refused"
            self._receiver.refuse(transport, f"{text}, and so are those that come until one closes")

    def data_received(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        try:
            self._receiver.write(self._form.receive(data))
            self._hold(self._form.held())
            if self._receiver.held > _MOST_HELD:
                raise WallarooError(
                    "its message is not complete, and the incomplete messages of all connections "
                    f"together have {_MOST_HELD:,} bytes"
                )
        except WallarooError as error:
            self._complain(error)
            self._form = self._receiver.form()  # so that the end reports no second error
            self._hold(0)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._receiver.open -= 1
        if self._refused:
            return
        self._hold(0)
        try:
            self._receiver.write(self._form.end())
        except WallarooError as error:
            self._complain(error)

    def _hold(self, size: int) -> None:
        self._receiver.held += size - self._held
        self._held = size

    def _complain(self, error: WallarooError) -> None:
        self._receiver.broken += 1
        say(self._peer, escaped(str(error)))
