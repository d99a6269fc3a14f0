"""`wallaroo run --otel`: figures and traces at a collector that decodes the real protocol."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import pytest
from receiving import eventually
from running import wallaroo

from wallaroo.frames import frames

pytest.importorskip("opentelemetry.sdk")

from collector import Collector, attributes

APP = """
import time
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode()

@wallaroo.computation_multi(name="words")
def words(text):
    for word in text.split():
        yield None if word == "-" else word

@wallaroo.computation(name="check")
def check(word):
    if word == "bad":
        raise ValueError("a bad word")
    return word

class Count:
    count = 0

@wallaroo.state_computation(name="count")
def count(word, state):
    time.sleep(0.005)
    state.count += 1
    return f"{word} {state.count}", True

@wallaroo.partition
def itself(word):
    return word

@wallaroo.encoder
def encode(text):
    return text + "\\n"

def application_setup(args):
    (host, port), = wallaroo.tcp_parse_input_addrs(args)
    (out_host, out_port), = wallaroo.tcp_parse_output_addrs(args)
    return (
        wallaroo.ApplicationBuilder("app")
        .new_pipeline("p", wallaroo.TCPSourceConfig(host, port, decode))
        .to(words)
        .to(check)
        .to_state_partition(count, Count, "counts", itself)
        .to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
        .build()
    )
"""


@pytest.fixture
def app_file(tmp_path):
    path = tmp_path / "app.py"
    path.write_text(APP)
    return path


def stopped(process):
    """Send a run a message; when its outputs have come, stop it; return what it said."""
    with process.connect() as sender:
        sender.sendall(frames([b"a - bad b"]))
        eventually(lambda: process.received == b"a 1\nb 1\n")
    process.process.send_signal(signal.SIGTERM)
    code, errors, _ = process.wait()
    assert code == 0
    return errors


@pytest.mark.parametrize("mode", [(), ("--isolated",)])
def test_figures_and_traces_come_to_a_collector(run, mode):
    with Collector() as collector:
        stopped(run("--otel", collector.url, *mode))
        found = collector.values()
        assert found["wallaroo_source_frames", ("p",)] == 1
        assert found["wallaroo_sink_outputs", ("p/0",)] == 2
        assert found["wallaroo_dead_letters", ("step", "p", "check", "1", "raised")] == 1
        calls, seconds = found["wallaroo_node_call_seconds", ("step", "p", "count", "2")]
        assert calls == 2
        assert seconds >= 0.01
        assert found["process.memory.usage", ()] > 1_000_000
        resource = attributes(collector.metrics[-1].resource_metrics[0].resource)
        assert (resource["service.name"], resource["wallaroo.engine"]) == ("app", "reference")

        def word(lineage):
            sink = ("sink p/0", lineage, "", [])
            return ("step check", lineage, "", [("step count", lineage, "", [sink])])

        assert collector.traces() == [
            (
                *("frame p", "0", ""),
                [
                    (
                        *("decode p", "0", ""),
                        [
                            (
                                *("step words", "0", ""),
                                [
                                    word("0.0"),
                                    ("step check", "0.2", "ValueError: a bad word", []),
                                    word("0.3"),
                                ],
                            )
                        ],
                    )
                ],
            )
        ]
        times = {span.name: span for span in collector.spans}
        frame, count = times["frame p"], times["step count"]
        assert count.end_time_unix_nano - count.start_time_unix_nano >= 5_000_000
        for span in collector.spans:
            assert frame.start_time_unix_nano <= span.start_time_unix_nano
            assert span.end_time_unix_nano <= frame.end_time_unix_nano


def test_a_collector_that_is_away_costs_two_lines_and_nothing_else(run):
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    said = stopped(run("--otel", url))
    assert said.count(url) == 2
    assert f"figures are not taken at {url}: " in said
    assert f"traces are not taken at {url}: " in said
    assert "opentelemetry" not in said
    assert "p: 1 in, 2 out" in said


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
