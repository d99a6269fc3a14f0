"""What is generated, and what every search has, reaches everything there is."""

from __future__ import annotations

import ast
import inspect
from types import ModuleType

import pytest
from wallaroo_conformance.cases import (
    building,
    case,
    composing,
    generating,
    graph,
    readable,
    reading,
    reducing,
)
from wallaroo_conformance.cases.case import ConformanceCase, SinkSpec, SourceSpec, StepSpec
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.cases.operators import (
    AGGREGATIONS,
    BUILDERS,
    DECODERS,
    ENCODERS,
    EVENT_TIMES,
    GRAPH,
    KEY_LISTS,
    KEYS,
    ROUTES,
    STATEFUL,
    STATELESS,
    STEPS,
    Trait,
)
from wallaroo_conformance.cases.operators.common import PAYLOADS
from wallaroo_conformance.cases.operators.marks import MARKS
from wallaroo_conformance.cases.operators.values import Disguised
from wallaroo_conformance.cases.records import input_log_of
from wallaroo_conformance.cases.tour import GOING_ON, tour
from wallaroo_conformance.judge import exercising, observing
from wallaroo_conformance.judge.laws import LAWS
from wallaroo_conformance.judge.oracle import reference_oracle

from wallaroo.records import Value

SEED = 20261121
TABLES = (DECODERS, STEPS, ROUTES, BUILDERS, ENCODERS, AGGREGATIONS, EVENT_TIMES)

pytestmark = pytest.mark.xdist_group("generated")  # once, not once for each worker


@pytest.fixture(scope="module")
def generated() -> list[ConformanceCase]:
    return [one for part in range(2) for one in generate(1_000, SEED + part, simple=1.0)]


def names(cases: list[ConformanceCase]) -> set[object]:
    """Return what the nodes and state partitions of cases name."""
    nodes = [node for one in cases for node in (*one.sources, *one.steps, *one.sinks)]
    partitions = [spec for one in cases for spec in one.partitions]
    return {value for part in (*nodes, *partitions) for value in vars(part).values()}


def test_every_operator_is_reached(generated: list[ConformanceCase]) -> None:
    named = names(generated)
    for table in TABLES[:5]:
        assert set(table.choices("any")) <= named
    assert {*KEY_LISTS} <= named
    assert {entry.payload for one in generated for entry in one.inputs} >= set(PAYLOADS)


def test_every_operator_of_triples_and_every_mark_is_reached() -> None:
    cases = [*generate(400, 7, simple=0.0)]
    named = names(cases)
    for table in (STATELESS, STATEFUL, ROUTES, ENCODERS):
        assert set(table.choices("any", triples=True)) <= named
    assert {*AGGREGATIONS, *KEYS, *GRAPH, *EVENT_TIMES} <= named
    texts = b"".join([entry.payload for one in cases for entry in one.inputs]).decode("latin-1")
    assert "uQ" in texts  # update exits
    assert [mark for mark in MARKS if mark not in texts] == []


def test_generators_give_values_of_any_type(generated: list[ConformanceCase]) -> None:
    records = [record for one in generated for record in input_log_of(one)]
    types = {type(record.value) for record in records if isinstance(record, Value)}
    assert types >= {str, int, float, tuple, list, dict, Disguised}


def test_every_operator_stands_alone_in_the_tour() -> None:
    for tone in ("any", "tame"):
        named = names(tour(tone))
        for table in TABLES[:5]:
            assert set(table.choices(tone)) <= named
            assert {*KEY_LISTS} <= named
        assert {entry.payload for one in tour(tone) for entry in one.inputs} >= {*GOING_ON}


def test_every_rule_s_precondition_is_reached(generated: list[ConformanceCase]) -> None:
    meanings = reference_oracle().ask([*generated[:700], *generate(700, 4, simple=0.0)])
    assert {law for one in meanings for law in one.exercised} == {law.id for law in LAWS}


def test_every_trait_has_a_use() -> None:
    used = {trait for table in TABLES for traits in table.traits.values() for trait in traits}
    assert used == set(Trait)


@pytest.mark.parametrize(
    "module",
    [
        *(building, case, composing, generating, graph, readable, reading, reducing),
        *(exercising, observing),  # and not the tour: its cases are written by hand
    ],
)
def test_nobody_but_its_table_knows_an_operator_by_name(module: ModuleType) -> None:
    named = {name for table in TABLES for name in table}
    plainest = {SourceSpec.decoder, StepSpec.operator, StepSpec.route, SinkSpec.encoder, "Notebook"}
    tree = ast.walk(ast.parse(inspect.getsource(module)))
    words = {node.value for node in tree if isinstance(node, ast.Constant)}
    # Words that mean something else there: a policy, a kind of windows, fields of a case.
    allowed = {
        "count",
        "drop",
        "falsy",
        "keyed",
        "number",
        "one",
        "record",
        "window",
        *(plainest if module is case else ()),
    }
    assert words & named <= allowed
