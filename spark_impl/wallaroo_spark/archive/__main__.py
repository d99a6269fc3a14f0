"""Starts Spark once, so that Java writes the archive of its classes (`jvm.process`)."""

from __future__ import annotations

import sys

import wallaroo
from wallaroo.engine import Case
from wallaroo_spark.archive import example
from wallaroo_spark.bounded.runs import run_cases
from wallaroo_spark.jvm.session import Session
from wallaroo_spark.jvm.settings import SessionSettings


def main() -> int:
    """Make the archive for the default settings, if there is none."""
    running = Session(SessionSettings(), makes_archive=True)
    archive = running.archive
    if archive.exists():
        running.close()
        print(f"{archive} is there already")
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
    running.close()
    if not archive.exists():
        print(f"Java did not write {archive}", file=sys.stderr)
        return 1
    print(f"{archive}: {archive.stat().st_size >> 20} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
