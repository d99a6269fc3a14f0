"""Who is blamed: the rule that a fault breaks; a crash is told as a crash, one fault once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.judge.blaming import Seen, blame
from wallaroo_conformance.judge.differences import Kind
from wallaroo_conformance.judge.fact import Fact
from wallaroo_conformance.judge.law import Evidence
from wallaroo_conformance.judge.results import BROKEN
from wallaroo_conformance.killing import kill
from wallaroo_conformance.report.html import html
from wallaroo_conformance.report.showing import failure_text
from wallaroo_conformance.search.budget import Budget
from wallaroo_conformance.search.search import Search
from wallaroo_mutants.catalogue import REFERENCE_MUTANTS
from wallaroo_mutants.edges import EDGE_MUTANTS
from wallaroo_mutants.second_part import SECOND_PART_MUTANTS
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import Case
from wallaroo.trace import Trace

BUDGET = Budget(1_500, top_up=0)
MUTANTS = {mutant.name: mutant for mutant in (*REFERENCE_MUTANTS, *EDGE_MUTANTS)}
TIMED_MUTANTS = {mutant.name: mutant for mutant in SECOND_PART_MUTANTS}


@pytest.mark.parametrize(
    "name",
    [
        "stop missed at an encoder",
        "stop told elsewhere",
        "exit taken for a stop",
        "items sent while consuming",
    ],
)
def test_the_rule_that_a_fault_breaks_is_blamed_first(name: str) -> None:
    mutant = MUTANTS[name]
    report = check_engine(mutant.make(), Check(BUDGET, counterexamples=None, fail_fast=True))
    assert [failure.rule for failure in report.failures] == [mutant.rule]


def test_dead_3_an_engine_that_raises_where_the_run_ends_is_blamed_for_the_end() -> None:
    found = shown("crash", Fact.DECODED, Fact.ENTITY_BUILT, Fact.BUILDER_RAISES, Fact.EXITED)
    assert blame(found, "exit").id == "dead-3/exit"


def test_a_law_that_other_failing_cases_do_not_exercise_is_not_to_blame() -> None:
    """A merge holds sessions open in the reduced case; the other cases fail without one."""
    facts = (Fact.TIMED, Fact.FIRED, Fact.FIRED_SESSION, Fact.SESSIONS_COMBINED)
    apart, merged = shown("changed", *facts), shown("changed", *facts, Fact.SEVERAL_WAYS)
    assert blame(merged).id == "time-3/least"
    assert blame(merged, seen=Seen([apart, apart, merged])).id == "window-7/merged"
    assert blame(merged, seen=Seen([merged, merged, merged])).id == "time-3/least"


def test_what_only_the_engine_calls_late_tells_a_wrong_delay_from_a_wrong_verdict() -> None:
    """If the delay is forgotten, windows fire early too, and both cases need the delay."""
    facts = (Fact.TIMED, Fact.FIRED, Fact.DELAYED)
    late = shown("changed letters", *facts, sign="more late")
    fired_early = shown("extra windows", *facts)
    others = [fired_early, fired_early, late]
    assert blame(late).id == "window-6/early"
    assert blame(late, seen=Seen(others, reduced=[late])).id == "window-6/early"
    assert blame(late, seen=Seen(others, reduced=[fired_early])).id == "window-3/delay"


def test_a_second_fault_does_not_hide_what_a_sign_tells() -> None:
    """The other cases fail for a reason of their own; all that both share is that windows fire."""
    facts = (Fact.TIMED, Fact.FIRED, Fact.FIRED_RANGE)
    late = shown("changed letters", *facts, sign="more late")
    lost = shown("missing", *facts, Fact.SEVERAL_WAYS, sign="outputs lost")
    assert blame(late, seen=Seen([lost] * 9)).id == "window-6/early"
    assert blame(late, seen=Seen([lost] * 9, reduced=[lost])).id == "window-6/early"


def test_a_law_that_nearly_all_cases_have_kept_gives_way_to_one_that_most_break() -> None:
    """What reduced cases often have, such as several times, counts where other cases say so."""
    found = shown("changed", *(Fact.TIMED, Fact.FIRED, Fact.FIRED_RANGE, Fact.SEVERAL_ARRIVALS))
    differed = {"window-2/grid": 20, "time-1/arrival": 20}
    often = {"window-2/grid": 400, "time-1/arrival": 5}
    alike = {"window-2/grid": 10, "time-1/arrival": 5}
    assert blame(found, seen=Seen([found] * 4, often, differed)).id == "time-1/arrival"
    assert blame(found, seen=Seen([found] * 4, alike, differed)).id == "window-2/grid"
    assert blame(found, seen=Seen([found], often, differed)).id == "window-2/grid"  # too few


def test_a_law_is_not_to_blame_if_a_case_about_as_plain_fails_without_what_it_needs() -> None:
    facts = (Fact.TIMED, Fact.FIRED, Fact.FIRED_RANGE)
    merged = shown("changed", *facts, Fact.MERGED, Fact.MERGED_WITH_ITSELF, Fact.KEY_STAYED)
    alone = shown("changed", *facts, Fact.KEY_STAYED)
    open_still = shown("windows", Fact.TIMED, Fact.WINDOWS_OPEN)
    assert blame(merged).id == "graph-3/twice"
    assert blame(merged, seen=Seen(exchanged=[alone])).id == "window-2/keys"
    assert blame(merged, seen=Seen(exchanged=[open_still])).id == "graph-3/twice"  # says nothing
    plainest = shown("changed", Fact.TIMED)  # no other law is left
    assert blame(merged, seen=Seen(exchanged=[plainest])).id == "graph-3/twice"


def test_a_rule_that_reduced_cases_share_is_blamed_though_each_is_about_another_law() -> None:
    facts = (Fact.TIMED, Fact.FIRED, Fact.FIRED_RANGE)
    at_output = shown("missing", *facts, Fact.OUTPUT_RAISED)
    at_combine = shown("missing", *facts, Fact.COMBINE_RAISED, Fact.SEVERAL_WAYS)
    others = [at_output] * 9
    assert blame(at_combine, seen=Seen(others)).rule == "window-9"
    seen = Seen([shown("missing", *facts)] * 9, reduced=[at_output])
    assert blame(at_combine, seen=seen).id == "window-9/combine"


def test_what_a_window_gives_that_only_the_engine_calls_late_came_behind_the_watermarks() -> None:
    facts = (Fact.TIMED, Fact.FIRED, Fact.CHAINED)
    assert blame(shown("missing letters", *facts, sign="more late")).id == "time-4/later"
    assert blame(shown("changed", *facts)).id == "window-4/chained"


def test_a_window_that_does_not_fire_even_at_the_end_is_told_by_what_its_case_still_has() -> None:
    facts = (Fact.TIMED, Fact.FIRED, Fact.SOURCE_ENDED)
    assert blame(shown("missing windows", *facts)).id == "time-5/ended"
    combined = (*facts, Fact.FIRED_SESSION, Fact.SESSIONS_COMBINED)
    assert blame(shown("missing windows", *combined)).id == "window-7/merged"


def test_a_session_that_fires_a_record_late_is_due_as_any_window_is() -> None:
    facts = (Fact.TIMED, Fact.FIRED, Fact.FIRED_SESSION)
    assert blame(shown("missing windows", *facts)).id == "window-3/due"
    assert blame(shown("missing", *facts)).id == "window-7/sessions"


def test_letters_of_one_error_that_are_all_lost_are_no_neighbours_of_the_others() -> None:
    facts = (Fact.LETTER, Fact.LETTERS_OF_SEVERAL_ITEMS, Fact.ENCODE_LETTER)
    assert blame(shown("letters", *facts, sign="lost encode")).id == "dead-2/items"
    assert blame(shown("letters", *facts, sign="all lost")).id == "sink-1/bad"


def test_what_a_dead_letter_tells_of_a_window_is_told_from_what_others_tell() -> None:
    facts = (Fact.TIMED, Fact.FIRED, Fact.BRANCHED, Fact.TICKED, Fact.TIMED_LETTER)
    assert blame(shown("letter fields", *facts, sign="told of a window")).id == "window-9/payload"
    assert blame(shown("letter fields", *facts, sign="told")).id == "dead-1/timed"


def shown(kinds: str, *facts: Fact, sign: str = "") -> Evidence:
    """Return what a case shows; `letter fields` is one kind, else kinds stand apart."""
    found: Any = [kinds] if kinds == "letter fields" else kinds.split()
    met = {*facts, Fact.WINDOWED} if Fact.FIRED in facts else facts
    return Evidence(frozenset(met), frozenset(found), frozenset([sign] if sign else []))


class Hurried(ReferenceEngine):
    """Loses an output beside a dead letter, and names errors by another type where it has none."""

    name = "hurried"

    def run(self, case: Case) -> Trace:
        trace = super().run(case)
        if trace.dead_letters and any(trace.outputs.values()):
            outputs = {sink: lines[:-1] for sink, lines in trace.outputs.items()}
            return replace(trace, outputs=outputs)
        renamed = [replace(letter, error_type="Error") for letter in trace.dead_letters]
        return replace(trace, dead_letters=tuple(renamed))


def test_a_case_in_which_outputs_differ_does_not_come_down_to_what_a_letter_tells() -> None:
    report = check_engine(Hurried(), Check(BUDGET, counterexamples=None, fail_fast=True))
    assert [failure.rule for failure in report.failures] == ["dead-2"]


def test_window_6_a_message_called_late_is_blamed_on_lateness_or_on_the_session_that_is_open() -> (
    None
):
    facts = frozenset({Fact.TIMED, Fact.WINDOWED, Fact.FIRED})
    kinds: frozenset[Kind] = frozenset({"changed", "letters"})
    late = frozenset({"more late"})
    joining = facts | {Fact.IN_TIME_BY_SESSION}
    assert blame(Evidence(facts, kinds, late)).id == "window-6/early"
    assert blame(Evidence(joining, kinds, late)).id == "window-7/late"
    assert blame(Evidence(joining, kinds)).rule not in ("window-6", "window-7")


def test_frame_1_a_parsers_fault_is_not_one_of_several_connections() -> None:
    assert kill(MUTANTS["one frame a read"]).rules == ("frame-1",)


@pytest.mark.parametrize("name", ["None from decoder passed on", "state kept with output only"])
def test_a_fault_that_shows_without_time_is_not_blamed_on_a_timed_case(name: str) -> None:
    """The smallest case that fails is a timed one: it has one message and no plain law."""
    mutant = MUTANTS[name]
    report = check_engine(mutant.make(), Check(BUDGET, counterexamples=None, fail_fast=True))
    assert [failure.rule for failure in report.failures] == [mutant.rule]


@pytest.mark.parametrize("name", ["late within the delay", "one window too many"])
def test_of_a_fault_of_windows_the_right_one_is_blamed_first(name: str) -> None:
    mutant = TIMED_MUTANTS[name]
    report = check_engine(mutant.make(), Check(BUDGET, counterexamples=None, fail_fast=True))
    assert [failure.rule for failure in report.failures] == [mutant.rule]


class Falling(ReferenceEngine):
    """Brings the whole job down on one kind of case."""

    name = "falling"

    def run(self, case: Case) -> Trace:
        if any(not payload for _, payload in case.input_log):
            raise ConnectionError("the worker is gone")
        return super().run(case)


class Helpless(ReferenceEngine):
    """Raises where there is nothing to do, or always."""

    name = "helpless"

    def __init__(self, *, always: bool) -> None:
        self._always = always

    def run(self, case: Case) -> Trace:
        if self._always or not case.input_log:
            raise ValueError("nothing to do")
        return super().run(case)


def test_build_2_is_broken_by_what_no_input_helps_and_not_by_a_crash_without_any() -> None:
    empty = ConformanceCase()
    blamed = [Search(Helpless(always=one)).failure_of(empty) for one in (False, True)]
    assert [failure and failure.rule for failure in blamed] == ["order-2", "build-2"]


def test_a_crash_is_told_as_a_crash_with_its_traceback() -> None:
    report = check_engine(Falling(), Check(Budget(100), counterexamples=None))
    text = failure_text(report.failures[0], "falling")
    assert text.startswith("CRASHED  frame-2")
    assert "the engine raised ConnectionError: the worker is gone" in text
    assert "in run\n" in text
    assert __file__ in text
    assert __file__ in html([report])
    form: Any = report.to_json()["failures"][0]
    assert __file__ in form["traceback"]


def test_fail_fast_reports_one_failure_and_when_it_was_met() -> None:
    live: list[str] = []

    def check_live(engine: Any, rules: str, seed: int) -> Any:
        live.append(engine.name)
        return [], []

    report = check_engine(
        MUTANTS["stop told elsewhere"].make(),  # which is met soon
        Check(counterexamples=None, live=check_live, fail_fast=True),
    )
    assert len(report.failures) == 1
    assert report.exit_code == BROKEN
    assert report.cases < 1_000  # of the profile's, reductions included
    assert live == []
    assert report.first_failure is not None
    assert report.first_failure < report.seconds
