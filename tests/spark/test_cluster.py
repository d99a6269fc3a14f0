"""On a Spark standalone cluster on this machine: a master and two workers."""

import contextlib
import os
from pathlib import Path

import pytest
from counted import send
from live_on_spark import PATIENCE, options
from receiving import eventually
from small_steps import decode, encode, whole
from spark_cluster import QUICK, Cluster
from wallaroo_spark.jvm.session import close_session, session
from wallaroo_spark.jvm.settings import SessionSettings

import wallaroo
from wallaroo.engine import Case
from wallaroo.loading import load_application, load_module

pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]

EXAMPLES = Path(__file__).parents[2] / "examples"
CLOCK = ("--clock", "1000000000")  # order results are stamped with it


@pytest.fixture(scope="module")
def market():
    """Payloads by pipeline, and all of them as an input log: market data, then orders."""
    feed = load_module(EXAMPLES / "market_feed.py").module
    symbols = (EXAMPLES / "data" / "symbols.txt").read_text().split()
    data = list(feed.generate_market_data(500, 7, symbols))
    orders = list(feed.generate_orders(500, 7, symbols))
    return data, orders


def market_log(market):
    data, orders = market
    return [("Market Data", each) for each in data] + [("Orders", each) for each in orders]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, java_home, class_archive, only_jars):
    """The cluster of all tests here; the last of them kills a worker."""
    directory = tmp_path_factory.mktemp("cluster")
    given = {**only_jars, "JAVA_HOME": str(java_home)}
    with contextlib.closing(Cluster(directory, given, class_archive, workers=2)) as running:
        yield running


@pytest.fixture(scope="module")
def on_cluster(cluster, class_archive):
    """The settings of the one session of all tests here: an executor takes seconds to start."""
    conf = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": f"{QUICK} {class_archive}",
    }
    settings = SessionSettings(master=cluster.url, conf=conf)
    session(settings)
    yield settings
    close_session()


def example(name, *arguments):
    return load_application(EXAMPLES / f"{name}.py", arguments, placeholders=True)


# -- bounded cases ---------------------------------------------------------------------------


class Executors:
    """The daemons of Python workers under which an entity was touched: one for each executor."""

    def __init__(self):
        self.seen = set()


@wallaroo.state_computation(name="note executor")
def note_executor(message, executors):
    executors.seen.add(os.getppid())
    return str(os.getppid()), True


def where():
    return (
        wallaroo.ApplicationBuilder("where")
        .new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
        .to_state_partition(note_executor, Executors, "executors", whole)
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode))
        .build()
    )


def test_order_2_bounded_cases_on_a_cluster(on_cluster, spark_engine, reference, market):
    stream = Case(
        example("market_spread", *CLOCK), market_log(market), batches=(300, 400), partitions=2
    )
    spread = Case(where(), [("p", b"%d" % key) for key in range(20)], partitions=4)
    found, places = spark_engine.run_many([stream, spread])
    assert found.comparable() == reference.run(stream).comparable()
    assert len(set(places.outputs["p", 0])) == 2  # both executors hold state


# -- live ------------------------------------------------------------------------------------


# The last one here: it leaves the cluster with one worker.
def test_recover_1_a_worker_is_killed_and_the_job_completes(
    cluster, on_cluster, spark_engine, reference, market, receiver
):
    data, orders = market
    trace = reference.run(Case(example("market_spread", *CLOCK), market_log(market)))
    expected = b"".join(trace.outputs["Orders", 0])
    places = ("--in", "127.0.0.1:0,127.0.0.1:0", "--out", receiver.address)
    application = load_application(EXAMPLES / "market_spread.py", [*places, *CLOCK])
    own = {"master": on_cluster.master, "conf": on_cluster.conf}
    run = spark_engine.serve(application, options(own=own))
    try:
        send(run, *data, to="Market Data")
        send(run, *orders[:200], to="Orders")
        eventually(lambda: b"".join(receiver.so_far), PATIENCE)
        assert cluster.kill_worker(0), "it had an executor"
        send(run, *orders[200:], to="Orders")
        eventually(lambda: len(b"".join(receiver.so_far)) >= len(expected), PATIENCE)
    finally:
        run.stop()
        summary = run.wait(PATIENCE)
    assert (summary.exit_code, summary.problem) == (0, None)
    assert receiver.data == expected
