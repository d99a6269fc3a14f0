"""What the Spark tests share: one session for all that harm nothing."""

import sys

import pytest
import spark_cluster

from wallaroo.engine import load_engine


@pytest.fixture(scope="session")
def spark_engine():
    """The engine; its session comes up with the first case and ends with the tests."""
    yield load_engine("spark")
    from wallaroo_spark.jvm.session import close_session

    close_session()


@pytest.fixture(autouse=True)
def _in_the_group(request):
    """A test that brings a session up is of the group, or each process would have a JVM."""
    may = any(request.node.get_closest_marker(mark) for mark in ("xdist_group", "alone"))
    before = _is_up()
    yield
    assert may or before or not _is_up(), "this test needs the mark xdist_group('spark')"


def _is_up():
    jvm = sys.modules.get("wallaroo_spark.jvm.session")
    return jvm is not None and jvm._current.session is not None


@pytest.fixture(scope="session")
def reference():
    """The engine whose answers are right."""
    return load_engine("reference")


@pytest.fixture(scope="session")
def class_archive():
    """Java's option with which a process of Spark's starts in half the time."""
    return spark_cluster.class_archive()


@pytest.fixture(scope="session")
def only_jars():
    """The variable with which Spark's launcher starts a Java that reads that archive."""
    return spark_cluster.ONLY_JARS


@pytest.fixture(scope="session")
def java_home(tmp_path_factory):
    """A Java home whose `java` takes all that Spark's launcher gives it."""
    return spark_cluster.java_home(tmp_path_factory.mktemp("java"))
