"""How far Spark has processed its input, read from its checkpoint files before a JVM is started.

For each micro-batch Spark writes two files, named by the batch's number: one in ``offsets`` before
the batch begins, one in ``commits`` when it is done. The first has three lines: a version, the
settings that the query was made with, and the offset at which the batch ends.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from wallaroo.transport.identity import CheckpointError


class SparkPart(NamedTuple):
    """How far Spark has processed its input.

    Args:
        committed: the effects of all frames before this sequence are committed.
        planned: Spark has been given all frames before this sequence, and may ask for them again.
        partitions: number of tasks of each stateful operator; `None` before the first batch.
    """

    committed: int = 0
    planned: int = 0
    partitions: int | None = None


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
            f"them to {done}. Restore the checkpoint from a copy, or begin anew with an empty "
            "directory"
        )
    if last < 0:
        return SparkPart()
    end, partitions = _read(planned[last], done == last)
    before = end if done == last else _read(planned[done], True)[0] if done >= 0 else 0
    return SparkPart(before, end, partitions)


def _batches(directory: Path) -> dict[int, Path]:
    try:
        return {int(path.name): path for path in directory.iterdir() if path.name.isdecimal()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CheckpointError(f"{directory} cannot be read: {error.strerror}") from error


def _read(path: Path, committed: bool) -> tuple[int, int]:
    """Return where a batch ends, and the number of partitions."""
    try:
        _, settings, offset = path.read_text(encoding="utf-8").splitlines()
        partitions = json.loads(settings)["conf"]["spark.sql.shuffle.partitions"]
        return int(json.loads(offset)["next"]), int(partitions)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        also = "" if committed else ", or delete it: its batch was not committed"
        raise CheckpointError(f"{path} is damaged. Restore it from a copy{also}") from error
