"""Why Spark has failed, in one line.

Spark's own error text is a page long: its wrappers, a Python traceback inside a Java one, the
query's plan. The cause is the last error in it that wraps no other error.
"""

from __future__ import annotations

import contextlib
import logging
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from wallaroo.errors import WallarooError
from wallaroo.transport.checkpoint import damaged
from wallaroo_spark.live.checkpoint import ENGINE
from wallaroo_spark.live.spark_part import damaged_files, misfit
from wallaroo_spark.worker.stored import StateError

_ERROR = re.compile(
    r"^(?:Caused by: |: )?([\w.$]+(?:Error|Exception)\w*)(?:: (.*))?$", re.MULTILINE
)
_WRAPPERS = ("py4j.", "pyspark.", "org.apache.spark.", "java.util.concurrent.")
_PREFIX = re.compile(r"^(?:\[STREAM_FAILED\] )?Query \[.*?\] terminated with exception: ")
_QUERY = "\n=== Streaming Query ==="
_LONGEST = 500  # characters of a cause
_FULL = ("No space left on device", "Disk quota exceeded")
_DAMAGED = ("ChecksumException", "EOFException", "FileNotFoundException", "RocksDBException")
_RESTORE = "Restore it from a copy, or begin anew with an empty directory"

_log = logging.getLogger("wallaroo.spark")


@contextlib.contextmanager
def explaining(directory: Path) -> Iterator[None]:
    """Raise a failure of Spark as a `WallarooError` that explains it.

    Args:
        directory: the checkpoint's directory.
    """
    try:
        yield
    except WallarooError:
        raise
    except Exception as error:
        _log.debug("Spark failed", exc_info=error)
        raise WallarooError(explained(str(error), directory)) from error


def explained(text: str, directory: Path) -> str:
    """Return the text for a failure of Spark.

    Args:
        text: Spark's whole error text.
        directory: the checkpoint's directory.
    """
    kind, cause = _cause(text)
    if any(full in text for full in _FULL):
        return (
            f"the disk is full: {cause}. Spark writes to {directory / ENGINE} and to "
            f"{tempfile.gettempdir()}: make room, and start again; nothing that was received "
            "is lost to the checkpoint"
        )
    if kind == StateError.__name__:
        return f"the checkpoint {directory} does not fit the application: {cause}"
    if kind == "OutOfMemoryError":
        return (
            f"Spark's JVM ran out of memory: {cause}. Give it more, with --conf "
            "spark.driver.memory=4g, or take smaller batches, with --batch-bytes"
        )
    with contextlib.suppress(OSError):  # what cannot be read is in the cause
        for path, place in damaged_files(directory / ENGINE):
            return f"{damaged(path, misfit(place))}. Spark's cause: {cause}"
    if kind in _DAMAGED or "CANNOT_LOAD_STATE_STORE" in text:
        return f"the checkpoint {directory} is damaged: {cause}. {_RESTORE}"
    return f"Spark failed: {': '.join(filter(None, (kind, cause)))}"


def _cause(text: str) -> tuple[str, str]:
    """Return the cause's class, without its package, and its text."""
    text = text.partition(_QUERY)[0].strip()
    errors = _ERROR.findall(text)
    causes = [error for error in errors if not error[0].startswith(_WRAPPERS)] or errors[-1:]
    causes = causes or [("", _PREFIX.sub("", text.partition("\n")[0]))]
    kind, cause = causes[-1]
    return re.split(r"[.$]", kind)[-1], cause.strip().rstrip(".")[:_LONGEST]
