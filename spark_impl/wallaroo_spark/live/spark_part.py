"""How far Spark has processed its input, read from its checkpoint files before a JVM is started.

For each micro-batch Spark writes two files, named by the batch's number: one in ``offsets`` before
the batch begins, one in ``commits`` when it is done. The first has three lines: a version, the
settings that the query was made with, and the offset at which the batch ends.

Of each stateful operator Spark also keeps a file that names its schema file by the full path. So a
checkpoint that was moved, or restored elsewhere, could not be used: `settle` puts that right.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from wallaroo.transport.checkpoint import INPUT
from wallaroo.transport.identity import RESTORE, CheckpointError, damaged
from wallaroo.transport.private import refuse_irregular, told_as, write_durably
from wallaroo_spark.live.offset_log import RECORDS

_SCHEMAS = "stateSchemaFilePaths"


class SparkPart(NamedTuple):
    """How far Spark has processed its input.

    Args:
        committed: the effects of all frames before this sequence are committed.
        planned: Spark has been given all frames before this sequence, and may ask for them again,
            even if its last batch was cut before that.
        partitions: number of tasks of each stateful operator; `None` before the first batch.
        offset: what Spark has kept of the last batch that it has planned; `None`: there is none.
    """

    committed: int = 0
    planned: int = 0
    partitions: int | None = None
    offset: Mapping[str, Any] | None = None

    @property
    def in_offsets_alone(self) -> bool:
        """Whether there is a batch that is not committed and stands in no input log."""
        return self.planned > self.committed and RECORDS in (self.offset or {})


def read_spark_part(directory: Path) -> SparkPart:
    """Return how far Spark has come, by its checkpoint in `directory`, which may not exist.

    Raises:
        CheckpointError: it is damaged.
    """
    planned = _batches(directory / "offsets")
    committed = _batches(directory / "commits")
    last = max(planned, default=-1)
    done = max(committed, default=-1)
    if not last - 1 <= done <= last or (done >= 0 and done not in planned):
        raise CheckpointError(
            f"{directory} is half deleted: Spark has planned its batches to {last} and committed "
            f"them to {done}. {RESTORE}"
        )
    if last < 0:
        return SparkPart()
    offset, partitions = _read(planned[last], done == last)
    before, end = offset["next"], offset.get("planned", offset["next"])
    if done < last:
        before = _read(planned[done], True)[0]["next"] if done >= 0 else 0
    return SparkPart(before, end, partitions, offset)


def cut_last(directory: Path, some: int, of: int) -> tuple[int, int]:
    """Make the last batch that Spark has planned smaller, while Spark does not run.

    Args:
        directory: Spark's part of a checkpoint.
        some: the batch is to have so many records, at least one,
        of: of so many.

    Returns:
        How many records it had, and how many it has.

    Raises:
        CheckpointError: it is damaged, or cannot be written.
    """
    begin, offsets = read_spark_part(directory).committed, _batches(directory / "offsets")
    path = offsets[max(offsets)]
    with told_as(CheckpointError, f"{path} cannot be written"):
        *head, offset = path.read_text(encoding="utf-8").splitlines()
        form = json.loads(offset)
        before = form["next"] - begin
        now = max(1, before * some // of)
        # Spark checks the file if there is a checksum, and takes it if there is none.
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        write_durably(path, "\n".join([*head, json.dumps({**form, "next": begin + now})]).encode())
    return before, now


def refuse_irregular_files(directory: Path) -> None:
    """Refuse what is neither a folder nor a regular file: Spark would wait for a FIFO for ever.

    Raises:
        CheckpointError: there is one.
    """
    if directory.exists() and not directory.is_dir():
        raise damaged(directory, "it is not a folder")
    for folder, _, names in os.walk(directory):
        for name in names:
            path = Path(folder, name)
            try:
                refuse_irregular(path)
            except FileNotFoundError:  # a run has just deleted it
                continue
            except OSError as error:
                raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error


def missing_files(directory: Path) -> Iterator[Path]:
    """Yield the missing files without which Spark does not go on.

    Before its first commit it needs none: a run begins anew, with all that is in the input log.

    Raises:
        CheckpointError: it is damaged.
    """
    if not _batches(directory / "commits"):
        return
    if not (directory / "metadata").exists():
        yield directory / "metadata"
    for level in sorted(directory.glob("state/*")):
        if level.name.isdecimal() and not any(
            path.name.isdecimal() for path in level.glob("_metadata/v2/*")
        ):
            yield level / "_metadata" / "v2" / "0"
    for _, _, form in _forms(directory):
        for schema in [path for store in form["stateStoreInfo"] for path in store[_SCHEMAS]]:
            file = directory / "state" / schema.rpartition("/state/")[2]
            if not file.exists():
                yield file


def clear_unbegun(directory: Path) -> None:
    """Delete what a run has left that died, or found no room, while it planned its first batch.

    Spark refuses to begin where such files are. Nothing is lost: all input is in the log.
    """
    for name in ("offsets", "commits", "state"):
        shutil.rmtree(directory / name, ignore_errors=True)


def url_of(directory: Path) -> str:
    """Return the URL of a directory, as Spark writes it into its files."""
    return f"file:{directory.absolute()}"


def settle(directory: Path, place: str) -> None:
    """Make Spark's part in `directory` one that lies at `place`, a URL.

    Raises:
        CheckpointError: it is damaged.
        OSError: it cannot be written.
    """
    for path, text in _misplaced(directory, place):
        # Spark checks the file if there is a checksum, and takes it if there is none.
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        write_durably(path, text.encode())


@contextlib.contextmanager
def seen_from(directory: Path) -> Iterator[Path]:
    """Yield a directory from which Spark can read its part in `directory`, which is not changed.

    Raises:
        CheckpointError: it is damaged.
    """
    path = str(directory.absolute())
    plain = quote(path) == path  # Spark's reader of states takes a path for a URL
    if plain and not any(_misplaced(directory, url_of(directory))):
        yield directory
        return
    with tempfile.TemporaryDirectory(prefix="wallaroo-look-") as name:
        view = Path(name)
        changed = [path.parent for path, _ in _misplaced(directory, url_of(view))]
        _link(directory, view, changed)
        settle(view, url_of(view))
        yield view


def _misplaced(directory: Path, place: str) -> Iterator[tuple[Path, str]]:
    """Yield the files that say that Spark's part lies elsewhere, and what they ought to say."""
    for path, version, form in _forms(directory):
        moved = False
        for store in form["stateStoreInfo"]:
            after = [_placed(schema, place) for schema in store[_SCHEMAS]]
            moved = moved or after != store[_SCHEMAS]
            store[_SCHEMAS] = after
        if moved:
            yield path, f"{version}\n{json.dumps(form)}"


def _forms(directory: Path) -> Iterator[tuple[Path, str, Any]]:
    """Yield the files that say where operators' schemas are: path, version, and what it says."""
    for path in sorted(directory.glob("state/*/_metadata/v2/*")):
        if not path.name.isdecimal():
            continue
        try:
            version, _, text = path.read_text(encoding="utf-8").partition("\n")
            form = json.loads(text)
            for store in form["stateStoreInfo"]:
                if not all(isinstance(schema, str) for schema in store[_SCHEMAS]):
                    raise TypeError("a path is not text")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise damaged(path, f"it does not say where its schema is ({error!r:.80})") from error
        yield path, version, form


def _placed(schema: str, place: str) -> str:
    return f"{place}/state/{schema.rpartition('/state/')[2]}"


def _link(directory: Path, view: Path, changed: list[Path]) -> None:
    """Fill `view` with links to what is in `directory`, and with copies of some of its folders."""
    for entry in directory.iterdir():
        link = view / entry.name
        if entry in changed:
            link.mkdir()
            for file in entry.iterdir():
                (link / file.name).write_bytes(file.read_bytes())
        elif any(path.is_relative_to(entry) for path in changed):
            link.mkdir()
            _link(entry, link, changed)
        else:
            link.symlink_to(entry.absolute())


def _batches(directory: Path) -> dict[int, Path]:
    try:
        return {int(path.name): path for path in directory.iterdir() if path.name.isdecimal()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CheckpointError(f"{directory} cannot be read: {error.strerror}") from error


def _read(path: Path, committed: bool) -> tuple[dict[str, Any], int]:
    """Return where a batch ends, its `next` and what was kept with it; number of partitions."""
    try:
        _, settings, offset = path.read_text(encoding="utf-8").splitlines()
        partitions = json.loads(settings)["conf"]["spark.sql.shuffle.partitions"]
        form = json.loads(offset)
        return {**form, "next": int(form["next"])}, int(partitions)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        # Without an input log it alone says what is in its batch, of which outputs may have left.
        in_log = not committed and any((path.parents[2] / INPUT).glob("*.log"))
        also = ", or delete it: its batch was not committed" if in_log else ""
        raise CheckpointError(
            f"{path} is damaged. Restore the whole checkpoint from a copy{also}"
        ) from error


_HEADER = struct.Struct(">4sI")
_MAGIC = b"crc\0"


def damaged_files(part: Path) -> Iterator[tuple[Path, int]]:
    """Yield Spark's damaged files, each with the place of the first part that is damaged.

    A missing file is not reported: it cannot be told whether it is needed. A file that a run has
    just deleted, or is writing, or was writing when it was killed, counts as whole.

    Args:
        part: Spark's part of a checkpoint.

    Raises:
        OSError: a file cannot be read.
    """
    for sums in sorted(part.rglob(".*.crc")):
        path = sums.with_name(sums.name.removeprefix(".").removesuffix(".crc"))
        if path.suffix == ".tmp":
            continue
        place = _first_damage(path, sums)
        if place is not None and _first_damage(path, sums) == place:
            yield path, place


def misfit(place: int) -> str:
    """Return what is said of a file that is damaged from byte `place` on."""
    return f"its checksum does not fit from byte {place} on"


def _first_damage(path: Path, sums: Path) -> int | None:
    try:
        checksums, content = sums.read_bytes(), path.read_bytes()
    except FileNotFoundError:
        return None
    if len(checksums) < _HEADER.size or not checksums.startswith(_MAGIC):
        return None  # Spark does not compare them either
    size = max(1, _HEADER.unpack_from(checksums)[1])
    sums_end, parts = len(checksums), -(-len(content) // size)
    if sums_end < _HEADER.size + 4 * parts:
        return None  # the run was killed while it wrote them
    for number, at in enumerate(range(0, len(content), size)):
        begin = _HEADER.size + 4 * number
        if struct.pack(">I", zlib.crc32(content[at : at + size])) != checksums[begin : begin + 4]:
            return at
    return None if sums_end == _HEADER.size + 4 * parts else len(content)
