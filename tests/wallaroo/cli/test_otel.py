"""`wallaroo run --otel`: figures and traces at a collector that decodes the real protocol."""

import signal
import subprocess
import sys

import pytest
from receiving import eventually
from recorded import VOTES
from running import wallaroo

from wallaroo.frames import frames

pytest.importorskip("opentelemetry.sdk")

from collector import Collector, attributes
from ports import free_port

APP = VOTES.replace("import wallaroo", "import time\nimport wallaroo").replace(
    "    state.count += 1", "    time.sleep(0.005)\n    state.count += 1"
)


@pytest.fixture
def app_file(tmp_path):
    path = tmp_path / "app.py"
    path.write_text(APP)
    return path


def stopped(process):
    """Send a run a message; when its outputs have come, stop it; return what it said."""
    with process.connect() as sender:
        sender.sendall(frames([b"a bad b"]))
        eventually(lambda: process.received == b"a 1b 1")
    process.process.send_signal(signal.SIGTERM)
    code, errors, _ = process.wait()
    assert code == 0
    return errors


@pytest.mark.parametrize("mode", [(), ("--isolated",)])
def test_figures_and_traces_come_to_a_collector(run, mode):
    with Collector() as collector:
        stopped(run("--otel", collector.url, *mode))
        found = collector.values()
        assert found["wallaroo_source_frames", ("words",)] == 1
        assert found["wallaroo_sink_outputs", ("words/0",)] == 2
        assert found["wallaroo_dead_letters", ("step", "words", "count", "1", "raised")] == 1
        calls, seconds = found["wallaroo_node_call_seconds", ("step", "words", "count", "1")]
        assert calls == 3
        assert seconds >= 0.01
        assert found["process.memory.usage", ()] > 1_000_000
        resource = attributes(collector.metrics[-1].resource_metrics[0].resource)
        assert (resource["service.name"], resource["wallaroo.engine"]) == ("votes", "reference")

        def word(lineage):
            return ("step count", lineage, "", [("sink words/0", lineage, "", [])])

        failed = ("step count", "0.1", "ValueError: a bad word", [])
        split = ("step split", "0", "", [word("0.0"), failed, word("0.2")])
        assert collector.traces() == [
            ("frame words", "0", "", [("decode words", "0", "", [split])])
        ]
        times = {span.name: span for span in collector.spans}
        frame, count = times["frame words"], times["step count"]
        assert count.end_time_unix_nano - count.start_time_unix_nano >= 5_000_000
        for span in collector.spans:
            assert frame.start_time_unix_nano <= span.start_time_unix_nano
            assert span.end_time_unix_nano <= frame.end_time_unix_nano


def test_a_collector_that_is_away_costs_two_lines_and_nothing_else(run):
    url = f"http://127.0.0.1:{free_port()}"
    said = stopped(run("--otel", url))
    assert said.count(url) == 2
    assert f"figures are not taken at {url}: " in said
    assert f"traces are not taken at {url}: " in said
    assert "opentelemetry" not in said
    assert "words: 1 in, 2 out" in said


def test_without_it_nothing_of_it_is_imported(app_file):
    options = ["--metrics", "0", "--stdin", "--stdout", "--in", "x:0", "--out", "x:0"]
    code = (
        "import sys\nfrom wallaroo.cli.main import main\n"
        f"main({['run', str(app_file), *options]})\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=60, check=False)
    assert (done.returncode, b"Error" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize(
    "url", ["127.0.0.1:4318", "grpc://x:1", "http://", "http://x:0", "http://x/?a"]
)
def test_what_is_no_endpoint_is_refused(app_file, url):
    done = wallaroo("run", app_file, "--otel", url)
    assert done.returncode == 2
    assert b"expected a URL such as http://127.0.0.1:4318" in done.stderr
