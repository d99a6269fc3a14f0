"""Spark's classes, loaded once and kept: a start takes half the time then.

Java can write the classes a run has loaded into an archive (class data sharing) and map it into
later runs: 3.5 instead of 8.5 CPU seconds until the first job is done. It is made when asked for,
since writing it keeps a JVM busy for seconds after its end::

    python -m wallaroo_spark.archive
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path


def archive_for(java: Path, jars: Path, options: Sequence[str]) -> Path:
    """Return where the archive of a Java, a Spark and these options is, or would be.

    What it depends on is in its name; what Java finds not to fit it ignores.
    """
    parts = [str(java.resolve()), str(jars), str(jars.stat().st_mtime_ns), *options]
    name = hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "wallaroo" / f"spark-{name}.jsa"


def unfinished(archive: Path) -> Path | None:
    """Return where to write an archive first; `None` if nothing can be written there."""
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(archive.parent, os.W_OK):
        return None
    return archive.with_suffix(f".{os.getpid()}")


def main() -> int:
    """Make the archive for the default settings, if there is none."""
    import wallaroo
    from wallaroo.engine import Case
    from wallaroo_spark import archive_example as example
    from wallaroo_spark.many import run_cases
    from wallaroo_spark.session import Session
    from wallaroo_spark.settings import SessionSettings

    running = Session(SessionSettings(), makes_archive=True)
    if running.archive.exists():
        running.close()
        print(f"{running.archive} is there already")
        return 0
    application = (
        wallaroo.ApplicationBuilder("archive")
        .new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, example.decode))
        .to_state_partition(example.count, dict, "counts", example.whole)
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 1, example.encode))
        .build()
    )
    case = Case(application, [("p", b"a"), ("p", b"b")], batches=(1,))
    run_cases(running, [case, Case(application, case.input_log)])
    archive = running.archive
    running.close()
    if not archive.exists():
        print(f"Java did not write {archive}", file=sys.stderr)
        return 1
    print(f"{archive}: {archive.stat().st_size >> 20} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
