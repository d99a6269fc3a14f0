"""Counterexamples: cases on which some engine once failed, stored as files and replayed first."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wallaroo_conformance import shipped
from wallaroo_conformance.cases.case import FORMAT as CASE_FORMAT
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.reading import BadCaseError, case_from_json

FORMAT = "wallaroo-counterexample/1"

STORED = shipped("counterexamples")
"""The project's own."""

_log = logging.getLogger("wallaroo.conformance")
_NAME = re.compile(r"[a-z0-9]+([ -][a-z0-9]+)*", re.ASCII)


@dataclass(frozen=True)
class Counterexample:
    """A case that failed.

    Args:
        case: the case.
        rule: the rule it broke.
        law: the law's name.
        engine: the engine that broke it.
        options: that engine's thresholds.
        note: what it was.

    Raises:
        ValueError: the rule or the law is not made of small letters, digits, and single hyphens or
            spaces. Both become part of a file's name, and a stored file comes from anywhere.
    """

    case: ConformanceCase
    rule: str = ""
    law: str = ""
    engine: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def __post_init__(self) -> None:
        for what, name in (("rule", self.rule), ("law", self.law)):
            if name and not _NAME.fullmatch(name):
                expected = "small letters, digits, and single hyphens or spaces between them"
                raise ValueError(f"a {what}'s name is made of {expected}, not {name!r}")

    @property
    def file_name(self) -> str:
        """A name for its file: rule, law, and a hash of the case."""
        digest = hashlib.sha256(self.case.canonical_json().encode()).hexdigest()[:10]
        return f"{self.rule}-{self.law}-{digest}.json".replace(" ", "-").lstrip("-")

    def store(self, directory: Path) -> Path:
        """Write it to a file in `directory`, which is made if it is missing; return the path."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / self.file_name
        own = {**vars(self), "case": self.case.to_json(), "options": dict(self.options)}
        form = {"format": FORMAT, **own}
        path.write_text(json.dumps(form, indent=1, sort_keys=True) + "\n", encoding="ascii")
        return path


def read_counterexample(path: Path) -> Counterexample:
    """Return what is stored in a file: a counterexample, or a case alone.

    Raises:
        BadCaseError: it holds neither.
        OSError: it cannot be read.
    """
    try:
        form = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadCaseError(f"{path}: not JSON: {error}") from error
    if not isinstance(form, dict) or form.get("format") not in (FORMAT, CASE_FORMAT):
        raise BadCaseError(f"{path}: neither {FORMAT} nor {CASE_FORMAT}")
    if form["format"] != FORMAT:
        return Counterexample(case_from_json(form))
    try:
        return Counterexample(
            case_from_json(form["case"]),
            rule=str(form["rule"]),
            law=str(form["law"]),
            engine=str(form["engine"]),
            options=dict(form["options"]),
            note=str(form["note"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadCaseError(f"{path}: {error}") from error


def stored(directory: Path = STORED) -> Iterator[Counterexample]:
    """Yield the counterexamples in a directory, by file name; none if there is no directory.

    A file that cannot be read is logged, and left out.
    """
    for path in sorted(directory.glob("*.json")):
        try:
            yield read_counterexample(path)
        except (BadCaseError, OSError) as error:
            _log.warning("passed over: %s", error)
