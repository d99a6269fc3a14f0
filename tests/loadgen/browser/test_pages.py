"""The report and Locust's web UI in a real browser: what is drawn there, and a picture of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from load_runs import locusts_page, result
from ports import free_port
from wallaroo_loadgen.comparison.baseline import Bound, Runs, compare
from wallaroo_loadgen.comparison.history import histories_of
from wallaroo_loadgen.control.result import Metric, Result
from wallaroo_loadgen.control.search import Search
from wallaroo_loadgen.presentation.comparison import comparison_html, history_html
from wallaroo_loadgen.presentation.pages import write_html
from webdriver import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

NASTY = "<img src=x onerror=window.run=1>"  # as a file's name, which ends up as the run's
# A line is drawn when some pixels of the canvas have its colour, or nearly: its edges are mixed.
DRAWN = """
const near = (pixels, colour) => {
  const [r, g, b] = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));
  for (let i = 0; i < pixels.length; i += 4) {
    const far = Math.abs(pixels[i] - r) + Math.abs(pixels[i + 1] - g) + Math.abs(pixels[i + 2] - b);
    if (far < 80 && pixels[i + 3] > 200) return true;
  }
  return false;
};
return Array.from(document.querySelectorAll("figure.plot"), figure => {
  const canvas = figure.querySelector("canvas");
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const colours = figure.plot.series.slice(1).filter(series => series.width > 1)
    .map(series => series.stroke(figure.plot));
  const missing = colours.filter(colour => !near(data, colour));
  return figure.querySelector("h3").innerText + (missing.length ? " without " + missing : "");
});
"""
PLOTS = ("Percentile spectrum", "Latency over time", "Sent, received, backlog", "Sender lateness")


def check_picture(browser: Browser) -> None:
    """Check that a picture of the page is one of a page with something on it."""
    assert len(browser.picture()) > 40_000  # an empty page has some 10,000


def drawn(browser: Browser) -> list[str]:
    """Return the titles of the plots that are there with each line in its colour."""
    return list(browser.script(DRAWN))


def test_a_report_shows_all_its_plots(measure: Callable[..., Result], tmp_path: Path) -> None:
    result = measure("--delay", "0.3", schedule="burst:3,0.2,0.5")
    page = tmp_path / "report.html"
    write_html(page, [result])
    with Browser() as browser:
        browser.open(page.as_uri())
        browser.wait(lambda: drawn(browser) == list(PLOTS), "not all plots")
        assert "Machine and versions" in browser.text()
        browser.click("//footer//a")
        assert browser.script("return location.hash") == "#reading"
        assert browser.script("return document.querySelector(location.hash).innerText")
        check_picture(browser)


def test_a_searchs_report_begins_with_latency_against_rate(
    measure: Callable[..., Result], tmp_path: Path
) -> None:
    found = Search("echo")
    for rate in (100, 400):
        found.results.append(measure("--delay", "0.5", rate=rate, duration=1.0))
    page = tmp_path / "search.html"
    write_html(page, found.results, found)
    with Browser() as browser:
        browser.open(page.as_uri())
        titles = ["Latency against rate", "Percentile spectrum", *PLOTS, *PLOTS]
        browser.wait(lambda: drawn(browser) == titles, "not all plots")
        check_picture(browser)


def test_the_live_page(start_target: Callable[..., int], tmp_path: Path) -> None:
    workload, page = tmp_path / f"{NASTY}.py", tmp_path / "report.html"
    workload.write_text("from wallaroo_loadgen.workloads.echo import Echo as workload\n")
    listen = free_port()
    words = ["--to", f"127.0.0.1:{start_target(listen)}", "--listen", f"127.0.0.1:{listen}"]
    words += ["--rate", "200", "--warmup", "0.1", "--duration", "600", "--live", "0"]
    program = [sys.executable, "-m", "wallaroo", "load", "--workload", str(workload)]
    program += ["--html", str(page), *words]
    with Browser() as browser:
        with subprocess.Popen(
            program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stderr is not None
                browser.open(process.stderr.readline().split()[-1])
                browser.wait(lambda: drawn(browser) == list(PLOTS), "not all plots")
                before = browser.text()
                assert f"{NASTY}.py at 200/s" in before
                assert browser.row("latency")
                browser.wait(lambda: browser.text() != before, "the figures stand still")
                check_picture(browser)
            finally:
                process.send_signal(signal.SIGINT)
        browser.wait(lambda: "the load test has ended" in browser.text(), "the end is not said")
        assert drawn(browser) == list(PLOTS)  # the last figures stay
        assert browser.script("return window.run") is None
        browser.open(page.as_uri())
        assert f"{NASTY}.py at 200/s" in browser.text()
        assert browser.script("return window.run") is None


def test_locusts_pages(start_target: Callable[..., int]) -> None:
    listen = free_port()
    target = start_target(listen, "--delay", "0.01")
    master, web = free_port(), free_port()
    options = "--processes 2 --autostart --workload echo --rate 400 --duration 90 --warmup 0.5"
    options += f" --master-bind-port {master} --master-port {master}"
    options += f" --to 127.0.0.1:{target} --listen 127.0.0.1:{listen}"
    with locusts_page(web, options, state="running") as url, Browser() as browser:
        browser.open(f"{url}/?tab=wallaroo")
        inside = "return document.querySelector('#wallaroo-plots').contentDocument"
        browser.wait(
            lambda: browser.script(f"{inside}.querySelectorAll('canvas').length") == 4,
            "no plots in our tab",
        )
        assert "p99.99" in browser.script(f"{inside}.body.innerText")
        check_picture(browser)
        browser.open(f"{url}/?tab=stats")
        browser.wait(lambda: len(browser.row("latency")) > 5, "no row of figures")
        row = browser.row("latency")
        assert row[1] == "echo"
        assert int(row[2]) > 0
        assert float(row[4]) >= 10  # the median in ms, with its decimals
        assert "." in row[5]
        browser.open(f"{url}/?tab=charts")
        browser.wait(
            lambda: browser.script("return document.querySelectorAll('canvas').length") >= 3,
            "no charts",
        )
        check_picture(browser)
        browser.open(f"{url}/wallaroo/plots")
        browser.wait(lambda: drawn(browser) == list(PLOTS), "not all plots")


def test_a_comparison_and_a_history_show_their_plots(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    runs = [
        Runs(name, [result(random.normal(middle, 200, 500).astype(int)) for _ in range(3)])
        for name, middle in [(f"{number}.json", 3000 + 100 * number) for number in range(10)]
    ]
    bounds = [Bound(Metric.parse("p50"), 0.1), Bound(Metric.parse("p99"), 0.1)]
    page = tmp_path / "page.html"
    with Browser() as browser:
        found = compare(runs[0], runs[8:], bounds, increase=0.1)
        page.write_text(comparison_html(found), encoding="utf-8")
        browser.open(page.as_uri())
        assert drawn(browser) == ["Percentile spectrum", "Ratio to the baseline"]
        page.write_text(history_html(histories_of(runs, bounds)), encoding="utf-8")
        browser.open(page.as_uri())
        assert drawn(browser) == ["History"]
