"""Writes the archive of Spark's classes (`jvm.process`): ``python -m wallaroo_spark.archive``.

It starts Spark once and runs a small application, so that Java has loaded what Spark needs for one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark

import wallaroo
from wallaroo.engine import Case
from wallaroo_spark.bounded.runs import run_cases
from wallaroo_spark.jvm.java import find_java, options_for
from wallaroo_spark.jvm.process import archive_for
from wallaroo_spark.jvm.session import Session
from wallaroo_spark.jvm.settings import SessionSettings


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> str:
    """Return the text."""
    return payload.decode()


@wallaroo.state_computation(name="count")
def count(text: str, counts: dict[str, int]) -> tuple[str, bool]:
    """Count."""
    counts[text] = counts.get(text, 0) + 1
    return text, True


@wallaroo.partition
def whole(text: str) -> str:
    """Return the text as its own key."""
    return text


@wallaroo.encoder
def encode(text: str) -> str:
    """Return a line."""
    return text + "\n"


def main() -> int:
    """Make the archive for the default settings, if there is none."""
    settings = SessionSettings()
    archive = archive_for(
        find_java(), Path(pyspark.__file__).parent / "jars", options_for(settings)
    )
    if archive.exists():
        print(f"{archive} is there already")
        return 0
    running = Session(settings, makes_archive=True)
    application = (
        wallaroo.ApplicationBuilder("archive")
        .new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
        .to_state_partition(count, dict, "counts", whole)
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 1, encode))
        .build()
    )
    case = Case(application, [("p", b"a"), ("p", b"b")], batches=(1,))
    try:
        run_cases(running, [case, Case(application, case.input_log)])
    except BaseException:
        running.kill()  # or the archive would have half the classes
        raise
    finally:
        running.close()
    if not archive.exists():
        print(f"Java did not write {archive}", file=sys.stderr)
        return 1
    print(f"{archive}: {archive.stat().st_size >> 20} MB")
    return 0


if __name__ == "__main__":
    # Under its name, so that workers can import the functions.
    from wallaroo_spark import archive  # noqa: PLW0406 - a script is another module

    raise SystemExit(archive.main())
