"""Relations between two runs: the reference keeps each, and agrees with the plain model."""

from __future__ import annotations

import random

from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.judge.oracle import reference_oracle
from wallaroo_conformance.judge.relations import RELATIONS

from wallaroo.engine import load_engine
from wallaroo.trace import Trace

REFERENCE = load_engine("reference")


def test_the_reference_keeps_every_relation_and_agrees_with_the_model() -> None:
    rng = random.Random(3)
    met: set[str] = set()
    for meaning in reference_oracle().ask([*generate(300, 7, timed=True), *generate(300, 7)]):
        for relation in RELATIONS:
            variant = relation.variant(meaning, rng)
            if variant is None:
                continue
            # As it comes from an engine in another process.
            second = Trace.from_json(REFERENCE.run(engine_case(variant.case)).to_json())
            assert variant.agree(meaning.trace, second), (relation.id, meaning.case)
            met.add(relation.id)
    assert met == {relation.id for relation in RELATIONS}
