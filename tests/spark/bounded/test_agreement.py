"""Bounded cases on Spark: the reference's answers, in batch jobs and in streams of batches."""

import threading
import weakref
from dataclasses import replace
from pathlib import Path

import pytest
from counted import line, sink
from small_steps import Seen
from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.search.budget import Budget
from wallaroo_spark.engine import SparkEngine

import wallaroo
from wallaroo import testing
from wallaroo.engine import Case, TaskFault
from wallaroo.records import Value
from wallaroo.trace import Reason

pytestmark = pytest.mark.xdist_group("spark")


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


def build(*steps):
    builder = wallaroo.ApplicationBuilder("agreement")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, words)).to(each)
    for method, *arguments in steps:
        getattr(builder, method)(*arguments)
    return builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, line)).build()


CHAINED = (
    ("to_state_partition", collect, Seen, "first", letter),
    ("to_stateful", last, Seen, "second"),
)


def log(*texts):
    return [("p", text.encode()) for text in texts]


class WithoutServing(SparkEngine):
    """The engine as cases see it: what a live server does has tests of its own."""

    def capabilities(self):
        return replace(super().capabilities(), live=False)


def test_order_2_generated_cases_in_batch_jobs_and_in_streams_of_batches(spark_engine):
    """Of both modes, with windows, codecs, early ends, workers that die, several partitions."""
    check = Check(Budget(80), counterexamples=None)
    report = check_engine(WithoutServing(), check)
    assert not report.failures
    assert not report.problems


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
    return weakref.proxy(Seen()) if message == "gone" else message


def test_dead_1_objects_that_cannot_be_asked_what_they_are_harm_no_other(spark_engine, reference):
    keyed = ("to_state_partition", collect, Seen, "first", gone)
    case = Case(build(("to", stumble), keyed), log("a x b", "gone a"))
    found = spark_engine.run(case)
    assert [(d.step, d.reason) for d in found.dead_letters] == [
        ("stumble", Reason.RAISED),
        ("collect", Reason.BAD_KEY),
    ]
    assert found.comparable() == reference.run(case).comparable()


class Unreadable:
    """Is written, and cannot be read back; the reason is no text that can be encoded."""

    def __reduce__(self):
        return refuse, ()


def refuse():
    raise ValueError("\ud800")


class Endless:
    def initial_value(self):
        return 0

    def apply(self, last):
        return last + 1


def test_graph_4_values_that_do_not_survive_pickling_are_dead_letters(spark_engine, reference):
    source = wallaroo.source("g", wallaroo.GenSourceConfig(Endless()))
    app = wallaroo.build_application("values", source.to_sink(sink(7002)))
    values = (0, threading.Lock(), Unreadable(), 3)
    case = Case(app, [Value("g", value) for value in values])
    found = spark_engine.run(case)
    assert [(d.reason, d.lineage) for d in found.dead_letters] == [
        (Reason.UNPORTABLE, (1,)),
        (Reason.UNPORTABLE, (2,)),
    ]
    assert found.dead_letters[1].error.endswith("does not survive pickling: ValueError: \ud800")
    assert found.comparable() == reference.run(case).comparable()


@wallaroo.computation(name="as it is")
def as_it_is(word):
    return Unreadable() if word == "bad" else word


@wallaroo.state_computation(name="keep it")
def keep_it(word, box):
    box.items.append(Unreadable() if word == "bad" else word)
    return word, True


@pytest.mark.parametrize(
    "steps", [(("to", as_it_is), CHAINED[1]), (("to_stateful", keep_it, Seen, "kept"),)], ids=len
)
def test_dead_1_trusting_too_what_cannot_be_read_back_harms_no_other(spark_engine, steps):
    case = Case(build(*steps), log("a", "bad", "b"), batches=(1, 1, 1), isolation="trusting")
    found = spark_engine.run(case)
    assert [(letter.reason, letter.lineage) for letter in found.dead_letters] == [
        (Reason.UNPORTABLE, (1, 0))
    ]
    isolated = replace(case, isolation="isolated")
    assert found.comparable() == spark_engine.run(isolated).comparable()


def test_cases_of_one_job_see_nothing_of_each_other(spark_engine, reference):
    case = Case(build(*CHAINED), log("a b", "a"), partitions=2)
    divided = replace(case, batches=(1,))
    found = spark_engine.run_many([case, divided, case, divided])
    assert {str(trace.comparable()) for trace in found} == {str(reference.run(case).comparable())}


def test_what_user_code_prints_reaches_stderr_with_its_step(spark_engine, capsys):
    spark_engine.run(Case(build(*CHAINED), log("a")))
    assert "[collect] collecting a\n" in capsys.readouterr().err


@wallaroo.computation(name="note head")
def note_head(path):
    with Path(path).open("a") as file:
        file.write("head\n")
    return path


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
    stateful = ("to_stateful", note, Seen, "first"), ("to_stateful", last, Seen, "second")
    app = build(("to", note_head), *stateful)
    case = Case(app, log(path, path, path), batches, faults=[TaskFault(0, stage, attempts=2)])
    found = spark_engine.run(case)
    calls, heads = map((tmp_path / "calls").read_text().count, ("called", "head"))
    assert found.comparable() == reference.run(replace(case, faults=())).comparable()
    hit = 1 if batches else 3  # messages of the batch that is done three times
    assert calls == (3 + 2 * hit if stage == 1 else 3)
    assert heads == (9 if stage == 0 else 3)


def test_an_entity_of_10_mb_a_message_and_an_output_of_5(spark_engine):
    steps = ("to", blow_up), ("to_stateful", keep, Seen, "kept")
    trace = spark_engine.run(Case(build(*steps), log("large", "x"), batches=(1,)))
    large, after = trace.outputs["p", 0]
    assert large == b"large" * (1 << 20) + b"\n"
    assert after == b"10 MB kept\n"


@wallaroo.computation(name="blow up")
def blow_up(message):
    return message * (1 << 20) if message == "large" else message


@wallaroo.state_computation(name="keep")
def keep(message, box):
    if box.items:
        return f"{len(box.items[0]) >> 20} MB kept", True
    box.items.append("x" * (10 << 20))
    return message, True


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
    application = build(("to_state_partition", collect, Seen, "boxes", letter))
    result = testing.run(application, {"p": [b"a1 b1", b"a2"]}, engine="spark")
    assert {key: box.items for key, box in result.entities["boxes"].items()} == {
        "a": ["a1", "a2"],
        "b": ["b1"],
    }
    assert {type(box) for box in result.entities["boxes"].values()} == {Seen}
