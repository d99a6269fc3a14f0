"""Reductions: each is simpler, is a case, and keeps what a failure may need."""

from __future__ import annotations

from dataclasses import replace

from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.case import ConformanceCase, Input, PartitionSpec, SinkSpec
from wallaroo_conformance.cases.composing import TRIPLES_SOURCE, graph, record, row, step, together
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.cases.reading import case_from_json
from wallaroo_conformance.cases.reducing import reductions, size

from wallaroo.engine import load_engine

REFERENCE = load_engine("reference")
LETTER, PAIR, STATE, MERGE = (
    step("by_letter"),
    step("by_pair"),
    step("remember"),
    step("merge", 0, 1),
)
VALUES = replace(TRIPLES_SOURCE, generator=True)


def test_reductions_are_simpler_and_can_be_run() -> None:
    for number, case in enumerate(generate(28, 7)):
        simpler = reductions(case)
        assert len(set(simpler)) == len(simpler)
        sizes = [size(one) for one in simpler]
        assert sizes == sorted(sizes)
        assert not sizes or sizes[-1] < size(case)
        for one in simpler[number % 7 :: 7]:
            assert case_from_json(one.to_json()) == one
            REFERENCE.run(engine_case(one))


def has_secret(case: ConformanceCase) -> bool:
    """Whether a message can come to a step that alters its state in secret."""
    sources = {entry.source for entry in case.inputs if entry.what == "frame"}
    secret = [one.id for one in case.steps if one.operator == "note_in_secret"]
    return any(case.feeding()[step_id] & sources for step_id in secret)


def test_a_case_is_reduced_to_what_matters() -> None:
    case = next(filter(has_secret, generate(1_000, 1, simple=1.0)))
    while simpler := [one for one in reductions(case) if has_secret(one)]:
        case = simpler[0]
    assert case == row(step("note_in_secret"), inputs=(Input(payload=b"a"),))


def test_fewer_records_may_be_enough_for_small_thresholds() -> None:
    case = row(step("remember"), inputs=(Input(payload=b"a"),) * 8)
    assert replace(case, inputs=case.inputs[:4], small=True) in reductions(case)


def test_an_exit_is_reduced_to_a_stop() -> None:
    exits = graph(inputs=(record(0, "a 0 wQ"),))
    assert replace(exits, inputs=(record(0, "a 0 w"),), on_error="stop") in reductions(exits)


def test_a_step_that_is_left_out_hands_its_origin_to_what_is_behind_it() -> None:
    case = graph(step("drop"), STATE, step("doubled", 1))
    left = {
        one.sinks: one for one in reductions(case) if one.steps == (case.steps[0], case.steps[2])
    }
    assert list(left) == [(SinkSpec(3, "triple_line"), SinkSpec(5, "triple_line"))]


def test_a_source_goes_with_all_that_it_alone_leads_to() -> None:
    rows = [row(step("count")), row(step("shout"), encoders=("line", "described"))]
    both = together(rows, (Input(0, b"a"), Input(1, b"b")))
    [only] = [one for one in reductions(both) if one.sources == (both.sources[1],)]
    assert ([one.operator for one in only.steps], only.inputs) == (["shout"], (Input(1, b"b"),))
    sides = graph(MERGE, step("drop", 1), step("merge", 0, 1), sources=(TRIPLES_SOURCE,) * 2)
    left = [one for one in reductions(sides) if one.sources == (sides.sources[0],)]
    assert all(case_from_json(one.to_json()) == one for one in left)


def test_a_partition_that_goes_leaves_its_steps_to_another() -> None:
    partitions = (PartitionSpec("keyed"), PartitionSpec("u64"), PartitionSpec())
    case = row(*[step("count", partition=number) for number in range(3)], partitions=partitions)
    found = {one.partitions: [made.partition for made in one.steps] for one in reductions(case)}
    assert found[partitions[::2]] == [0, 0, 1]


def test_what_only_a_generator_can_give_is_not_left_for_another_source() -> None:
    case = graph(sources=(VALUES,), inputs=(record(0, "a 0 m"), record(0, "", "failed")))
    of_frames = [one for one in reductions(case) if not one.sources[0].generator]
    assert of_frames
    assert not any(entry.what == "failed" for one in of_frames for entry in one.inputs)
