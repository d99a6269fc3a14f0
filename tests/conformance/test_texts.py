"""What a dead letter says is the same on all engines, where no user code has said it (dead-1)."""

from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.generating import generate
from wallaroo_mutants.spark import OneByOne
from wallaroo_reference.engine import ReferenceEngine


def said(trace):
    return {letter.order: letter.error for letter in trace.dead_letters if not letter.error_type}


def test_dead_1_engines_say_the_same_of_what_user_code_did_not_raise():
    spark, reference, texts = OneByOne(), ReferenceEngine(), set()
    for case in generate(600, 3):
        run = engine_case(case)
        texts |= {*said(reference.run(run)).items()}
        assert said(spark.run(run)) == said(reference.run(run))
    assert len({text.split()[-1] for _, text in texts}) > 20
