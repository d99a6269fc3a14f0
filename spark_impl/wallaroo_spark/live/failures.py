"""Why Spark has failed, in one line, if it may have to do with the checkpoint."""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from wallaroo.errors import WallarooError
from wallaroo.transport.identity import RESTORE, damaged
from wallaroo.transport.kafka.cluster import BrokerError, BrokersAwayError
from wallaroo_spark.jvm import failures
from wallaroo_spark.live.checkpoint import ENGINE
from wallaroo_spark.live.spark_part import damaged_files, misfit
from wallaroo_spark.worker.stored import StateError

_FULL = ("No space left on device", "Disk quota exceeded")
_DAMAGED = ("ChecksumException", "EOFException", "FileNotFoundException", "RocksDBException")

_log = logging.getLogger("wallaroo.spark")


@contextlib.contextmanager
def explaining(directory: Path, death: Callable[[], str] = lambda: "") -> Iterator[None]:
    """Raise a failure of Spark as a `WallarooError` that explains it.

    Args:
        directory: the checkpoint's directory.
        death: returns how Spark's JVM died; empty: it runs.
    """
    try:
        yield
    except WallarooError:
        raise
    except Exception as error:
        _log.debug("Spark failed", exc_info=error)
        text = failures.text_of(error)  # the JVM has it, so only while Spark runs
        raise WallarooError(death() or explained(text, directory)) from error


def explained(text: str, directory: Path) -> str:
    """Return the text for a failure of Spark.

    Args:
        text: Spark's whole error text.
        directory: the checkpoint's directory.
    """
    kind, cause = failures.cause_of(text)
    if any(full in text for full in _FULL):
        return (
            f"the disk is full: {cause}. Spark writes to {directory / ENGINE} and to "
            f"{tempfile.gettempdir()}: make room, and start again; nothing that was received "
            "is lost to the checkpoint"
        )
    if kind in (BrokerError.__name__, BrokersAwayError.__name__):
        return cause
    if kind == StateError.__name__:
        return f"the checkpoint {directory} does not fit the application: {cause}"
    if said := failures.explained(text):
        return said
    with contextlib.suppress(OSError):  # what cannot be read is in the cause
        for path, place in damaged_files(directory / ENGINE):
            return f"{damaged(path, misfit(place))}. Spark's cause: {cause}"
    if kind in _DAMAGED or "CANNOT_LOAD_STATE_STORE" in text:
        return f"the checkpoint {directory} is damaged: {cause}. {RESTORE}"
    return f"Spark failed: {': '.join(filter(None, (kind, cause)))}"
