"""What user code prints and logs on a worker reaches the driver's standard error, with its step."""

import io
import logging

import pytest
import talking_app
from wallaroo_spark.jvm.session import session

from wallaroo.engine import ServeOptions
from wallaroo.loading import load_application

pytestmark = pytest.mark.xdist_group("spark")


def test_a_live_run_logs_what_its_workers_print_and_log(spark_engine, caplog, capsys):
    """Each with its step; `wallaroo.cli.logs` writes them as lines or as JSON."""
    caplog.set_level(logging.INFO)
    session()  # one that is up, and is left up
    application = load_application(talking_app.__file__, placeholders=True)
    out = io.BytesIO()
    handle = spark_engine.serve(application, ServeOptions(stdin=io.BytesIO(b"a\n"), stdout=out))
    assert handle.wait(120).exit_code == 0
    assert out.getvalue() == b"a\n"
    said = {
        (record.name, record.levelname, getattr(record, "step", None), record.getMessage())
        for record in caplog.records
    }
    assert {
        ("talking", "INFO", "first", "computed a"),
        ("talking", "INFO", "second", "computed a"),
        ("talking", "ERROR", "all ways", "it failed\n\x1b"),
    } <= said
    assert not [one for one in said if one[1] == "DEBUG"]
    assert {"[add] building", "[encode] encoding"} <= set(capsys.readouterr().err.splitlines())
    (failed,) = [record for record in caplog.records if record.exc_text or record.exc_info]
    assert "KeyError: 'a'" in logging.Formatter().format(failed)
