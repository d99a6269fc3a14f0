"""A store: a folder with what earlier checks have found; the next check runs it first.

Counterexamples are files of their own. The *corpus* is one file of cases that met rare pairs of
facts, so that a check does not look for them anew: a line with the format, then a line a case.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.counterexamples import Counterexample, read_counterexample
from wallaroo_conformance.cases.reading import BadCaseError, case_from_json

FORMAT = "wallaroo-corpus/1"

MOST_CASES = 256
"""Cases that a corpus holds at most: some 100 KB."""

_NAME = "corpus.jsonl"
_log = logging.getLogger("wallaroo.conformance")


def readable_counterexamples(directory: Path) -> Iterator[Counterexample]:
    """Yield the counterexamples in a store; a file that cannot be read is logged, and left out."""
    for path in sorted(directory.glob("*.json")):
        try:
            yield read_counterexample(path)
        except (BadCaseError, OSError) as error:
            _log.warning("passed over: %s", error)


def read_corpus(directory: Path) -> list[ConformanceCase]:
    """Return the cases of a store's corpus; one log line says what cannot be read.

    None where there is no corpus, or one of another format.
    """
    path = directory / _NAME
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        _log.warning("%s is passed over: %s", path, error)
        return []
    try:
        found = json.loads(lines[0])["format"]
    except (IndexError, KeyError, TypeError, ValueError):
        found = None
    if found != FORMAT:
        _log.warning("%s is passed over: its first line does not say %s", path, FORMAT)
        return []
    cases: list[ConformanceCase] = []
    bad: list[int] = []
    for number, line in enumerate(lines[1:], 2):
        try:
            cases.append(case_from_json(json.loads(line)))
        except ValueError:  # not JSON, or not a case
            bad.append(number)
    if bad:
        _log.warning(
            "%s: %d lines are not cases and are passed over, first %d", path, len(bad), bad[0]
        )
    return cases


def write_corpus(directory: Path, cases: Iterable[ConformanceCase]) -> Path:
    """Write at most `MOST_CASES` cases, the first ones, as a store's corpus; return its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / _NAME
    part = directory / f"{_NAME}.{os.getpid()}.part"
    lines = [json.dumps({"format": FORMAT})]
    lines += [case.canonical_json() for case in islice(cases, MOST_CASES)]
    part.write_text("\n".join(lines) + "\n", encoding="ascii")
    part.replace(path)  # whole, or as it was
    return path
