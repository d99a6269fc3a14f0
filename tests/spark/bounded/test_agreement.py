"""Bounded cases on Spark: the reference's answers, in batch jobs and in streams of batches."""

from __future__ import annotations

import random
import weakref
from dataclasses import replace
from pathlib import Path

import pytest
from wallaroo_conformance.cases.either import engine_case
from wallaroo_conformance.cases.strategies import LENGTH, case_from_bytes

import wallaroo
from wallaroo import testing
from wallaroo.engine import Case, TaskFault
from wallaroo.trace import Reason

pytestmark = pytest.mark.xdist_group("spark")

SMALL_SEGMENTS = {"segment_bytes": 60}  # so that a few entities fill several


class Box:
    def __init__(self):
        self.items = []


@wallaroo.decoder(header_length=4, length_fmt=">I")
def words(payload):
    return payload.decode().split()


@wallaroo.computation_multi(name="each")
def each(words):
    return words


@wallaroo.state_computation(name="collect")
def collect(word, box):
    box.items.append(word)
    print("collecting", word)
    if word == "bad":
        raise ValueError(word)
    if word == "exit":
        raise SystemExit(2)
    if word == "same":
        return box.items, False
    return box.items, True


@wallaroo.state_computation(name="last")
def last(items, box):
    box.items.append(items[-1] if isinstance(items, list) else items)
    return "/".join(box.items), True


@wallaroo.partition
def letter(message):
    return message[0][0]


@wallaroo.encoder
def show(message):
    return f"{message}\n"


class Unpicklable:
    def __init__(self):
        self.lock = (item for item in ())


@wallaroo.computation(name="unpicklable")
def unpicklable(message):
    return Unpicklable()


def build(*steps):
    builder = wallaroo.ApplicationBuilder("agreement")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, words)).to(each)
    for method, *arguments in steps:
        getattr(builder, method)(*arguments)
    return builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, show)).build()


CHAINED = (
    ("to_state_partition", collect, Box, "first", letter),
    ("to_stateful", last, Box, "second"),
)
CIRCLE = (
    ("to_state_partition", collect, Box, "first", letter),
    ("to_state_partition", last, Box, "second", letter),
    ("to_state_partition", last, Box, "first", letter),
)


def log(*texts):
    return [("p", text.encode()) for text in texts]


def generated(seed, count, **changes):
    draw = random.Random(seed)
    return [replace(case_from_bytes(draw.randbytes(LENGTH)), **changes) for _ in range(count)]


def test_order_2_generated_cases_as_a_batch_job(spark_engine, reference):
    cases = generated(1, 150, batches=None)
    found = spark_engine.run_many([engine_case(case, options=SMALL_SEGMENTS) for case in cases])
    expected = reference.run_many([engine_case(case) for case in cases])
    for case, one, other in zip(cases, found, expected, strict=True):
        assert one.comparable() == other.comparable(), case


def test_order_2_generated_cases_as_a_stream_of_several_batches(spark_engine, reference):
    cases = generated(2, 25, batches=(1, 0, 3, 2))
    found = spark_engine.run_many([engine_case(case, options=SMALL_SEGMENTS) for case in cases])
    expected = reference.run_many([engine_case(case) for case in cases])
    for case, one, other in zip(cases, found, expected, strict=True):
        assert one.comparable() == other.comparable(), case


def both_ways(case):
    """A case in one batch, and in batches of a message each."""
    return [case, replace(case, batches=(1, 1))]


IN_TURN = log("a b ab", "", "ba b a", "c")
TOGETHER = {
    "chained": both_ways(Case(build(*CHAINED), IN_TURN, partitions=3)),
    "circle": both_ways(Case(build(*CIRCLE), IN_TURN, partitions=3)),
    "exit": both_ways(Case(build(*CHAINED), log("a b", "b exit a", "a c"), partitions=2)),
    "stop": both_ways(Case(build(*CHAINED), log("a b", "b bad a", "a bad c"), on_error="stop")),
}
TOGETHER |= {
    f"{name} trusting": [replace(case, isolation="trusting") for case in TOGETHER[name]]
    for name in ("chained", "circle")
}


@pytest.fixture(scope="module")
def answers(spark_engine):
    """What Spark gives for all cases of `TOGETHER`: a stream takes seconds to begin."""
    traces = iter(spark_engine.run_many([case for cases in TOGETHER.values() for case in cases]))
    return {name: [next(traces) for _ in cases] for name, cases in TOGETHER.items()}


@pytest.mark.parametrize("mode", ["", " trusting"], ids=["isolated", "trusting"])
@pytest.mark.parametrize("name", ["chained", "circle"])
def test_order_1_partitions_in_a_row_and_in_a_circle(answers, reference, name, mode):
    expected = reference.run(TOGETHER[name][0]).comparable()
    assert [trace.comparable() for trace in answers[name + mode]] == [expected, expected]


def test_dead_3_nothing_after_an_exit_takes_effect(answers, reference):
    for found in answers["exit"]:
        assert found.ended is not None
        assert (found.ended.kind, found.ended.lineage) == ("exit", (1, 1))
        assert found.comparable() == reference.run(TOGETHER["exit"][0]).comparable()


def test_dead_4_nothing_after_the_first_dead_letter_takes_effect(answers, reference):
    for found in answers["stop"]:
        assert [letter.lineage for letter in found.dead_letters] == [(1, 1)]
        assert found.comparable() == reference.run(TOGETHER["stop"][0]).comparable()


def test_state_7_trusting_mode_does_over_what_failed(spark_engine, reference):
    case = Case(build(*CHAINED), log("b bad", "b"), isolation="trusting")
    found = spark_engine.run(case)
    assert found.comparable() == reference.run(replace(case, isolation="isolated")).comparable()


def test_unportable_is_met_at_the_step_that_made_it(spark_engine, reference):
    case = Case(build(("to", unpicklable), *CHAINED[1:]), log("a"))
    found = spark_engine.run(case)
    assert [(d.reason, d.step) for d in found.dead_letters] == [(Reason.UNPORTABLE, "unpicklable")]
    assert found.comparable() == reference.run(case).comparable()


class Nameless(Exception):
    """An exception that raises when it is asked what it is."""

    __class__ = property(lambda self: 1 / 0)


@wallaroo.computation(name="stumble")
def stumble(message):
    if message == "x":
        raise Nameless(message)
    return message


@wallaroo.partition
def gone(message):
    return weakref.proxy(Box()) if message == "gone" else message


def test_dead_1_objects_that_cannot_be_asked_what_they_are_harm_no_other(spark_engine, reference):
    keyed = ("to_state_partition", collect, Box, "first", gone)
    case = Case(build(("to", stumble), keyed), log("a x b", "gone a"))
    found = spark_engine.run(case)
    assert [(d.step, d.reason) for d in found.dead_letters] == [
        ("stumble", Reason.RAISED),
        ("collect", Reason.BAD_KEY),
    ]
    assert found.comparable() == reference.run(case).comparable()


def test_cases_of_one_job_see_nothing_of_each_other(spark_engine, reference):
    case = Case(build(*CHAINED), log("a b", "a"), partitions=2)
    divided = replace(case, batches=(1,))
    found = spark_engine.run_many([case, divided, case, divided])
    assert {str(trace.comparable()) for trace in found} == {str(reference.run(case).comparable())}


def test_what_user_code_prints_reaches_stderr_with_its_step(spark_engine, capsys):
    spark_engine.run(Case(build(*CHAINED), log("a")))
    assert "[collect] collecting a\n" in capsys.readouterr().err


@wallaroo.state_computation(name="note")
def note(path, box):
    with Path(path).open("a") as file:
        file.write("called\n")
    box.items.append(path)
    return str(len(box.items)), True


@pytest.mark.parametrize(("stage", "batches"), [(0, None), (1, None), (1, (1,)), (2, None)])
def test_recover_1_a_task_whose_worker_dies_takes_effect_once(
    spark_engine, reference, tmp_path, stage, batches
):
    path = str(tmp_path / "calls")
    app = build(("to_stateful", note, Box, "first"), ("to_stateful", last, Box, "second"))
    case = Case(app, log(path, path, path), batches, faults=[TaskFault(0, stage, attempts=2)])
    found = spark_engine.run(case)
    calls = (tmp_path / "calls").read_text().count("called")
    assert found.comparable() == reference.run(replace(case, faults=())).comparable()
    hit = 1 if batches else 3  # messages of the batch that is done three times
    assert calls == (3 + 2 * hit if stage == 1 else 3)


def test_more_dead_attempts_than_spark_survives_are_refused(spark_engine):
    with pytest.raises(ValueError, match="Spark ends a job when 4 attempts died"):
        spark_engine.run(Case(build(), log("a"), faults=[TaskFault(attempts=4)]))


def test_an_entity_of_20_mb_a_message_and_an_output_of_10(spark_engine):
    steps = ("to", blow_up), ("to_stateful", keep, Box, "kept")
    trace = spark_engine.run(Case(build(*steps), log("large", "x"), batches=(1,)))
    large, after = trace.outputs["p", 0]
    assert large == b"large" * (2 << 20) + b"\n"
    assert after == b"20 MB kept\n"


@wallaroo.computation(name="blow up")
def blow_up(message):
    return message * (2 << 20) if message == "large" else message


@wallaroo.state_computation(name="keep")
def keep(message, box):
    if box.items:
        return f"{len(box.items[0]) >> 20} MB kept", True
    box.items.append("x" * (20 << 20))
    return message, True


def test_an_unknown_option_is_refused(spark_engine):
    with pytest.raises(ValueError, match="no option 'segments'"):
        spark_engine.run(Case(build(), log("a"), options={"segments": 1}))


def test_shards_are_spread_evenly(spark_engine):
    from pyspark.sql.functions import spark_partition_id
    from wallaroo_spark.jvm.session import session
    from wallaroo_spark.wire.job import shard_ids

    spark = session().spark
    for shards in (1, 2, 5, 16):
        rows = spark.createDataFrame([(number,) for number in shard_ids(shards)], "shard int")
        placed = rows.repartition(shards, "shard").select("shard", spark_partition_id())
        assert sorted(map(tuple, placed.collect()), key=lambda row: row[1]) == [
            (number, task) for task, number in enumerate(shard_ids(shards))
        ]


@wallaroo.computation(name="pass on")
def pass_on(message):
    return message


def test_a_pipeline_of_hundreds_of_steps(spark_engine):
    case = Case(build(*[("to", pass_on)] * 400, *CHAINED), log("a b"))
    assert spark_engine.run(case).outputs[("p", 0)] == (b"a\n", b"a/b\n")


def test_entities_come_back_as_objects(spark_engine):
    application = build(("to_state_partition", collect, Box, "boxes", letter))
    result = testing.run(application, {"p": [b"a1 b1", b"a2"]}, engine="spark")
    assert {key: box.items for key, box in result.entities["boxes"].items()} == {
        "a": ["a1", "a2"],
        "b": ["b1"],
    }
    assert {type(box) for box in result.entities["boxes"].values()} == {Box}
