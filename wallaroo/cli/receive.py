"""``wallaroo receive``: prints or stores what a sink sends."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, TypeAlias

from wallaroo.cli.arguments import address, count, seconds
from wallaroo.config import format_address
from wallaroo.errors import WallarooError
from wallaroo.frames import FrameParser
from wallaroo.text import escaped

if TYPE_CHECKING:
    from wallaroo.cli.main import Subparsers

_LONGEST_LINE = 16 * 1024 * 1024  # bytes held until a newline comes
_LARGEST_FRAME = 64 * 1024 * 1024

_EXAMPLES = """\
examples:
  wallaroo receive --listen 127.0.0.1:7002
  wallaroo receive --listen 127.0.0.1:7002 --expect 1000 --timeout 30 --output out.txt
  wallaroo receive --listen 127.0.0.1:0 --framed | jq .
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
        help="where to; with port 0 the system chooses, and stderr tells",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--lines", action="store_true", help="a line is a message (default)")
    form.add_argument(
        "--framed",
        action="store_true",
        help="a frame with a 4-byte header is a message; its payload is written as a line",
    )
    form.add_argument("--raw", action="store_true", help="bytes as they come; a byte is a message")
    parser.add_argument("--output", metavar="FILE", help="write there instead of to stdout")
    parser.add_argument("--expect", metavar="N", type=count, help="end after N messages")
    parser.add_argument("--timeout", metavar="S", type=seconds, help="end after S seconds")
    parser.set_defaults(run=receive)


def receive(options: argparse.Namespace) -> int:
    """Run the command."""
    form = Framed if options.framed else Raw if options.raw else Lines
    with contextlib.ExitStack() as stack:
        output: IO[bytes] = sys.stdout.buffer
        if options.output is not None:
            output = stack.enter_context(Path(options.output).open("wb"))
        receiver = Receiver(form, output, options.expect)
        return asyncio.run(receiver.run(options.listen, options.timeout))


Messages: TypeAlias = list[bytes] | bytes
"""Messages, each as it is written; bytes stand for as many messages of one byte."""


class Form(Protocol):
    """How one connection's bytes become messages."""

    def feed(self, data: bytes) -> Messages:
        """Return the messages that `data` completes."""

    def end(self) -> Messages:
        """Return what is left when the connection ends."""


class Lines:
    """Messages end with a newline; the last line of a connection gets one if it has none."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes."""
        *lines, rest = data.split(b"\n")
        if not lines:
            self._rest += rest
            return self.end() if len(self._rest) > _LONGEST_LINE else []
        lines[0] = self._rest + lines[0]
        self._rest = rest
        return [line + b"\n" for line in lines]

    def end(self) -> list[bytes]:
        """Return the line that has no newline."""
        rest, self._rest = self._rest, b""
        return [rest + b"\n"] if rest else []


class Framed:
    """Messages are frames; each is written as a line."""

    def __init__(self) -> None:
        self._parser = FrameParser(max_size=_LARGEST_FRAME)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the payloads that `data` completes.

        Raises:
            FrameError: what came is no frame.
        """
        payloads = self._parser.feed(data)
        if self._parser.error is not None and not payloads:
            raise self._parser.error
        return [payload.removesuffix(b"\n") + b"\n" for payload in payloads]

    def end(self) -> list[bytes]:
        """Return nothing.

        Raises:
            WallarooError: the connection ended inside a frame, or what came is no frame.
        """
        if self._parser.error is not None:
            raise self._parser.error
        if self._parser.pending:
            raise WallarooError(f"it ended {self._parser.pending} bytes into a frame")
        return []


class Raw:
    """Every byte is a message."""

    def feed(self, data: bytes) -> bytes:
        """Return `data`."""
        return data

    def end(self) -> bytes:
        """Return nothing."""
        return b""


@dataclass
class Receiver:
    """Writes what comes on all connections, message by message, as it comes.

    Args:
        form: makes the `Form` of a connection.
        output: where messages go. Writing there may block, and so holds the senders back.
        expected: number of messages after which to end; `None`: never.
    """

    form: Callable[[], Form]
    output: IO[bytes]
    expected: int | None
    received: int = 0
    broken: int = 0  # connections whose bytes were not what they should be

    async def run(self, listen: tuple[str, int], timeout: float | None) -> int:
        """Listen until enough has come, `timeout` seconds are over, or a signal; exit code."""
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = loop.create_future()
        try:
            server = await loop.create_server(lambda: _Connection(self), *listen)
        except OSError as error:
            where = format_address(*listen)
            raise WallarooError(f"cannot listen on {where}: {error.strerror}") from error
        for listener in server.sockets:  # a name may stand for several addresses
            where = format_address(*listener.getsockname()[:2])
            print(f"listening on {where}", file=sys.stderr, flush=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.end, None)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended, timeout)
        finally:
            server.close()
        self.output.flush()
        enough = self.expected is None or self.received >= self.expected
        of = "" if self.expected is None else f" of {self.expected:,}"
        what = "bytes" if self.form is Raw else "messages"
        print(f"received {self.received:,}{of} {what}", file=sys.stderr)
        return 0 if enough and not self.broken else 1

    def take(self, messages: Messages) -> None:
        """Write messages, as many as are still expected."""
        if self._ended.done():
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

    def end(self, error: Exception | None) -> None:
        """End the run."""
        if self._ended.done():
            return
        if error is None:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(error)


class _Connection(asyncio.Protocol):
    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._form = receiver.form()
        self._peer = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._peer = format_address(*transport.get_extra_info("peername")[:2])

    def data_received(self, data: bytes) -> None:
        try:
            self._receiver.take(self._form.feed(data))
        except WallarooError as error:
            self._complain(error)
            self._form = self._receiver.form()  # nothing left to say of it at the end
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        try:
            self._receiver.take(self._form.end())
        except WallarooError as error:
            self._complain(error)

    def _complain(self, error: WallarooError) -> None:
        self._receiver.broken += 1
        print(f"connection from {self._peer}: {escaped(str(error))}", file=sys.stderr)
