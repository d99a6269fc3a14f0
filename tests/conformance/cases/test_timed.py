"""Timed cases: as JSON and back, as readable Python, reduced, and against a plain model."""

from __future__ import annotations

import json
import random
import types
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from wallaroo_conformance.cases.either import engine_case, from_json, module_text, size
from wallaroo_conformance.cases.generating import generate_timed
from wallaroo_conformance.cases.operators import Trait
from wallaroo_conformance.cases.reading import BadCaseError
from wallaroo_conformance.cases.timed.aggregations import AGGREGATIONS
from wallaroo_conformance.cases.timed.case import (
    Entry,
    SourceSpec,
    TimedCase,
    TimedStep,
    WindowSpec,
)
from wallaroo_conformance.cases.timed.marks import MARKS
from wallaroo_conformance.cases.timed.operators import (
    EVENT_TIMES,
    KEYS,
    OPERATORS,
    STATEFUL,
    STATELESS,
    own_moment,
)
from wallaroo_conformance.cases.timed.reducing import timed_reductions
from wallaroo_conformance.cases.timed.tour import timed_tour
from wallaroo_conformance.judge.timed_observing import observe_timed
from wallaroo_conformance.judge.timed_relations import TIMED_RELATIONS

import wallaroo.testing
from wallaroo.engine import load_engine
from wallaroo.times import event_time_from
from wallaroo.trace import Trace

REFERENCE = load_engine("reference")
CASES = generate_timed(300, 7)


def test_the_first_marked_message_and_others_raise_what_engines_catch() -> None:
    case = TimedCase(
        steps=(TimedStep("texts", window=WindowSpec()),),
        inputs=tuple(Entry(payload=f"a 0 {text}".encode()) for text in ("u", "1u", "2u", "3u")),
    )
    raised = [letter.error_type for letter in REFERENCE.run(engine_case(case)).dead_letters]
    assert raised == ["ValueError", "TypeError", "StopIteration", "KeyError"]


def test_dead_3_a_mark_with_a_q_behind_it_ends_the_run() -> None:
    case = TimedCase(
        steps=(TimedStep("texts", window=WindowSpec()),),
        inputs=tuple(Entry(payload=f"a 0 {text}".encode()) for text in ("m", "uQ", "m")),
    )
    ended = REFERENCE.run(engine_case(case)).ended
    assert ended is not None
    assert (ended.kind, ended.lineage, ended.error_type) == ("exit", (1,), "SystemExit")


def test_a_timed_case_survives_its_json_form() -> None:
    for case in CASES:
        assert from_json(json.loads(case.canonical_json())) == case


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "wallaroo-timed-case/9"}, "format"),
        ({"sources": []}, "0 sources"),
        ({"inputs": [["frame", 4, 0, "a 0 m"]]}, "source 4"),
        ({"inputs": [["noise", 0, 0, ""]]}, "'noise'"),
        ({"inputs": [["frame", 0, -1, "a 0 m"]]}, "-1"),
        ({"batches": [0]}, "less than 1"),
        ({"form": "letter"}, "'letter'"),
        (
            {"steps": [{"operator": "texts", "window": {"kind": "range", "size": -1}}]},
            "cannot be built",
        ),
        ({"steps": [{"operator": "eval", "window": None}]}, "no case"),
    ],
)
def test_what_is_no_timed_case_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(BadCaseError, match=says):
        from_json({**TimedCase().to_json(), **change})


def test_a_readable_timed_case_gives_the_same_trace() -> None:
    for case in CASES[:60]:
        if case.codec:
            continue  # its module has one, `exec` here has not
        module = types.ModuleType("readable")
        exec(module_text(case, "a case"), module.__dict__)
        given = wallaroo.testing.run(
            module.application_setup([]), module.INPUT, end=False, on_error=case.on_error
        )
        trace = REFERENCE.run(engine_case(case))
        assert {sink: tuple(lines) for sink, lines in given.outputs.items()} == trace.outputs
        assert len(given.dead_letters) == len(trace.dead_letters)


def test_the_tour_leaves_out_no_operator_of_windows_keys_and_states_and_no_mark() -> None:
    cases = timed_tour("any")
    steps = [step for case in cases for step in case.steps]
    assert {step.operator for step in steps} >= {*AGGREGATIONS, *KEYS, *STATEFUL}
    texts = "".join([entry.payload.decode() for case in cases for entry in case.inputs])
    assert set(MARKS) <= set(texts)
    assert {source.event_time for case in cases for source in case.sources} >= {None, "own_moment"}
    assert {"merge", *STATELESS} <= {step.operator for step in steps}
    assert {case.on_error for case in cases} == {"skip", "stop"}
    assert "uQ" in texts  # update exits
    behind = {(one.operator, two.operator) for case in cases for one, two in pairwise(case.steps)}
    assert {("merge", "collect"), ("texts", "collect"), ("by_pair", "merge")} <= behind
    tame = timed_tour("tame")
    assert {case.isolation for case in tame} == {"trusting"}
    assert not any(case.alters for case in tame)


def test_every_operator_and_mark_is_generated() -> None:
    assert {step.operator for case in CASES for step in case.steps} == set(OPERATORS)
    texts = b"".join(entry.payload for case in CASES for entry in case.inputs).decode()
    assert [mark for mark in MARKS if mark not in texts] == []


def test_an_exit_is_reduced_to_a_stop() -> None:
    exits = TimedCase(inputs=(Entry(payload=b"a 0 wQ"),))
    stops = TimedCase(inputs=(Entry(payload=b"a 0 w"),), on_error="stop")
    assert stops in timed_reductions(exits)


def test_reductions_are_simpler_and_can_be_run() -> None:
    for case in CASES[:8]:
        for simpler in timed_reductions(case):
            assert size(simpler) < size(case)
            assert from_json(json.loads(simpler.canonical_json())) == simpler
            REFERENCE.run(engine_case(simpler))


def test_what_is_behind_a_merge_is_there_for_each_side_when_it_is_undone() -> None:
    by_letter, by_pair, state = TimedStep("by_letter"), TimedStep("by_pair"), TimedStep("remember")
    merged = TimedCase(steps=(by_letter, by_pair, TimedStep("merge", other=1), state))
    apart = (by_letter, by_pair, state, replace(state, origin=2))
    assert replace(merged, steps=apart) in timed_reductions(merged)


def test_two_sources_are_reduced_to_one_that_has_the_records_of_both() -> None:
    merge = TimedStep("merge", other=1)
    generator = SourceSpec(generator=True)
    inputs = (Entry(source=1), Entry(at=3), Entry("failed", 1), Entry("tick", 1))
    two = TimedCase((SourceSpec(), generator), (merge, TimedStep("remember")), inputs)
    one = TimedCase(
        steps=(TimedStep("remember"),),
        inputs=(Entry(), Entry(at=3), Entry("tick", payload=b"a 0 m")),
    )
    assert one in timed_reductions(two)


def test_what_only_a_generator_can_give_is_not_left_for_another_source() -> None:
    case = TimedCase((SourceSpec(generator=True),), inputs=(Entry(), Entry("failed")))
    of_frames = [one for one in timed_reductions(case) if not one.sources[0].generator]
    assert of_frames
    assert not any(entry.what == "failed" for one in of_frames for entry in one.inputs)


def test_a_moment_is_reduced_to_the_same_time_as_a_number() -> None:
    case = TimedCase((SourceSpec("own_moment"),), inputs=(Entry(payload=b"a 20 m"),))
    moment = event_time_from(own_moment(["a", 20, "m"]))
    number = replace(
        case, sources=(SourceSpec(),), inputs=(Entry(payload=f"a {moment} m".encode()),)
    )
    assert number in timed_reductions(case)


def test_the_reference_keeps_every_relation_and_agrees_with_the_model() -> None:
    rng = random.Random(3)
    met: set[str] = set()
    for observation in observe_timed(REFERENCE, CASES):
        for relation in TIMED_RELATIONS:
            variant = relation.variant(observation, rng)
            if variant is None:
                continue
            assert isinstance(variant.case, TimedCase)
            # As it comes from an engine in another process.
            second = Trace.from_json(REFERENCE.run(engine_case(variant.case)).to_json())
            assert variant.agree(observation.trace, second), (relation.id, observation.case)
            met.add(relation.id)
    assert met == {relation.id for relation in TIMED_RELATIONS}


@pytest.mark.parametrize(("delay", "compared"), [(0, False), (7, False), (8, True)])
def test_sessions_are_compared_in_another_order_only_if_they_wait_for_every_message(
    delay: int, compared: bool
) -> None:
    """A message may be in time although a session that it would have joined has fired."""
    case = TimedCase(
        steps=(TimedStep("texts", window=WindowSpec("session", 9, delay=delay)),),
        inputs=tuple(Entry(payload=f"a {time} {time}".encode()) for time in (1, 12, 4)),
    )
    [relation] = [one for one in TIMED_RELATIONS if one.id == "window-6/within the delay"]
    [observation] = observe_timed(REFERENCE, [case])
    assert not observation.trace.dead_letters
    assert (relation.variant(observation, random.Random(0)) is not None) == compared


def test_a_component_that_alters_is_seen_wherever_a_case_has_it() -> None:
    [key] = [name for name in KEYS if KEYS.has(name, Trait.FINDING)]
    [time] = [name for name in EVENT_TIMES if EVENT_TIMES.has(name, Trait.FINDING)]
    assert not TimedCase(steps=(TimedStep("remember", route="by_letter"),)).alters
    assert TimedCase(steps=(TimedStep("remember", route=key),)).alters
    assert TimedCase(steps=(TimedStep(key),)).alters
    assert TimedCase(sources=(SourceSpec(time),)).alters
