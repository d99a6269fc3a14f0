"""The pages of runs: a report in one file, and the live page of a run that goes on.

A report is one file: its plots, the code that draws them and its style are all in it. It works
without a network, from a disk or a CI's list of artifacts. Without JavaScript its tables are there,
and each plot says what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from wallaroo.config import format_address
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search
from wallaroo_loadgen.control.verdict import INVALID, OK, TARGET_ENDED, WORDS, show, verdict
from wallaroo_loadgen.presentation import plots
from wallaroo_loadgen.presentation.tables import latency_rows, rate_rows, traffic

_MOST_DETAILED = 24
"""Runs with plots of their own; more would make a page too large for browsers."""

_MOST_TOGETHER = 8  # runs in one percentile spectrum
_ASSETS = files("wallaroo_loadgen.presentation") / "assets"
_SHARED = files("wallaroo.monitor") / "assets"


def render(template: str, *, nonce: str | None = None, **values: Any) -> str:
    """Return a page.

    Args:
        template: a file of `templates` that extends `page.html`.
        nonce: the nonce of a server's Content-Security-Policy for the scripts; none for a file.
        values: the template's values. A `plots.Figure` among them is drawn with the filter `plot`.
    """
    environment = Environment(
        loader=PackageLoader("wallaroo_loadgen.presentation"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["duration"] = show
    environment.filters["plot"] = plot
    environment.globals["asset"] = _asset
    environment.globals["nonce_attribute"] = (
        "" if nonce is None else Markup(' nonce="{}"').format(nonce)
    )
    return environment.get_template(template).render(**values)


def plot(figure: plots.Figure) -> Markup:
    """Return a figure as the part of a page that `plots.js` draws when the page is loaded."""
    data = json.dumps(figure.to_json(), separators=(",", ":"))
    # Only `</` can end a script; as JSON, both spellings are the same text.
    safe = Markup(data.replace("<", "\\u003c"))  # noqa: S704 - no `<` is left in it
    return Markup(
        '<figure class="plot"><h3>{}</h3><noscript><p>This plot needs JavaScript.</p></noscript>'
        '<script type="application/json">{}</script></figure>\n'
    ).format(figure.title, safe)


def _asset(name: str) -> Markup:
    """Return a script or style of ours, to stand in a page as it is."""
    place = _SHARED if name.startswith("uPlot") else _ASSETS
    return Markup((place / name).read_text(encoding="utf-8"))  # noqa: S704 - our own file


def write_html(path: Path, runs: Sequence[Result], search: Search | None = None) -> None:
    """Write the page."""
    path.write_text(html(runs, search), encoding="utf-8")


def html(runs: Sequence[Result], search: Search | None = None) -> str:
    """Return the page.

    Args:
        runs: in order.
        search: the search for the highest rate that they were.
    """
    labels = _labels(runs)
    together = [
        (runs[index], labels[index], plots.run_colour(index)) for index in _together(runs, search)
    ]
    return render(
        "report.html",
        title=_title(runs, search),
        runs=[
            {
                "label": labels[index],
                **_run(result, plots.run_colour(index), index < _MOST_DETAILED),
            }
            for index, result in enumerate(runs)
        ],
        search=search,
        rates=None if search is None else rate_rows(search),
        rate_plot=None if search is None else plots.latency_against_rate(search),
        together=plots.spectrum(together) if len(runs) > 1 else None,
        machine=runs[-1].machine if runs else {},
    )


def _title(runs: Sequence[Result], search: Search | None) -> str:
    if search is not None:
        return search.label
    different = list(dict.fromkeys([result.label for result in runs]))
    return ", ".join(different[:3]) + (" …" if len(different) > 3 else "")


def _labels(runs: Sequence[Result]) -> list[str]:
    """Return the runs' labels, with a number where several have the same."""
    labels = [result.label for result in runs]
    return [
        f"{label}, run {labels[: index + 1].count(label)}" if labels.count(label) > 1 else label
        for index, label in enumerate(labels)
    ]


def _together(runs: Sequence[Result], search: Search | None) -> list[int]:
    """Return the numbers of runs worth one plot: all if they are few, else a search's best ones."""
    if len(runs) <= _MOST_TOGETHER:
        return list(range(len(runs)))
    best = []
    if search is not None:
        best = [
            index
            for index, point in enumerate(search.points)
            if point["good"] and point["rate"] == search.best
        ]
    return best[:_MOST_TOGETHER] or list(range(len(runs)))[-_MOST_TOGETHER:]


def _run(result: Result, colour: str, detailed: bool) -> dict[str, Any]:
    config = {name: value for name, value in result.config.items() if name != "values"}
    config["to"] = ", ".join([format_address(*to) for to in result.config["to"]])
    config["listen"] = format_address(*result.config["listen"])
    config |= {f"option {name}": value for name, value in result.config["values"].items()}
    return {
        "result": result,
        "latencies": latency_rows(result),
        "verdict": _verdict(result),
        "config": config,
        "growth": result.backlog_growth() if result.started else 0.0,
        "figures": plots.of_run(result, colour) if detailed else [],
    }


def _verdict(result: Result) -> tuple[str, str]:
    """Return the verdict's style and words."""
    code = verdict(result)
    words = WORDS[code] + (", SLOs met" if code == OK and result.slos else "")
    return {OK: "good", INVALID: "bad", TARGET_ENDED: "bad"}.get(code, "poor"), words


def live_page(nonce: str | None = None) -> str:
    """Return the page. It asks for `./figures`, which are `live_figures`' as JSON, every second."""
    return render("live.html", nonce=nonce)


def live_figures(result: Result | None, search: Search | None = None) -> dict[str, Any]:
    """Return the data that the page shows.

    Args:
        result: the run's figures so far, or None before the first.
        search: the search that the run belongs to.
    """
    figures = [] if result is None else plots.of_run(result)
    tables = []
    if search is not None and search.points:
        figures.insert(0, plots.latency_against_rate(search))
        tables.append(rate_rows(search))
    if result is None or not result.latency["count"]:
        words = "Waiting for the first outputs …"
    else:
        tables.append(latency_rows(result))
        words = f"{result.label}: {traffic(result)}"
    return {
        "heading": "Load test" if result is None else f"Load test: {result.label}",
        "words": words,
        "tables": tables,
        "figures": [figure.to_json() for figure in figures],
    }
