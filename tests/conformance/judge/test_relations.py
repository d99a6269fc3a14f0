"""Relations between two runs: the reference keeps each, and agrees with the plain model."""

from __future__ import annotations

import random

import pytest
from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.case import WindowSpec
from wallaroo_conformance.cases.composing import graph, record, step
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.judge.timed_observing import observe_timed
from wallaroo_conformance.judge.timed_relations import TIMED_RELATIONS

from wallaroo.engine import load_engine
from wallaroo.trace import Trace

REFERENCE = load_engine("reference")


def test_the_reference_keeps_every_relation_and_agrees_with_the_model() -> None:
    rng = random.Random(3)
    met: set[str] = set()
    for observation in observe_timed(REFERENCE, generate(300, 7, timed=True)):
        for relation in TIMED_RELATIONS:
            variant = relation.variant(observation, rng)
            if variant is None:
                continue
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
    inputs = [record(0, f"a {time} {time}") for time in (1, 12, 4)]
    case = graph(step("texts", window=WindowSpec("session", 9, delay=delay)), inputs=inputs)
    [relation] = [one for one in TIMED_RELATIONS if one.id == "window-6/within the delay"]
    [observation] = observe_timed(REFERENCE, [case])
    assert not observation.trace.dead_letters
    assert (relation.variant(observation, random.Random(0)) is not None) == compared
