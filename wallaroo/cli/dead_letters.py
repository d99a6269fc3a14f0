"""What ``wallaroo send --dead-letters`` reads: messages that could not go on, each once."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple

from wallaroo.errors import UsageError
from wallaroo.text import escaped
from wallaroo.trace import DeadLetter
from wallaroo.transport.dead_letter_file import files_of

Address = tuple[str, int]


class Message(NamedTuple):
    """A message that can be sent again.

    Args:
        source: the source it came from.
        payload: its frame's payload.
        read: bytes of the files that were read to find it.
    """

    source: str
    payload: bytes
    read: int


class LetterFiles:
    """A dead-letter file and those rotated beside it, as they are now. `close` it.

    A run may go on writing, even what is sent from here and fails again: that is not read.

    Args:
        path: the file.

    Attributes:
        size: bytes of all files.
        letters: number of dead letters, once all `messages` were read.
        left_out: how many can never be sent, by what they are (a noun, and why); likewise.

    Raises:
        OSError: there is no such file, or it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.letters = 0
        self.left_out: Counter[tuple[str, str]] = Counter()
        self._files: dict[tuple[int, int], tuple[IO[bytes], int]] = {}
        with ExitStack() as up:
            # The last one first: if it is rotated meanwhile, it is met again by its new name.
            paths = files_of(path)
            for each in (paths[-1], *files_of(path)[:-1]):
                try:
                    file = up.enter_context(each.open("rb"))
                except FileNotFoundError:
                    if len(paths) == 1:
                        raise
                    continue  # just rotated, or the oldest, which has just been deleted
                status = os.fstat(file.fileno())
                self._files.setdefault((status.st_dev, status.st_ino), (file, status.st_size))
            self.close = up.pop_all().close
        self.size = sum([size for _, size in self._files.values()])

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self._files)

    def messages(self, source: str | None = None) -> Iterator[Message]:
        """Yield the messages, each once, in the order of their first dead letters.

        Args:
            source: only those that came from it; `None`: all.
        """
        self.letters = 0
        self.left_out.clear()
        seen: dict[Any, set[int]] = defaultdict(set)  # sequence numbers, by run
        last, *rotated = self._files.values()
        read = 0
        for file, size in (*rotated, last):
            file.seek(0)
            while file.tell() < size and (line := file.readline(size - file.tell())):
                read += len(line)
                try:
                    form = json.loads(line)
                    letter = DeadLetter.from_json(form)
                    run, number = str(form.get("run")), letter.lineage[0]
                except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                    if line.strip():
                        self.left_out["line", "without a dead letter: a crash may cut one off"] += 1
                    continue
                self.letters += 1
                if "topic" in form:
                    self.left_out["dead letter", _of_topic(form["topic"])] += 1
                elif letter.payload is None or letter.source is None:
                    self.left_out["dead letter", _no_frame(letter)] += 1
                elif number not in seen[run]:
                    seen[run].add(number)
                    if source in (None, letter.source):
                        yield Message(letter.source, letter.payload, read)
                        read = 0


def _no_frame(letter: DeadLetter) -> str:
    if letter.source is None:
        return "without a frame: of windows that fired by time alone"
    return f"without a frame: of source {letter.source!r}, from a generator or a window"


def _of_topic(topic: object) -> str:
    return (
        f"of topic {topic!r}, where its record is, with key and headers, at the partition and "
        "offset that stand in the dead letter. Send it to the topic once more with a producer of "
        "Kafka, or run the corrected application on an empty checkpoint with start= before it"
    )


def targets(
    path: Path, counts: Mapping[str, int], given: Sequence[tuple[str | None, Address]]
) -> dict[str, Address]:
    """Return where the messages of each source go, as ``--to`` says.

    Args:
        path: the dead-letter file.
        counts: numbers of messages by source.
        given: for each ``--to`` a source, or `None` for the only one, and an address.

    Raises:
        UsageError: an address is missing, or not for one source only.
    """
    if len(given) == 1 and given[0][0] is None:
        if len(counts) > 1:
            raise UsageError(
                f"{path} has messages of {len(counts)} sources; say where each listens: "
                f"{' '.join(map(to_option, counts))}"
            )
        return dict.fromkeys(counts, given[0][1])
    named = {source: address for source, address in given if source is not None}
    if len(named) < len(given):
        raise UsageError(
            "give each source one --to NAME@HOST:PORT, or a file of one source one --to HOST:PORT"
        )
    return {source: named[source] for source in counts if source in named}


def to_option(source: str) -> str:
    """Return the option that says where a source listens, to be completed by the user."""
    return escaped(f"--to {shlex.quote(f'{source}@HOST:PORT')}")
