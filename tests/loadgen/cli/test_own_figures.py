"""`wallaroo load --metrics`: the application's own figures stand beside the measured ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from commands_here import wallaroo_here
from ports import free_port
from running import wallaroo

EXAMPLE = Path(__file__).parents[3] / "examples" / "word_count.py"


def test_the_two_latencies_agree_within_what_lies_between(tmp_path: Path) -> None:
    source, metrics = free_port(), free_port()
    start = f"{sys.executable} -m wallaroo run {EXAMPLE} --in 127.0.0.1:{source} --out {{listen}}"
    done = wallaroo(
        *("load", "word_count"),
        *f"--to 127.0.0.1:{source} --listen 127.0.0.1:0 --rate 300 --duration 1".split(),
        *f"--warmup 0.2 --cooldown 0.2 --metrics {metrics} --json {tmp_path}/run.json".split(),
        *["--html", f"{tmp_path}/run.html", "--start", f"{start} --metrics 127.0.0.1:{metrics}"],
        data="",
    )
    assert "the application says: " in done.stdout, done.stdout + done.stderr
    (run,) = json.loads((tmp_path / "run.json").read_text())["runs"]
    own = run["own"]
    sent = run["counts"]["sent"]
    assert own["latency"]["count"] in (sent, sent + 1)  # one to see that it answers
    assert 0 < own["latency"]["p50"] <= run["latency"]["max"] * 1.01
    names = {step["name"]: step for step in own["steps"]}
    assert names["split into words"]["calls"] == own["latency"]["count"]
    assert own["dead_letters"] == 0
    page = (tmp_path / "run.html").read_text()
    assert "What the application says of itself" in page
    assert "<td>application</td>" in page


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:99999"])
def test_an_address_that_is_none_is_refused_before_anything_is_sent(address: str) -> None:
    done = wallaroo_here("load", "word_count", "--to", "127.0.0.1:1", "--metrics", address)
    assert done.returncode == 2
    assert "--metrics" in done.stderr
