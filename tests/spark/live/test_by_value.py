"""Code that no worker can import is sent along: closures, lambdas, a script's own definitions."""

import os
import subprocess
import sys
import threading

import pytest
from counted import Count, number, sink, text
from live_on_spark import PATIENCE, committed
from receiving import eventually

import wallaroo
from wallaroo.engine import Case, load_engine
from wallaroo.errors import UnsupportedTopology

shared = pytest.mark.xdist_group("spark")  # in the session that all such tests share


def application(*steps):
    builder = wallaroo.ApplicationBuilder("by value")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
    for method, *arguments in steps:
        getattr(builder, method)(*arguments)
    return builder.to_sink(sink(1)).build()


class Lengths:
    """Partition functions, each with a number of its own."""

    def __init__(self, modulus):
        self.partition = lambda message: len(message) % modulus


@shared
def test_a_lambda_a_closure_and_a_class_inside_a_function(spark_engine):
    seen = ["aa"]  # a closure's own copy goes to each worker

    class Shout:
        def name(self):
            return "shout"

        def compute(self, message):
            return None if message in seen else message.upper()

    @wallaroo.partition
    def by_length(message):
        return again(message) if len(message) > 2 else len(message)

    @wallaroo.partition
    def again(message):
        return by_length(message[:2])  # two that know each other by their names

    steps = [
        ("to", wallaroo.computation(name="twice")(lambda message: message * 2)),
        ("to", Shout),
        ("to_state_partition", number, Count, "by length", by_length),
        ("to_state_partition", number, Count, "by parity", Lengths(2)),
    ]
    frames = [("p", payload) for payload in (b"x", b"a", b"y", b"zz")]
    case = Case(application(*steps), frames)
    assert spark_engine.run(case) == load_engine("reference").run(case)
    assert spark_engine.run(case).outputs["p", 0][0] == b"XX 1 1\n"


@shared
def test_state_4_an_object_of_a_class_inside_a_function_is_unportable_as_in_the_reference(
    spark_engine,
):
    class Inner(Count):
        pass

    case = Case(application(("to_stateful", number, Inner, "inner")), [("p", b"a")])
    for engine in (spark_engine, load_engine("reference")):
        [letter] = engine.run(case).dead_letters
        assert letter.reason.value == "unportable"
        assert "<locals>.Inner" in letter.error


def test_build_2_what_cannot_be_sent_at_all_is_refused_by_its_step(spark_engine):
    lock = threading.Lock()
    step = wallaroo.computation(name="locked")(lambda message: lock and message)
    with pytest.raises(UnsupportedTopology, match=r"at 'locked'.* step 'locked' of pipeline 'p'"):
        spark_engine.check(application(("to", step)))


KEPT = """
class Kept:
    count = 0


def made():
    return Kept()
"""

SCRIPT = """
import sys
from pathlib import Path
import wallaroo
from wallaroo.engine import ServeOptions, load_engine
from wallaroo.loading import load_module

made = load_module(Path(sys.argv[2])).module.made

class Count:
    def __init__(self):
        self.kept = made()

    class Of:  # reached by the other's name
        def __init__(self, name):
            self.name = name

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return Count.Of(payload.decode())

@wallaroo.partition
def name(message):
    return message.name

@wallaroo.state_computation(name="number")
def number(message, state):
    state.kept.count += 1
    return f"{message.name} {state.kept.count}", True

@wallaroo.encoder
def line(message):
    return message + "\\n"

def application():
    ab = wallaroo.ApplicationBuilder("script")
    ab.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    ab.to_state_partition(number, Count, "counts", name)
    return ab.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 1, line)).build()

if __name__ == "__main__":
    engine = load_engine("spark")
    options = ServeOptions(
        stdin=open(0, 'rb', 0),
        stdout=open(1, 'wb', 0),
        partitions=1,
        options={"checkpoint": Path(sys.argv[1]), "master": "local[1]"},
    )
    import logging
    logging.basicConfig(level="WARNING")
    summary = engine.serve(application(), options).wait()
    print(summary.problem, file=sys.stderr)
    sys.exit(summary.exit_code)
"""


@pytest.mark.alone
@pytest.mark.nightly("two starts of Spark; test_time.py kills it, and others here send such code")
@pytest.mark.timeout(900)
def test_recover_1_a_script_that_was_killed_goes_on_though_a_file_has_moved(tmp_path):
    before, after = tmp_path / "before" / "kept.py", tmp_path / "after" / "kept.py"
    script, checkpoint = tmp_path / "script.py", tmp_path / "checkpoint"
    script.write_text(SCRIPT)
    before.parent.mkdir()
    before.write_text(KEPT)
    # PySpark's own command starts a notebook with this; Spark must not start another for itself.
    notebook, started = tmp_path / "notebook", tmp_path / "started"
    notebook.write_text(f"#!/bin/sh\ntouch {started}\n")
    notebook.chmod(0o755)
    environment = {**os.environ, "PYSPARK_DRIVER_PYTHON": str(notebook)}

    def run(kept):
        return subprocess.Popen(
            [sys.executable, str(script), str(checkpoint), str(kept)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    with run(before) as killed:
        killed.stdin.write("a\nb\na\n")
        killed.stdin.flush()
        got = [killed.stdout.readline() for _ in range(3)]
        eventually(lambda: committed(checkpoint), PATIENCE)
        killed.kill()
        _, said = killed.communicate(timeout=PATIENCE)
    assert got == ["a 1\n", "b 1\n", "a 2\n"], said
    assert "state partition 'counts': its builder, Count, is defined in the main" in said
    before.parent.rename(after.parent)
    with run(after) as again:
        got, said = again.communicate("a\nb\n", timeout=PATIENCE)
    assert (again.returncode, got) == (0, "a 3\nb 2\n"), said
    others = [path for path in [checkpoint, *checkpoint.iterdir()] if path.stat().st_mode & 0o077]
    assert others == []
    assert not started.exists()
