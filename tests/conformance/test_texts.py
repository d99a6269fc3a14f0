"""What a dead letter says is the same on all engines, where no user code has said it (dead-1)."""

from dataclasses import replace

from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.generating import generate
from wallaroo_mutants.spark import OneByOne
from wallaroo_reference.engine import ReferenceEngine


def said(trace):
    """Texts by their places, but for what `trusting` mode adds: what may be half changed."""
    return {
        letter.order: letter.error.partition(" [trusting: ")[0]
        for letter in trace.dead_letters
        if not letter.error_type
    }


def test_dead_1_engines_say_the_same_of_what_user_code_did_not_raise():
    spark, reference, texts = OneByOne(), ReferenceEngine(), set()
    for case in generate(300, 3):
        run = engine_case(case)
        texts |= {*said(reference.run(run)).items()}
        assert said(spark.run(run)) == said(reference.run(run))
    assert len({text.split()[-1] for _, text in texts}) > 20


def test_dead_1_so_does_trusting_mode_where_it_is_promised():
    reference, texts = ReferenceEngine(), set()
    for drawn in generate(600, 3):
        case = replace(drawn, isolation="trusting")
        isolated = engine_case(replace(case, isolation="isolated"), options={"thorough": True})
        trace = reference.run(isolated)
        if not (trace.findings or case.alters or case.shows_copies or case.codec):
            texts |= {*said(trace).items()}
            assert said(reference.run(engine_case(case))) == said(trace)
    assert len({text.split()[-1] for _, text in texts}) > 10
