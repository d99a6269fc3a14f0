"""The files a run leaves: JSON to compare and to keep, an HdrHistogram log for other tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hdrh.log import HistogramLogWriter

from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search

REPORT_FORMAT = "wallaroo-load-report/1"

_MICROS_IN_MS = 1000.0


def report_json(runs: Sequence[Result], searches: Sequence[Search] = ()) -> dict[str, Any]:
    """Return runs and searches as one JSON object; a search's runs are among the runs."""
    return {
        "format": REPORT_FORMAT,
        "runs": [run.to_json() for run in runs],
        "searches": [found.to_json() for found in searches],
    }


def write_json(path: Path, runs: Sequence[Result], searches: Sequence[Search] = ()) -> None:
    """Write `report_json` to a file."""
    path.write_text(json.dumps(report_json(runs, searches)) + "\n", encoding="utf-8")


def read_runs(path: Path) -> list[Result]:
    """Return the runs of a file that `write_json` wrote.

    Raises:
        ValueError: when it is something else; the message names the file.
        OSError: when it cannot be read.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or data.get("format") != REPORT_FORMAT:
            raise ValueError(f"not written by wallaroo load --json (no {REPORT_FORMAT})")
        return [Result.from_json(run) for run in data["runs"]]
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: not JSON: {error}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path}: {error}") from None


def write_hdr(path: Path, runs: Sequence[Result]) -> None:
    """Write each run's latencies, in µs, as an interval of an HdrHistogram log."""
    with path.open("w", encoding="ascii") as file:
        writer = HistogramLogWriter(file)
        writer.output_comment("[Latency from the intended send time; values in microseconds]")
        writer.output_log_format_version()
        writer.output_legend()
        start = 0.0
        for run in runs:
            end = start + float(run.config["duration"])
            writer.output_interval_histogram(
                run.histogram("latency"), start, end, max_value_unit_ratio=_MICROS_IN_MS
            )
            start = end
