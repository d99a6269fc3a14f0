"""A history: files of runs in the order in which they were made, and the changes between them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from wallaroo_loadgen.comparison.comparing import ERROR, SETTINGS, Bound, Runs, percent
from wallaroo_loadgen.comparison.history import Change, changes, fewest
from wallaroo_loadgen.comparison.ratio import Verdict
from wallaroo_loadgen.control.metric import Metric
from wallaroo_loadgen.control.verdict import show


@dataclass(frozen=True)
class Line:
    """One metric over time.

    Attributes:
        values: geometric means of the files' runs, in µs.
        changes: where their level changes.
        bound: by how much the newest level may be above the one before it.
    """

    metric: Metric
    bound: float
    values: list[float]
    changes: list[Change]

    @property
    def worse(self) -> bool:
        """Whether the newest level is above the one before it by more than the bound."""
        return bool(self.changes) and self.changes[-1].ratio > 1 + self.bound


@dataclass(frozen=True)
class Series:
    """Files of runs with the same settings on machines of the same kind, oldest first.

    Attributes:
        label: what the runs have in common.
        fewest: files from which a change can be found.
    """

    label: str
    files: list[Runs]
    lines: list[Line]
    fewest: int

    @property
    def verdict(self) -> Verdict:
        """The verdict of all metrics together."""
        return Verdict.of([self.verdict_of(line) for line in self.lines])

    def verdict_of(self, line: Line) -> Verdict:
        """Worse if its newest level is; inconclusive if too few files could show any change."""
        if len(self.files) < self.fewest:
            return Verdict.INCONCLUSIVE
        return Verdict.WORSE if line.worse else Verdict.NOT_WORSE

    def words(self, line: Line) -> list[str]:
        """Return what was found of a metric, a sentence for each change."""
        if len(self.files) < self.fewest:
            return [f"{line.metric.name}: cannot tell; {self.fewest} files or more are needed"]
        if not line.changes:
            return [f"{line.metric.name}: no change"]
        found = []
        for change in line.changes:
            last = change is line.changes[-1]
            flag = f": worse by more than {percent(line.bound)}" if last and line.worse else ""
            found.append(
                f"{line.metric.name} × {change.ratio:.2f} "  # noqa: RUF001 - multiplication
                f"({show(change.before)} to {show(change.after)}) from "
                f"{self.files[change.index].name} on, p = {change.p:.2g}{flag}"
            )
        return found


def series(files: Sequence[Runs], bounds: Sequence[Bound], *, seed: int) -> list[Series]:
    """Return histories of files that can be compared, each with its changes.

    The 5 % for finding a change where there is none are divided among the metrics of a history.

    Args:
        files: in any order; those of other settings or another processor make another history.
        bounds: the metrics to follow.
        seed: of permutations.
    """
    groups: dict[str, list[Runs]] = {}
    for runs in sorted(files, key=lambda runs: (runs.results[0].started or "", runs.name)):
        groups.setdefault(_kind(runs), []).append(runs)
    level = ERROR / len(bounds)
    found = []
    for group in groups.values():
        lines = []
        for bound in bounds:
            values = [runs.middle(bound.metric) for runs in group]
            changed = changes(values, level=level, seed=seed)
            lines.append(Line(bound.metric, bound.increase, values, changed))
        found.append(Series(_label(group[-1]), group, lines, fewest(level)))
    return found


def _kind(runs: Runs) -> str:
    """Return what must be equal for runs to be in one history."""
    run = runs.results[0]
    settings = [run.config[name] for name in SETTINGS]
    machine = [run.machine.get(name) for name in ("processor", "processors")]
    return json.dumps([settings, machine], sort_keys=True)


def _label(runs: Runs) -> str:
    run = runs.results[0]
    machine = f"{run.machine.get('processors', '?')} × {run.machine.get('processor', 'unknown')}"  # noqa: RUF001 - multiplication
    return f"{run.label}, {run.config['schedule']}, on {machine}"
