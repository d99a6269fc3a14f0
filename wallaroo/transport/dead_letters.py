"""Dead letters are logged, counted, and written to a file as lines of JSON (dead-1)."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wallaroo.errors import WallarooError
from wallaroo.text import escaped
from wallaroo.trace import DeadLetter
from wallaroo.transport.dead_letter_file import DeadLetterFile
from wallaroo.transport.private import told_as
from wallaroo.transport.rate_limit import RateLimited

if TYPE_CHECKING:
    from wallaroo.metrics.registry import Registry

_log = logging.getLogger("wallaroo.dead_letters")


class DeadLetterFileError(WallarooError):
    """The dead-letter file cannot be opened or written; says which, why, and what is lost."""


class DeadLetters:
    """Logs, counts and stores dead letters.

    Args:
        path: file to which one JSON line for each is added; `None`: no file.
        most: bytes that this file and the rotated ones may have together.
        metrics: gets them too.
        clock: monotonic seconds, to limit the rate of log lines.

    Attributes:
        counts: numbers by (pipeline, step, reason).
        run: stands in each line. Sequence numbers begin anew in a run without a checkpoint: with
            this, a line says which message it is about.

    Raises:
        DeadLetterFileError: the file cannot be opened.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        most: int = sys.maxsize,
        metrics: Registry | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.counts: Counter[tuple[str, str | None, str]] = Counter()
        self.run = os.urandom(8).hex()
        self._path = path
        self._file: DeadLetterFile | None = None
        self._metrics = metrics
        self._limited = RateLimited(_log, clock=clock)
        if path is not None:
            with told_as(DeadLetterFileError, f"dead letters cannot be written to {path}"):
                self._file = DeadLetterFile(path, most)

    def add(self, letters: Sequence[DeadLetter]) -> None:
        """Log, count and write dead letters, in order.

        Raises:
            DeadLetterFileError: they are logged and counted, but cannot be written.
        """
        for letter in letters:
            self.counts[letter.pipeline, letter.step, letter.reason.value] += 1
            message = ".".join(map(str, letter.lineage))
            if letter.record is not None:
                message += " (topic {}, partition {}, offset {})".format(*letter.record)
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
        if self._file is not None:
            self._write(letters, self._file)

    @property
    def deleted(self) -> int:
        """Bytes of the oldest ones that were deleted, to keep the files below their bound."""
        return 0 if self._file is None else self._file.deleted

    def sync(self) -> None:
        """Make durable what was written, and the files' names; in any thread.

        Raises:
            DeadLetterFileError: the system could not. That is final, because nobody knows what is
                on the disk then.
        """
        try:
            if self._file is not None:
                self._file.sync()
        except OSError as error:
            raise DeadLetterFileError(
                f"dead letters in {self._path} could not be synced: {error.strerror}; nobody knows "
                "whether the last are on the disk. A restart from the checkpoint writes them again"
            ) from error

    def close(self) -> None:
        """Close the file, and log how many log lines were left out."""
        self._limited.flush()
        if self._file is not None:
            self._file.close()

    def _write(self, letters: Sequence[DeadLetter], file: DeadLetterFile) -> None:
        forms = [{**letter.to_json(), "run": self.run} for letter in letters]
        before = file.written
        try:
            file.write([json.dumps(form).encode() + b"\n" for form in forms])
        except OSError as error:
            whole = file.written - before
            raise DeadLetterFileError(
                f"dead letters cannot be written to {self._path}: {error.strerror}; the last "
                f"{len(letters) - whole} are not in it, from message "
                f"{'.'.join(map(str, letters[whole].lineage))} on"
            ) from error


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
