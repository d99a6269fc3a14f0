"""The report as a file: what is in it before a browser draws anything."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from load_runs import result
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search
from wallaroo_loadgen.presentation import plots
from wallaroo_loadgen.presentation.pages import html, plot

pytestmark = pytest.mark.xdist_group("shown runs")  # which are made once


def figures(page: str) -> list[dict[str, Any]]:
    texts = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return [json.loads(text) for text in texts]


def lines(page: str) -> Iterator[tuple[str, str, str]]:
    for figure in figures(page):
        for line in figure["lines"]:
            yield figure["title"], line["name"], line["colour"]


class References(HTMLParser):
    """Collects what a page would load, the links in it, and the ids that links may name."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.add(value or "")
            elif name == "href" and tag == "a":
                self.links.append(value or "")
            elif name in {"src", "href", "data", "srcset"}:
                self.loaded.append(value or "")


def test_a_report_is_one_small_file_that_loads_nothing(measured: Result) -> None:
    page = html([measured])
    assert len(page.encode()) < 490_000  # it was 4.9 MB, nearly all of it Plotly
    found = References()
    found.feed(page)
    assert found.loaded == []
    assert "url(" not in page
    assert "import(" not in page
    assert "#reading" in found.links  # the footer's
    assert {link.removeprefix("#") for link in found.links} <= found.ids


def test_the_figures_can_be_read_without_javascript(measured: Result) -> None:
    without = re.sub(r"<script.*?</script>", "", html([measured]), flags=re.DOTALL)
    counts = measured.counts
    assert f"Sent {counts['sent']:,} of {counts['scheduled']:,} messages" in without
    row = re.search(r"<td>latency</td>(.*?)</tr>", without, re.DOTALL)
    assert row is not None
    assert len(re.findall(r"<td>[\d.]+ (?:µs|ms|s)</td>", row[1])) == 9
    rows = ("latency", "lateness", "own lateness")  # as docs/load-testing.md calls them
    assert [row for row in rows if f"<td>{row}</td>" in without] == list(rows)
    assert without.count("This plot needs JavaScript.") == 4


def test_plots_say_how_to_read_them_and_name_what_they_show(measured: Result) -> None:
    page = html([measured, measured])
    for title in {figure["title"] for figure in figures(page)}:
        assert f"<dt>{title}</dt>" in page
    together, *_ = shown = figures(page)
    names = ["echo at 1,000/s, run 1", "echo at 1,000/s, run 2"]  # the same label twice
    assert [line["name"] for line in together["lines"]] == names
    sent = next(figure for figure in shown if figure["title"].startswith("Sent"))
    words = ["backlog", "messages sent", "outputs received", "outputs expected"]
    assert [line["name"] for line in sent["lines"]] == words


def test_a_colour_stands_for_one_thing_on_a_page(measured: Result) -> None:
    runs = [dataclasses.replace(measured, label=f"echo at {rate}/s") for rate in (100, 200)]
    found = Search("echo")
    for run in runs:
        found.results.append(run)
    page = html(runs, found)
    things: dict[str, set[str]] = {}
    for title, name, colour in lines(page):
        thing = name.removeprefix("echo ") if title == "Latency against rate" else name
        things.setdefault(colour, set()).add(thing)
    named = {colour: names for colour, names in things.items() if colour in plots.COLOURS.values()}
    assert named == {colour: {name} for name, colour in plots.COLOURS.items()}
    # A run has its own colour, in the plot of all runs and in its own spectrum.
    assert {colour: names for colour, names in things.items() if colour not in named} == {
        plots.run_colour(0): {"echo at 100/s", "latency"},
        plots.run_colour(1): {"echo at 200/s", "latency"},
    }


def test_of_many_runs_the_last_are_in_one_plot_or_the_best_of_a_search() -> None:
    config = result([1000]).config
    runs = [
        result([1000] * 100, label=f"at {rate}/s", config={**config, "rate": rate})
        for rate in range(100, 2000, 100)
    ]
    found = Search("at")
    together = figures(html(runs))[0]["lines"]
    assert [line["name"] for line in together] == [run.label for run in runs[-8:]]
    for run in runs:
        found.results.append(run)
    spectrum = next(one for one in figures(html(runs, found)) if "spectrum" in one["title"])
    assert [line["name"] for line in spectrum["lines"]] == ["at 1900/s"]


def test_what_a_name_says_ends_no_script(measured: Result) -> None:
    nasty = "</script><script>alert(1)</script>"
    figure = plots.spectrum([(measured, nasty, "#000000")])
    text = str(plot(figure))
    assert text.count("</script>") == 1
    assert figures(text)[0]["lines"][0]["name"] == nasty
