"""The files of a run: JSON to keep and compare, an HdrHistogram log, JUnit XML for CI.

In JUnit a result that is not known, such as the latency of an invalid run, is an error and not a
failure: the target may be as good as ever. A target that ended is a failure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from hdrh.log import HistogramLogWriter

from wallaroo.junit import JUnitCase, JUnitSuite, Outcome, junit
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search
from wallaroo_loadgen.control.verdict import INVALID, TARGET_ENDED, show, verdict

REPORT_FORMAT = "wallaroo-load-report/1"

_MICROS_IN_MS = 1000.0


def write_files(
    runs: Sequence[Result],
    search: Search | None = None,
    as_json: Path | None = None,
    html: Path | None = None,
    hdr: Path | None = None,
    as_junit: Path | None = None,
) -> None:
    """Write the files that were asked for."""
    if as_json is not None:
        write_json(as_json, runs, search)
    if hdr is not None:
        write_hdr(hdr, runs)
    if as_junit is not None:
        cases = cases_of_runs(runs) if search is None else cases_of_search(search)
        write_junit(as_junit, "wallaroo load", cases)
    if html is not None:
        from wallaroo_loadgen.presentation.pages import write_html  # takes time to import

        write_html(html, runs, search)


def write_json(path: Path, runs: Sequence[Result], search: Search | None = None) -> None:
    """Write runs, and the search that they were, as one JSON object."""
    data = {
        "format": REPORT_FORMAT,
        "runs": [run.to_json() for run in runs],
        "searches": [] if search is None else [search.to_json()],
    }
    path.write_text(json.dumps(data) + "\n", encoding="utf-8")


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


def write_junit(path: Path, suite: str, cases: Sequence[JUnitCase]) -> None:
    """Write test cases as a JUnit file with one suite."""
    path.write_text(junit([JUnitSuite(suite, cases)]), encoding="utf-8")


def cases_of_runs(runs: Sequence[Result]) -> list[JUnitCase]:
    """Return a case for the validity of each run, and one for each of its SLOs."""
    cases = []
    for number, run in enumerate(runs, 1):
        name = f"run {number} of {len(runs)}: " if len(runs) > 1 else ""
        wrong = "; ".join([*run.invalid, *(["interrupted"] if run.partial else [])])
        outcome: Outcome = "error" if wrong else "passed"
        if verdict(run) == TARGET_ENDED:
            outcome = "failure"
        cases.append(JUnitCase(run.label, f"{name}valid", outcome, wrong or "valid"))
        for slo in run.slos:
            words = f"{slo['text']}: {show(slo['value'])}"
            if wrong:
                words, outcome = f"{words}, but {wrong}", "error"
            else:
                outcome = "passed" if slo["met"] else "failure"
            cases.append(JUnitCase(run.label, name + slo["text"], outcome, words))
    return cases


def cases_of_search(search: Search) -> list[JUnitCase]:
    """Return the one case of a search; it does not fail because a run on the way fails."""
    outcome: Outcome
    if any(result.partial for result in search.results):
        outcome, words = "error", "interrupted"
    elif search.best is not None:
        outcome, words = "passed", f"{search.best:,.0f} messages/s"
    else:
        outcome = "error" if verdict(search.results[-1]) == INVALID else "failure"
        words = str(search.points[-1]["why"])
    return [JUnitCase(search.label, "a rate is sustained", outcome, words)]
