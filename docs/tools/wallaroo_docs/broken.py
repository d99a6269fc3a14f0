"""Runs the mutants of a rule on the rule's own examples: what a broken engine would print.

A mutant is the reference engine with one fault (`wallaroo_mutants`). The texts are computed while
the site is built. They stand behind an example, folded, if the fault changes its results.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from wallaroo_conformance.killing import Mutant
from wallaroo_mutants.catalogue import mutants

from wallaroo.engine import Case
from wallaroo.readable import NOTHING
from wallaroo.testing import Session
from wallaroo.testing.input import input_log_of
from wallaroo.testing.results import result_of
from wallaroo_docs.page_examples import PageExample, Run
from wallaroo_docs.performing import execute, loaded
from wallaroo_docs.show import shown

MOST = 2
"""How many faults are shown behind one example."""

_APPLICATION = "broken_application"
_NOT_SHOWN = {
    "hash by PYTHONHASHSEED",  # it prints something else in each process
}


@dataclass(frozen=True)
class Fault:
    """What an engine with a fault prints for an example.

    Args:
        mutant: the engine.
        number: which of the example's inputs it was given.
        sections: what it says, by title, where that differs from the text.
    """

    mutant: Mutant
    number: int
    sections: dict[str, str]


def faults(example: PageExample) -> list[Fault]:
    """Return what mutants of an example's rule print, if it is not what the text says.

    Faults that change the outputs come first, and at most `MOST` are returned.
    """
    found: list[Fault] = []
    seen: list[dict[str, str]] = []
    rule = example.name.rpartition(".")[0]
    for mutant in _mutants() if example.kind == "application" else ():
        if mutant.rule == rule and (fault := _fault(example, mutant)):
            if fault.sections not in seen:
                found.append(fault)
            seen.append(fault.sections)
    return sorted(found, key=lambda fault: "outputs" not in fault.sections)[:MOST]


def folded(example: PageExample) -> str:
    """Return Markdown that shows what broken engines print, folded; ``""``: nothing else."""
    found = faults(example)
    if not found:
        return ""
    lines = [
        '<details class="broken" markdown="1">',
        "<summary>What a broken engine would print</summary>",
    ]
    for fault in found:
        mutant = fault.mutant
        given = f"given input {fault.number + 1}, " if len(example.runs) > 1 else ""
        lines += ["", f"Fault: **{mutant.name}** (in code: {mutant.says}); {given}it prints:"]
        expected = example.runs[fault.number].expected
        for title, text in fault.sections.items():
            lines += ["", *_block(title, text, expected.get(title, ""))]
    return "\n".join([*lines, "", "</details>"])


@cache
def _mutants() -> tuple[Mutant, ...]:
    """Return the mutants that run cases in `isolated` mode, as the examples are run."""
    return tuple(
        mutant
        for mutant in mutants()
        if mutant.rule
        and mutant.home == "reference"
        and mutant.shown_by == "cases"
        and mutant.name not in _NOT_SHOWN
    )


def _fault(example: PageExample, mutant: Mutant) -> Fault | None:
    for number, run in enumerate(example.runs):
        said = printed(run, mutant)
        different = {title: text for title, text in said.items() if text != run.expected[title]}
        if different:
            return Fault(mutant, number, different)
    return None


def printed(run: Run, mutant: Mutant) -> dict[str, str]:
    """Return what a mutant prints for an example, by the titles that the text shows.

    An engine that fails itself prints nothing.
    """
    case = _case(run)
    try:
        trace = mutant.make().run(case)
    except Exception:  # noqa: BLE001 - whatever a broken engine raises
        return {}
    result = result_of(case.application, trace)
    return {title: shown(title, result, partitions=case.partitions) for title in run.expected}


class _Kept(Session):
    """A session whose records can be run again, on another engine."""

    def case(self) -> Case:
        return Case(self._application, list(self._log), **self._how)


def _case(run: Run) -> Case:
    """Return what an example runs. Its module is a new one: a mutant may have altered the last."""
    module: ModuleType = loaded(_APPLICATION, run.source).module
    made: list[Case] = []
    sessions: list[_Kept] = []

    def kept(application: Any, payloads: Any = (), *, end: bool = True, **options: Any) -> None:
        log = input_log_of(application, payloads, end=end)
        made.append(Case(application, log, isolation="isolated", **options))

    def session(application: Any, **options: Any) -> Session:
        sessions.append(_Kept(application, **options))
        return sessions[-1]

    execute(run.input, {**vars(module), "run": kept, "Session": session}, file="input.py")
    [case] = [*made, *(one.case() for one in sessions)]
    return case


def _block(title: str, text: str, expected: str) -> Iterator[str]:
    """Yield a block in which lines that the text has not are marked, and how many it lacks."""
    lines, right = text.splitlines(), expected.splitlines()
    other: list[int] = []
    missing = 0
    for what, start, end, first, last in difflib.SequenceMatcher(
        a=right, b=lines, autojunk=False
    ).get_opcodes():
        if what != "equal":
            other += range(first + 1, last + 1)
            missing += max(0, (end - start) - (last - first))
    marks = f' hl_lines="{" ".join(map(str, other))}"' if other else ""
    yield f'```text title="{title}"{marks}'
    yield from lines
    yield "```"
    if missing and lines != [NOTHING]:
        yield ""
        yield f"{missing} {'line is' if missing == 1 else 'lines are'} missing."
