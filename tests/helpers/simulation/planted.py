"""Faults put into the engine, one at a time. A simulation that misses one of them proves little."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

from wallaroo_reference.serving.feeder import Feeder

from simulation import planted_checkpoints
from simulation.disk import File, Folder
from simulation.planting import PLANTED, Planted, plant, without
from wallaroo.frames import FrameParser
from wallaroo.transport import dead_letters, input_log, log_directory, log_format, private, sink
from wallaroo.transport.connection import Connection
from wallaroo.transport.input_log import InputLog, InputLogError
from wallaroo.transport.log_directory import SecondNames
from wallaroo.transport.log_file import LogFile
from wallaroo.transport.sink import Chunk, TCPSink

# -- the input log ---------------------------------------------------------------------------------

without("log", "a sync that does not sync", (InputLog, "sync"), kind=File)
without("log", "a file that is full is not synced", (InputLog, "_roll"), kind=File)
without("log", "a new file's name is not synced", (InputLog, "_roll"), kind=Folder)
without("log", "a new file's header is not synced", (input_log, "create"), kind=File)
without("log", "the way to the folder is not synced", (private, "sync_way_to"))
without(
    "log", "names that a killed process made are not synced", (input_log, "recover"), kind=Folder
)
without("log", "after a failed sync nothing is written again", (log_directory, "_write_again"))
without("log", "files are removed in any order", (InputLog, "drop_before"), kind=Folder, runs=500)
without("log", "the reserve is not kept", (input_log, "keep_reserve"))


@plant("log", "a failed sync is forgotten", InputLog, "_not_synced", runs=500)
def _not_final(right: Any, log: InputLog, error: OSError) -> InputLogError:
    failed = right(log, error)
    log._broken = None
    return failed


@plant("log", "half an append stays behind", InputLog, "_write")
def _half_stays(right: Any, log: InputLog, *arguments: Any) -> None:
    with mock.patch.object(os, "ftruncate"):
        right(log, *arguments)


@plant("log", "a short write counts as a whole one", InputLog, "_write")
def _short(right: Any, log: InputLog, file: LogFile, data: bytes, records: int) -> None:
    write = os.write

    def pretend(fd: int, view: Any) -> int:
        write(fd, view)
        return len(view)

    with mock.patch.object(os, "write", pretend):
        right(log, file, data, records)


@plant("log", "the torn end is cut one byte late", log_directory, "_drop_torn_end")
def _late(right: Any, last: LogFile, error: Any) -> None:
    error.offset += 1
    right(last, error)


@plant("log", "the torn end is cut one record early", log_directory, "_drop_torn_end")
def _early(right: Any, last: LogFile, error: Any) -> None:
    right(last, error)
    if last.next > last.first:
        os.truncate(last.path, last._index[0][1])
        last.next, last.size = last.first, last._index[0][1]


@plant("log", "a file too many is dropped", InputLog, "drop_before")
def _one_more(right: Any, log: InputLog, sequence: int) -> None:
    right(log, sequence)
    if len(log._files) > 1:
        log._files.pop(0).path.unlink()


@plant("log", "after a restart times begin anew", LogFile, "scan")
def _times(right: Any, file: LogFile) -> None:
    right(file)
    file.latest_at = file.before


def _no_checksums() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(log_format, "zlib", SimpleNamespace(crc32=lambda data: 0))


PLANTED.append(Planted("log", "checksums are not looked at", _no_checksums, 40))

# -- a recording -----------------------------------------------------------------------------------

without("recording", "a new file gets no second name", (SecondNames, "add"))
without("recording", "a restart gives no second names", (SecondNames, "_link"))
without("recording", "a second name is not synced", (SecondNames, "add"), kind=Folder)

# -- the edges -------------------------------------------------------------------------------------


@plant("server", "what has arrived is not read before a stop", Connection, "_unread", runs=500)
def _unread(right: Any, connection: Connection) -> int:
    return 0


@plant("server", "frames of one read change places", FrameParser, "feed")
def _reversed(right: Any, parser: FrameParser, data: bytes) -> Any:
    return right(parser, data)[::-1]


@plant("server", "a header that is cut is dropped", FrameParser, "feed", runs=500)
def _cut(right: Any, parser: FrameParser, data: bytes) -> Any:
    return right(parser, data[:-1] if len(data) == 1 and parser.pending == 3 else data)


@plant("server", "a sink goes on in the middle of an output", Chunk, "whole")
def _middle(right: Any, chunk: Chunk, acknowledged: int) -> tuple[int, int]:
    count, size = right(chunk, acknowledged)
    if acknowledged > size:
        outputs = list(chunk.outputs)
        outputs[count] = outputs[count][acknowledged - size :]
        chunk.outputs, chunk.size = outputs, chunk.size - (acknowledged - size)
    return count, size


@plant("server", "what was given to the system counts as delivered", sink, "unacknowledged")
def _given(right: Any, sock: Any) -> int:
    right(sock)
    return 0


@plant("server", "an output too many counts as delivered", Chunk, "whole")
def _too_many(right: Any, chunk: Chunk, acknowledged: int) -> tuple[int, int]:
    count, size = right(chunk, acknowledged)
    if acknowledged > size:
        return count + 1, size + len(chunk.outputs[count])
    return count, size


@plant("server", "what comes while there is no connection is forgotten", TCPSink, "write", runs=500)
def _forgotten(right: Any, one: TCPSink, outputs: Any) -> None:
    if one._sock is not None or not one.written:
        right(one, outputs)


without("server", "no tick is taken", (Feeder, "_watch_clock"))
without("server", "windows fire while a stop delivers", (Feeder, "stop_ticking"), runs=500)


@plant("server", "half a line stays in the dead-letter file", dead_letters, "_opened", runs=500)
def _half_line(right: Any, path: Any) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)


assert planted_checkpoints  # imported for the faults that it plants


def named(words: str) -> Iterator[Planted]:
    """Yield the faults whose description contains the words."""
    return (one for one in PLANTED if words in one.what)
