"""The report and Locust's web UI in a real browser: what is drawn there, and a picture of it."""

from __future__ import annotations

import json
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
from webdriver import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

LOCUSTFILE = Path(__file__).parents[3] / "loadgen" / "locustfile.py"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
# A colour of a line is on the canvas when some pixels have it, but for the mixing at a line's edges.
DRAWN = """
const near = (pixels, colour) => {
  const [r, g, b] = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));
  for (let i = 0; i < pixels.length; i += 4) {
    const far = Math.abs(pixels[i] - r) + Math.abs(pixels[i + 1] - g) + Math.abs(pixels[i + 2] - b);
    if (far < 48 && pixels[i + 3] > 200) return true;
  }
  return false;
};
return Array.from(document.querySelectorAll("figure.plot"), figure => {
  const canvas = figure.querySelector("canvas");
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const colours = figure.plot.series.slice(1).filter(series => series.width > 1)
    .map((series, index) => series.stroke(figure.plot, index));
  const missing = colours.filter(colour => !near(data, colour));
  return figure.querySelector("h3").innerText + (missing.length ? " without " + missing : "");
});
"""
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


def drawn(browser: Browser) -> list[str]:
    """Return the titles of the plots that are there with each line in its colour."""
    return list(browser.script(DRAWN))


def test_a_report_shows_all_its_plots(measure: Callable[..., Result], tmp_path: Path) -> None:
    result = measure("--delay", "0.3", schedule="burst:3,0.2,0.5")
    page = tmp_path / "report.html"
    write_html(page, [result])
    with Browser() as browser:
        browser.open(page.as_uri())
        assert drawn(browser) == list(PLOTS)
        assert "Machine and versions" in browser.text()
        browser.click("//footer//a")
        assert browser.script("return location.hash") == "#reading"
        assert browser.script("return document.querySelector(location.hash).innerText")
    picture(page.as_uri(), tmp_path / "report.png")


def test_a_searchs_report_begins_with_latency_against_rate(
    measure: Callable[..., Result], tmp_path: Path
) -> None:
    found = Search("echo")
    for rate in (100, 400):
        found.add(measure("--delay", "0.5", rate=rate, duration=1.0))
    page = tmp_path / "search.html"
    write_html(page, found.results, [found])
    with Browser() as browser:
        browser.open(page.as_uri())
        titles = ["Latency against rate", "Percentile spectrum", *PLOTS, *PLOTS]
        assert drawn(browser) == titles
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
                if json.load(answer)["figures"]:
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
        with Browser() as browser:
            browser.open(f"{url}/wallaroo/plots")
            browser.wait(lambda: drawn(browser) == list(PLOTS), "not all plots")
        assert len(re.findall("<canvas", document(f"{url}/?tab=charts"))) >= 3
        for name in ("wallaroo", "charts"):
            picture(f"{url}/?tab={name}", tmp_path / f"{name}.png")
