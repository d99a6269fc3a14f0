"""The report and Locust's web UI in a real browser: what is drawn there, and a picture of it."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search
from wallaroo_loadgen.presentation.report import write_html

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

LOCUSTFILE = Path(__file__).parents[3] / "loadgen" / "locustfile.py"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
PLOTS = ("Percentile spectrum", "Latency over time", "Sent, received, backlog", "Sender lateness")


def chromium(url: str, *options: str) -> str:
    assert CHROMIUM is not None, "no chromium on the path, and CHROMIUM is not set"
    fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,2400"]
    done = subprocess.run(
        [CHROMIUM, *fixed, "--virtual-time-budget=12000", *options, url],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


def document(url: str) -> str:
    """Return the page as it is after its scripts have run."""
    return chromium(url, "--dump-dom")


def picture(url: str, file: Path) -> bytes:
    """Take a picture, and check that it is one of a page with something on it."""
    chromium(url, f"--screenshot={file}")
    data = file.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (1300, 2400)
    assert len(data) > 60_000  # an empty page of this size has some 10,000
    return data


def drawn(html: str) -> list[str]:
    """Return the titles of the plots that are really there as graphics."""
    titles = re.findall(r'class="gtitle"[^>]*>(.*?)</text>', html)
    return [re.sub(r"<[^>]+>", "", title) for title in titles]


def test_a_report_shows_all_its_plots(measure: Callable[..., Result], tmp_path: Path) -> None:
    result = measure("--delay", "0.3", schedule="burst:3,0.2,0.5")
    page = tmp_path / "report.html"
    write_html(page, [result])
    html = document(page.as_uri())
    assert drawn(html) == list(PLOTS)
    assert "Machine and versions" in html
    assert html.count('class="js-line"') >= 8
    assert "<image" in html or "hm" in html  # the heat map
    picture(page.as_uri(), tmp_path / "report.png")


def test_a_searchs_report_begins_with_latency_against_rate(
    measure: Callable[..., Result], tmp_path: Path
) -> None:
    found = Search("echo")
    for rate in (100, 400):
        found.add(measure("--delay", "0.5", rate=rate, duration=1.0))
    page = tmp_path / "search.html"
    write_html(page, found.results, [found])
    assert drawn(document(page.as_uri())) == [
        "Latency against rate",
        "Percentile spectrum",
        *PLOTS,
        *PLOTS,
    ]
    picture(page.as_uri(), tmp_path / "search.png")


@contextmanager
def locust(target: int, listen: int, web: int, master: int) -> Iterator[str]:
    words = f"--web-port {web} --web-host 127.0.0.1 --processes 2 --autostart --workload echo"
    words += f" --master-bind-port {master} --master-port {master} --rate 400 --duration 90"
    words += f" --to 127.0.0.1:{target} --listen 127.0.0.1:{listen} --warmup 0.5"
    command = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), *words.split()]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield f"http://127.0.0.1:{web}"
        finally:
            process.terminate()
            process.wait(60)


def wait_for_outputs(url: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/wallaroo/figures") as answer:
                if b'"counts": null' not in answer.read():
                    return
        except OSError:
            pass
        time.sleep(0.5)
    raise AssertionError("no outputs within a minute")


def test_locusts_pages(
    start_target: Callable[..., int], free_port: Callable[[], int], tmp_path: Path
) -> None:
    listen = free_port()
    target = start_target(listen, "--delay", "0.01")
    with locust(target, listen, free_port(), free_port()) as url:
        wait_for_outputs(url)
        statistics = document(f"{url}/?tab=stats")
        cells = re.findall(r"<td[^>]*>([^<]*)</td>", statistics)
        row = cells[cells.index("latency") :]
        assert row[1] == "echo"
        assert int(row[2]) > 0
        assert float(row[4]) >= 10  # the median in ms, with its decimals
        assert "." in row[5]
        tab = document(f"{url}/?tab=wallaroo")
        assert "Latency and load" in tab
        assert "Sender lateness (ms)" in tab
        assert 'id="wallaroo-plots"' in tab
        assert "99.99" in tab
        assert drawn(document(f"{url}/wallaroo/plots")) == list(PLOTS)
        assert len(re.findall("<canvas", document(f"{url}/?tab=charts"))) >= 3
        for name in ("wallaroo", "charts"):
            picture(f"{url}/?tab={name}", tmp_path / f"{name}.png")
