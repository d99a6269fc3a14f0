"""What a check found, rule by rule.

The JSON form begins with a header and ends with a footer that repeats what must be there, so that a
truncated or empty report can be told from a pass.
"""

from __future__ import annotations

import fnmatch
import json
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from wallaroo.engine import Engine
from wallaroo.trace import Trace
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.judge.differences import Crash, Result
from wallaroo_conformance.judge.law import STATUSES, Law, LawResult, Status

FORMAT = "wallaroo-report/1"

KEPT, BROKEN, INCOMPLETE = 0, 1, 2


@dataclass(frozen=True)
class Failure:
    """A case on which an engine is wrong, as small as it gets.

    Which of the rules it breaks that the case exercises is not known. So a failure names all of
    them, the most particular first, and is filed under that one.

    Args:
        laws: of each of these rules, the law that the case has met. Where there is no case, it is
            known which law is broken.
        case: the reduced case; `None` where there is none, for live servers.
        expected: what it had to give.
        actual: what the engine gave instead.
        text: what happened, where there is no trace to compare.
        may_be_same: it was found after another failure and may have the same cause.
        alone: whether it also fails in a job of its own; `False`: cases of a job are not isolated.
        cut_short: the check ended before the case was as small as it gets.
        stored: the file it was stored in, `None` if it was not.
        judged_by: what says what it had to give: the reference, or of the reference the definition.
    """

    laws: tuple[Law, ...]
    case: ConformanceCase | None
    expected: Trace | None = None
    actual: Result | None = None
    text: str = ""
    may_be_same: bool = False
    alone: bool = True
    cut_short: bool = False
    stored: str | None = None
    judged_by: str = "reference"

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that the case exercises, the most particular first."""
        return tuple([law.rule for law in self.laws])

    @property
    def rule(self) -> str:
        """The rule that it is filed under."""
        return self.laws[0].rule

    @property
    def law(self) -> str:
        """The name of the law that it is filed under."""
        return self.laws[0].name

    @property
    def says(self) -> str:
        """What must hold by that law."""
        return self.laws[0].says

    def filed(self, rules: str) -> Failure:
        """Return it filed under the first of its rules that fits a pattern, if there is one."""
        laws = sorted(self.laws, key=lambda law: not fits(law.rule, rules))
        return replace(self, laws=tuple(laws))

    @property
    def crash(self) -> Crash | None:
        """What the engine raised where it gave no trace."""
        actual = self.actual
        return actual if isinstance(actual, Crash) and actual.traceback else None

    def to_json(self) -> dict[str, Any]:
        """Return the failure as JSON."""
        actual = self.actual
        return {
            "rule": self.rule,
            "law": self.law,
            "says": self.says,
            "rules": list(self.rules),
            "case": None if self.case is None else self.case.to_json(),
            "expected": None if self.expected is None else self.expected.to_json(),
            "actual": actual.to_json() if isinstance(actual, Trace) else None,
            "crash": actual.error if isinstance(actual, Crash) else None,
            "traceback": actual.traceback if isinstance(actual, Crash) else None,
            "may be the same": self.may_be_same,
            "text": self.text,
            "alone": self.alone,
            "cut short": self.cut_short,
            "stored": self.stored,
            "judged by": self.judged_by,
        }


@dataclass(frozen=True)
class Report:
    """What a check of one engine found.

    Args:
        engine: its name.
        profile: the budget it was checked with.
        seed: of the generation.
        cases: runs of cases: of those generated, and of reductions.
        generated: cases generated for it or stored; those beyond its capabilities are not run.
        stored: of these, cases that came from a store; they come on top of those asked for.
        supported: of all, the ones it was given.
        asked: cases asked for; `None`: as many as the time allowed.
        option: how a command line names the engine, where its name does not.
        date: the day of the check, as in ``2026-11-22``.
        seconds: how long it took.
        first_failure: seconds to the first case that failed; `None`: none did.
        laws: every law that was asked for, in order.
        failures: the rules broken, each at its smallest.
        problems: what kept the check from being complete; empty: nothing did.
        versions: of what took part.
    """

    engine: str
    profile: str
    seed: int
    cases: int
    generated: int
    seconds: float
    laws: tuple[LawResult, ...]
    failures: tuple[Failure, ...] = ()
    problems: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    first_failure: float | None = None
    supported: int = 0
    stored: int = 0
    asked: int | None = None
    option: str = ""
    date: str = ""

    @property
    def exit_code(self) -> int:
        """0: all rules kept and exercised; 1: a rule broken; 2: incomplete."""
        if self.failures:
            return BROKEN
        unmet = any(law.status == "not exercised" for law in self.laws)
        return INCOMPLETE if self.problems or unmet or not self.laws or not self.cases else KEPT

    @property
    def rules(self) -> dict[str, Status]:
        """The status of each rule: the one among its laws' that needs attention most."""
        rules: dict[str, list[Status]] = {}
        for law in self.laws:
            rules.setdefault(law.rule, []).append(law.status)
        return {rule: min(found, key=STATUSES.index) for rule, found in sorted(rules.items())}

    def exercised(self, rule: str) -> int:
        """Return the largest number of cases that exercised one law of `rule`."""
        return max((law.exercised for law in self.laws if law.rule == rule), default=0)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values, header first, footer last."""
        return {
            "format": FORMAT,
            "engine": self.engine,
            "profile": self.profile,
            "seed": self.seed,
            "date": self.date,
            "seconds": round(self.seconds, 3),
            "first failure": self.first_failure and round(self.first_failure, 3),
            "versions": dict(self.versions),
            "rules": self.rules,
            "laws": [vars(law) for law in self.laws],
            "failures": [failure.to_json() for failure in self.failures],
            "problems": list(self.problems),
            "footer": {
                "laws": len(self.laws),
                "failures": len(self.failures),
                "cases": self.cases,
                "generated": self.generated,
                "stored": self.stored,
                "supported": self.supported,
                "asked": self.asked,
                "exit": self.exit_code,
            },
        }


def reports_to_json(reports: Sequence[Report]) -> str:
    """Return reports as JSON text."""
    form = {
        "format": FORMAT,
        "reports": [report.to_json() for report in reports],
        "footer": {"reports": len(reports), "exit": worst(reports)},
    }
    return json.dumps(form, indent=1) + "\n"


def worst(reports: Sequence[Report]) -> int:
    """Return the exit code for several reports: broken before incomplete before kept."""
    codes = {report.exit_code for report in reports} or {INCOMPLETE}
    return next(code for code in (BROKEN, INCOMPLETE, KEPT) if code in codes)


def fits(rule: str, pattern: str) -> bool:
    """Whether a rule's id fits one of several shell patterns, separated by commas."""
    return any(fnmatch.fnmatchcase(rule, one.strip()) for one in pattern.split(","))


def versions(engine: Engine) -> dict[str, str]:
    """Return the versions of the parts of a check, the engine's among them if it has one."""
    found = {"python": platform.python_version(), "platform": sys.platform}
    if version_of_engine := getattr(engine, "version", ""):
        found[engine.name] = str(version_of_engine)
    packages = {"wallaroo": "wallaroo-streams", "hypothesis": "hypothesis", "pyspark": "pyspark"}
    for package, distribution in packages.items():
        try:
            found[package] = version(distribution)
        except PackageNotFoundError:
            continue
    return found
