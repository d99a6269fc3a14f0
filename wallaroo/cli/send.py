"""``wallaroo send``: a file's lines or frames to a source, dead letters to where they came from."""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from wallaroo.cli.arguments import address, count, rate, seconds
from wallaroo.cli.dead_letters import LetterFiles, targets, to_option
from wallaroo.cli.main import Subparsers
from wallaroo.cli.terminal import byte_progress
from wallaroo.config import format_address
from wallaroo.errors import UsageError, WallarooError
from wallaroo.frames import frame, payload_of_line
from wallaroo.text import counted, escaped, reason
from wallaroo.transport.sink import unacknowledged

_AT_ONCE = 64 * 1024  # bytes that are read or written at once
_RETRY = 0.1  # seconds between attempts to connect
_LOOK = 0.002  # seconds between checks of what was acknowledged
_HEADER = 4  # bytes of a header, big-endian

_log = logging.getLogger("wallaroo.send")

_EXAMPLES = """\
examples:
  wallaroo send words.txt --to 127.0.0.1:7010
  wallaroo send words.txt --to 127.0.0.1:7010 --repeat 100 --rate 2000
  seq 1000 | wallaroo send - --to 127.0.0.1:7010
  wallaroo send nbbo.msg --frames --to 127.0.0.1:7011
  wallaroo send --dead-letters dead.jsonl --to 127.0.0.1:7010
  wallaroo send --dead-letters dead.jsonl --to orders@127.0.0.1:7010 --to prices@127.0.0.1:7011
"""


class Piece(NamedTuple):
    """Bytes to send.

    Args:
        data: the bytes.
        messages: how many messages they complete.
        read: how many bytes of the file this is.
    """

    data: bytes
    messages: int
    read: int


@dataclass
class Sent:
    """How much was given to the network so far."""

    messages: int = 0
    size: int = 0


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "send",
        help="send a file's lines or frames to a source",
        description="Send each line of FILE, without its newline, as a frame with a 4-byte "
        "big-endian header; or a file of such frames as it is. Waits until the receiver has "
        "taken everything, and exits 1 when it is not known how much was taken. With "
        "--dead-letters FILE, what `wallaroo run --dead-letters FILE` has written, send each "
        "message's payload again, once, to the source it came from: the application processes it "
        "as a new message, so what has succeeded at other steps and sinks the first time happens "
        "twice. Messages that cannot be sent are counted, and the exit code is 1.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE", help="what to send; - for standard input")
    parser.add_argument(
        "--to",
        metavar="[NAME@]HOST:PORT",
        type=_destination,
        required=True,
        action="append",
        help="where a source listens; with --dead-letters of several sources, once for each, "
        "with its NAME",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--lines", action="store_true", help="each line is a message (default)")
    form.add_argument("--frames", action="store_true", help="FILE consists of frames already")
    form.add_argument(
        "--dead-letters",
        action="store_true",
        help="FILE is a dead-letter file; those rotated beside it are read too",
    )
    parser.add_argument(
        "--rate", metavar="N", type=rate, help="messages a second; as fast as possible unless given"
    )
    parser.add_argument(
        "--repeat", metavar="N", type=count, default=1, help="send the file N times (1)"
    )
    parser.add_argument(
        "--wait",
        metavar="S",
        type=seconds,
        default=10.0,
        help="seconds to wait for the listener, and at the end until it has taken all (10)",
    )
    parser.set_defaults(run=send)


def send(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.dead_letters:
        return _send_dead_letters(options)
    if len(options.to) > 1 or options.to[0][0] is not None:
        raise UsageError("several addresses, or NAME@HOST:PORT, go with --dead-letters only")
    ((_, to),) = options.to
    with ExitStack() as stack:
        if options.file == "-":
            if options.repeat > 1:
                raise UsageError("standard input can be read once: no --repeat with -")
            file: IO[bytes] = sys.stdin.buffer
            total = None
        else:
            file = stack.enter_context(Path(options.file).open("rb"))
            status = os.fstat(file.fileno())
            total = status.st_size * options.repeat or None
            if options.repeat > 1 and not file.seekable():
                raise UsageError(f"{options.file} can be read once: no --repeat with it")
        read = _frames if options.frames else _lines
        pieces = (piece for _ in range(options.repeat) for piece in read(_rewound(file)))
        _send_to(to, pieces, total, options)
    return 0


def _send_dead_letters(options: argparse.Namespace) -> int:
    path = Path(options.file)
    if options.repeat > 1 or options.file == "-":
        raise UsageError("--dead-letters takes a file, and sends it once: neither - nor --repeat")
    with closing(LetterFiles(path)) as files:
        counts = Counter([message.source for message in files.messages()])
        to = targets(path, counts, options.to)
        rotated = f" and {len(files) - 1} rotated beside it" if len(files) > 1 else ""
        print(
            f"{escaped(str(path))}{rotated}: {counted(files.letters, 'dead letter')}, "
            f"{counted(counts.total(), 'message')} to send",
            file=sys.stderr,
        )
        left_out = files.left_out + Counter(
            {
                ("message", f"of source {source!r}: say where it listens, {to_option(source)}"): n
                for source, n in counts.items()
                if source not in to
            }
        )
        for (what, why), number in left_out.items():
            print(escaped(f"not sent: {counted(number, what)} {why}"), file=sys.stderr)
        for address in to.values():  # before anything is sent: do they all listen?
            _connect(address, options.wait).close()
        for number, (source, address) in enumerate(to.items(), 1):
            pieces = (
                Piece(frame(message.payload), 1, message.read) for message in files.messages(source)
            )
            try:
                _send_to(address, pieces, files.size, options)
            except WallarooError as error:
                rest = ", ".join(map(repr, [*to][number:]))
                nothing = f". Nothing was sent to source {rest}" if rest else ""
                raise WallarooError(f"source {source!r}: {error}{nothing}") from error
    return 1 if left_out else 0


def _send_to(
    to: tuple[str, int], pieces: Iterator[Piece], total: int | None, options: argparse.Namespace
) -> None:
    """Send the pieces to one source, and say how many messages it has taken.

    Args:
        to: where it listens.
        pieces: what is sent.
        total: bytes of the files that are read for it; `None`: not known.
        options: of the command.

    Raises:
        WallarooError: nobody listens there, or it is not known how much was taken.
    """
    where = format_address(*to)
    sent = Sent()
    if options.rate is not None:
        pieces = _paced(pieces, options.rate)
    with _connect(to, options.wait) as connection:
        started = time.monotonic()
        try:
            with byte_progress(f"sending to {where}", total, sys.stderr) as progress:
                _hand_over(pieces, connection, sent, progress)
            closed = _wait_until_taken(connection, options.wait)
        except OSError as error:
            raise _unknown(
                f"the connection to {where} was lost after {_amount(sent)} ({reason(error)})"
            ) from error
        except KeyboardInterrupt:
            raise _unknown(f"interrupted after {_amount(sent)}") from None
        if not closed:
            raise _unknown(
                f"{where} has not closed its side {options.wait:g} s after {_amount(sent)}; it may "
                "be busy (--wait S waits longer)"
            )
        taken = time.monotonic() - started
    print(
        f"sent {_amount(sent)} to {where} in {taken:.2f} s: "
        f"{sent.messages / max(taken, 1e-9):,.0f} messages/s",
        file=sys.stderr,
    )


def _destination(text: str) -> tuple[str | None, tuple[str, int]]:
    """Return the name, if there is one, and the address of ``NAME@HOST:PORT``."""
    name, at, where = text.rpartition("@")
    return name if at else None, address(where)


def _connect(to: tuple[str, int], wait: float) -> socket.socket:
    """Return a connection, trying again while nobody listens, `wait` seconds at most."""
    deadline = time.monotonic() + wait
    announced = False
    while True:
        try:
            connection = socket.create_connection(to, timeout=max(wait, _RETRY))
        except socket.gaierror as error:
            raise WallarooError(f"there is no host {to[0]!r}: {error.strerror}") from error
        except OSError as error:
            where = format_address(*to)
            if time.monotonic() >= deadline:
                raise WallarooError(
                    f"nobody listens on {where} ({error.strerror or error}; waited {wait:g} s); "
                    "is the application running? --wait S waits longer"
                ) from error
            if not announced:
                print(f"waiting for {where} to listen", file=sys.stderr)
                announced = True
            time.sleep(_RETRY)
        else:
            connection.settimeout(None)  # a busy receiver may be slow
            return connection


def _rewound(file: IO[bytes]) -> IO[bytes]:
    if file.seekable():
        file.seek(0)
    return file


def _lines(file: IO[bytes]) -> Iterator[Piece]:
    """Yield a frame for each line."""
    for line in file:
        yield Piece(frame(payload_of_line(line)), 1, len(line))


def _frames(file: IO[bytes]) -> Iterator[Piece]:
    """Yield the file's bytes, in pieces that end at a frame's end, or earlier in long frames.

    An incomplete frame at the file's end is sent too; a warning says so, as the receiver does.
    """
    header = b""
    missing = 0  # bytes of the current payload that are still to come
    begun = 0  # bytes of the current frame so far
    while data := file.read(min(missing, _AT_ONCE) or _HEADER - len(header)):
        begun += len(data)
        if missing:
            missing -= len(data)
        else:
            header += data
            if len(header) < _HEADER:
                yield Piece(data, 0, len(data))
                continue
            missing, header = int.from_bytes(header, "big"), b""
        if not missing:
            begun = 0
        yield Piece(data, 0 if missing else 1, len(data))
    if begun:
        _log.warning(
            "the input, as frames with a %d-byte header, ends inside a frame: %d bytes are there",
            _HEADER,
            begun,
        )


def _paced(pieces: Iterator[Piece], rate: float) -> Iterator[Piece]:
    """Yield the pieces so that message n comes n / `rate` seconds after the first, or later."""
    started = time.monotonic()
    number = 0
    for piece in pieces:
        delay = started + number / rate - time.monotonic()
        if delay > 0:
            yield Piece(b"", 0, 0)  # send the gathered pieces before the pause
            time.sleep(delay)
        yield piece
        number += piece.messages


def _hand_over(
    pieces: Iterator[Piece],
    connection: socket.socket,
    sent: Sent,
    progress: Callable[[int], object],
) -> None:
    """Send the pieces, gathered into large writes; an empty piece sends what is gathered."""
    gathered: list[bytes] = []
    size = messages = read = 0
    for piece in itertools.chain(pieces, [Piece(b"", 0, 0)]):
        gathered.append(piece.data)
        size += len(piece.data)
        messages += piece.messages
        read += piece.read
        if size >= _AT_ONCE or not piece.data:
            connection.sendall(b"".join(gathered))
            sent.messages, sent.size = sent.messages + messages, sent.size + size
            progress(read)
            gathered.clear()
            size = messages = read = 0


def _wait_until_taken(connection: socket.socket, wait: float) -> bool:
    """Half-close, and return whether the receiver closed in order within `wait` seconds (frame-4).

    Raises:
        OSError: it reset the connection: it is not known whether it took everything.
    """
    connection.shutdown(socket.SHUT_WR)
    deadline = time.monotonic() + max(wait, _RETRY)
    connection.settimeout(max(wait, _RETRY))
    try:
        while connection.recv(_AT_ONCE):
            if time.monotonic() > deadline:  # it sends, and does not close
                return False
    except TimeoutError:
        return False
    # It may have closed before the last bytes came: then they are reset, never acknowledged.
    while not (error := connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)):
        if not unacknowledged(connection):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK)
    raise OSError(error, os.strerror(error))


def _unknown(what: str) -> WallarooError:
    return WallarooError(
        f"{what}: it is not known how much was taken. See what the application counts as received "
        "or has put out, and send again what is missing; if repeats do no harm, send all of it "
        "again"
    )


def _amount(sent: Sent) -> str:
    return f"{counted(sent.messages, 'message')} ({sent.size:,} bytes)"
