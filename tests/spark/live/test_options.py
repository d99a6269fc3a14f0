"""The options of ``wallaroo run`` that only Spark has."""

import argparse
import io

import pytest
import talking_app
from wallaroo_spark.live.options import SparkOptions

from wallaroo.cli.own_options import add_options
from wallaroo.engine import ServeOptions
from wallaroo.errors import WallarooParameterError
from wallaroo.loading import load_application


@pytest.fixture
def parser():
    made = argparse.ArgumentParser()
    add_options(made, SparkOptions)
    return made


def test_master_and_settings_are_those_of_the_session(parser):
    words = ["--master", "spark://host:7077", "--conf", "spark.a=b=c", "--conf", "spark.d="]
    own = SparkOptions.given(vars(parser.parse_args(words)))
    assert own.settings.master == "spark://host:7077"
    assert own.settings.conf == {"spark.a": "b=c", "spark.d": ""}
    assert own.default_partitions == 2


@pytest.mark.parametrize("text", ["spark.a", "=b", ""])
def test_a_setting_without_a_name_or_a_value_is_refused(parser, text, capsys):
    with pytest.raises(SystemExit):
        parser.parse_args(["--conf", text])
    assert f"write K=V, not {text!r}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "text", "wanted"),
    [
        ("--trigger", "-1", "a whole number, 0 or more"),
        ("--batch-bytes", "0", "a whole number, 1 or more"),
        ("--log-bytes", "-5", "a whole number, 1 or more"),
    ],
)
def test_a_size_or_a_time_that_makes_no_sense_is_refused(parser, option, text, wanted, capsys):
    with pytest.raises(SystemExit):
        parser.parse_args([option, text])
    assert f"argument {option}: expected {wanted}, not {text!r}" in capsys.readouterr().err


def test_stdin_is_refused_under_spark_submit_which_does_not_pass_it_on(spark_engine, monkeypatch):
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    application = load_application(talking_app.__file__, placeholders=True)
    with pytest.raises(WallarooParameterError, match="spark-submit does not pass on standard inp"):
        spark_engine.serve(application, ServeOptions(stdin=io.BytesIO(b"a\n")))
