"""`wallaroo load --live`: what it shows, to whom, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from commands_here import wallaroo_here
from ports import free_port, listening
from prometheus_client.parser import text_string_to_metric_families
from receiving import eventually
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.presentation.live import LiveServer

pytestmark = pytest.mark.xdist_group("shown runs")  # which are made once

WALLAROO = [sys.executable, "-m", "wallaroo"]


@dataclass
class Live:
    """A load test that goes on, and its page."""

    process: subprocess.Popen[str]
    url: str

    def ask(self, path: str) -> tuple[int, Message, str]:
        with urlopen(self.url + path, timeout=30) as answer:
            return answer.status, answer.headers, answer.read().decode()

    def figures(self) -> dict[str, Any]:
        return json.loads(self.ask("figures")[2])


@pytest.fixture(scope="module")
def live(start_targets: Callable[..., int]) -> Iterator[Live]:
    listen = free_port()
    to = start_targets(listen)
    words = f"echo --to 127.0.0.1:{to} --listen 127.0.0.1:{listen} --rate 400 --warmup 0.1"
    with subprocess.Popen(
        [*WALLAROO, "load", *words.split(), "--duration", "600", "--live", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    ) as process:
        assert process.stderr is not None
        found = re.fullmatch(r"live at (http://127\.0\.0\.1:\d+/)\n", process.stderr.readline())
        assert found is not None
        run = Live(process, found[1])
        try:
            eventually(lambda: run.figures()["figures"])
            yield run
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130


def test_the_page_and_its_figures(live: Live) -> None:
    status, headers, page = live.ask("")
    assert status == 200
    assert "uPlot" in page
    nonce = re.search(r"script-src 'nonce-([^']+)'", headers["Content-Security-Policy"])
    assert nonce is not None
    assert page.count("<script") == page.count(f'<script nonce="{nonce[1]}">') == 2
    shown = live.figures()
    assert shown["heading"] == "Load test: echo at 400/s"
    assert re.fullmatch(r"echo at 400/s: sent [\d,]+ of [\d,]+ messages .*", shown["words"])
    assert shown["tables"][0][0][:3] == ["", "min", "p50"]
    assert [figure["title"] for figure in shown["figures"]][1] == "Latency over time"


def test_the_figures_go_on(live: Live) -> None:
    before = live.figures()["words"]
    eventually(lambda: live.figures()["words"] != before)


def test_it_listens_to_this_machine_only(live: Live) -> None:
    assert listening(urlsplit(live.url).port) == ["127.0.0.1"]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("nowhere", "--live: '127.0.0.1:nowhere'"),
        ("192.0.2.1:0", "--live: cannot listen at 192.0.2.1:0"),
    ],
)
def test_an_address_that_cannot_be_is_exit_2(where: str, message: str) -> None:
    done = wallaroo_here("load", "echo", "--to", "127.0.0.1:9", "--live", where)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.fixture
def server() -> Iterator[LiveServer]:
    made = LiveServer(("127.0.0.1", 0))
    made.start()
    yield made
    made.close()


def ask(server: LiveServer, accept: str = "") -> tuple[str, str]:
    """Return the content type and the text of its metrics."""
    request = Request(f"{server.url}metrics", headers={"Accept": accept})
    with urlopen(request) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_metrics_are_what_prometheus_reads(measured: Result, server: LiveServer) -> None:
    assert ask(server)[1] == ""
    server.show(measured)
    kind, text = ask(server)
    assert kind.startswith("text/plain; version=")
    found = {family.name: family for family in text_string_to_metric_families(text)}
    sent = found["wallaroo_load_messages_sent"]
    assert (sent.type, sent.samples[0].value) == ("counter", measured.counts["sent"])
    assert found["wallaroo_load_offered_rate"].samples[0].value == 1000
    assert found["wallaroo_load_run_info"].samples[0].labels["workload"] == "echo"
    assert found["wallaroo_load_latency_seconds"].type == "histogram"
    latency = found["wallaroo_load_latency_seconds"].samples
    buckets = [sample.value for sample in latency if sample.name.endswith("_bucket")]
    assert buckets == sorted(buckets)
    assert buckets[-1] == measured.latency["count"]
    total = next(sample.value for sample in latency if sample.name.endswith("_sum"))
    assert total == pytest.approx(measured.latency["mean"] * measured.latency["count"] / 1e6)
    # Within 10 s, which is more than any of them took.
    below = next(sample.value for sample in latency if sample.labels.get("le") == "10.0")
    assert below == buckets[-1]


def test_open_metrics_where_they_are_asked_for(measured: Result, server: LiveServer) -> None:
    server.show(measured)
    kind, text = ask(server, "application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")
