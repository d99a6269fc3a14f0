"""Dead letters are logged, counted, and written to a file as lines of JSON (dead-1)."""

from __future__ import annotations

import errno
import json
import logging
import os
import select
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wallaroo.errors import WallarooError
from wallaroo.text import escaped
from wallaroo.trace import DeadLetter
from wallaroo.transport.private import opener, sync_way_to
from wallaroo.transport.rate_limit import RateLimited

if TYPE_CHECKING:
    from wallaroo.metrics.registry import Registry

_PATIENCE = 2.0  # seconds to wait for a FIFO's reader; the engine is blocked meanwhile

_log = logging.getLogger("wallaroo.dead_letters")


class DeadLetterFileError(WallarooError):
    """The dead-letter file cannot be opened or written; says which, why, and what is lost."""


class DeadLetters:
    """Logs, counts and stores dead letters.

    Args:
        path: file to which one JSON line for each is added; `None`: no file.
        metrics: gets them too.
        clock: monotonic seconds, to limit the rate of log lines.

    Attributes:
        counts: numbers by (pipeline, step, reason).

    Raises:
        DeadLetterFileError: the file cannot be opened.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        metrics: Registry | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.counts: Counter[tuple[str, str | None, str]] = Counter()
        self._path = path
        self._fd = -1
        self._metrics = metrics
        self._named = False  # the file's name is durable
        self._in_doubt = False  # a sync has failed
        self._limited = RateLimited(_log, clock=clock)
        if path is not None:
            try:
                self._fd = _opened(path)
            except OSError as error:
                raise DeadLetterFileError(
                    f"dead letters cannot be written to {path}: {error.strerror}"
                ) from error

    def add(self, letters: Sequence[DeadLetter]) -> None:
        """Log, count and write dead letters, in order.

        Raises:
            DeadLetterFileError: they are logged and counted, but cannot be written.
        """
        for letter in letters:
            self.counts[letter.pipeline, letter.step, letter.reason.value] += 1
            message = ".".join(map(str, letter.lineage))
            logged = self._limited.log(
                logging.WARNING,
                (letter.pipeline, letter.step, letter.reason),
                "dead letter: pipeline %s, %s, %s%s, message %s: %s%s",
                escaped(letter.pipeline),
                f"step {escaped(letter.step)}" if letter.step else _edge(letter),
                letter.reason.value,
                f" ({letter.error_type})" if letter.error_type else "",
                message,
                escaped(letter.error),
                f"; at {escaped(str(letter.where[-1]))}" if letter.where else "",
            )
            if logged and _log.isEnabledFor(logging.DEBUG):
                for line in _traceback(letter):
                    _log.debug("message %s: %s", message, escaped(line))
        if self._metrics is not None:
            self._metrics.add_dead_letters(letters)
        if self._fd >= 0:
            self._write(letters)

    def sync(self) -> None:
        """Make durable what was written, and the file's name; in any thread.

        Raises:
            DeadLetterFileError: the system could not. That is final, because nobody knows what is
                on the disk then.
        """
        if self._fd < 0 or self._path is None:
            return
        try:
            if self._in_doubt:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            os.fsync(self._fd)
            if not self._named:
                sync_way_to(self._path)
                self._named = True
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.EBADF):  # a FIFO; closed
                return
            self._in_doubt = True
            raise DeadLetterFileError(
                f"dead letters in {self._path} could not be synced: {error.strerror}; nobody knows "
                "whether the last are on the disk. A restart from the checkpoint writes them again"
            ) from error

    def close(self) -> None:
        """Close the file, and log how many log lines were left out."""
        self._limited.flush()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, letters: Sequence[DeadLetter]) -> None:
        lines = [json.dumps(letter.to_json()).encode() + b"\n" for letter in letters]
        size = os.fstat(self._fd).st_size
        view = memoryview(b"".join(lines))
        written = 0
        try:
            while view:
                count = _written(self._fd, view)
                written += count
                view = view[count:]
        except OSError as error:
            whole = 0
            while whole < len(lines) and written >= len(lines[whole]):
                written -= len(lines[whole])
                whole += 1
            if written:
                # Half a line would break a reader of the file: remove it where that is possible.
                _truncate(self._fd, size + sum(map(len, lines[:whole])))
            raise DeadLetterFileError(
                f"dead letters cannot be written to {self._path}: {error.strerror}; the last "
                f"{len(lines) - whole} are not in it, from message "
                f"{'.'.join(map(str, letters[whole].lineage))} on"
            ) from error


def _written(fd: int, view: memoryview) -> int:
    """Write as many bytes as the file takes, and return how many; wait a while for a FIFO's reader.

    Raises:
        OSError: it cannot be written, or the FIFO's reader was too slow.
    """
    while True:
        try:
            return os.write(fd, view)
        except BlockingIOError:
            if not select.select([], [fd], [], _PATIENCE)[1]:
                raise OSError(
                    errno.EAGAIN, f"its reader has read nothing for {_PATIENCE:g} s"
                ) from None


def _edge(letter: DeadLetter) -> str:
    return "decoder" if letter.sink is None else f"encoder of sink {letter.sink}"


def _traceback(letter: DeadLetter) -> Iterator[str]:
    """Yield the lines that tell where user code failed: outermost frame first, then the causes."""
    if letter.where or letter.causes:
        yield f"{letter.error_type or letter.reason.value}: {letter.error}"
    for frame in letter.where:
        yield f"  {frame}"
    for cause in letter.causes:
        yield f"caused by {cause.error_type}: {cause.error}"
        for frame in cause.where:
            yield f"  {frame}"


def _opened(path: Path) -> int:
    if path.is_fifo():
        try:  # not O_RDWR: this process would count as a FIFO's reader, and never read
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            raise OSError(error.errno, "nobody reads it (a FIFO); start its reader first") from None
    fd = opener(str(path), os.O_RDWR | os.O_CREAT | os.O_APPEND)  # it holds users' payloads
    size = os.fstat(fd).st_size
    if size and os.pread(fd, 1, size - 1) not in (b"\n", b""):
        os.write(fd, b"\n")  # a crash left half a line; the next one must begin on its own
    return fd


def _truncate(fd: int, size: int) -> None:
    try:
        os.ftruncate(fd, size)
    except OSError:  # a pipe or a device cannot be truncated; its reader sees half a line
        return
