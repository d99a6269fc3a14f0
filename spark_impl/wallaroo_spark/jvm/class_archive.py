"""Spark's classes, loaded once and kept: a start takes half the time then.

Java can write the classes a run has loaded into an archive (class data sharing) and map it into
later runs: 3.5 instead of 8.5 CPU seconds until the first job is done. It is made when asked for,
since writing it keeps a JVM busy for seconds after its end::

    python -m wallaroo_spark.archive
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from platformdirs import user_cache_path


def archive_for(java: Path, jars: Path, options: Sequence[str]) -> Path:
    """Return where the archive of a Java, a Spark and these options is, or would be.

    What it depends on is in its name; what Java finds not to fit it ignores.
    """
    parts = [str(java.resolve()), str(jars), str(jars.stat().st_mtime_ns), *options]
    name = hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()
    return user_cache_path("wallaroo", appauthor=False) / f"spark-{name}.jsa"


def unfinished(archive: Path) -> Path | None:
    """Return where to write an archive first; `None` if nothing can be written there."""
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(archive.parent, os.W_OK):
        return None
    return archive.with_suffix(f".{os.getpid()}")
