"""Figures in the documents: puts results of the benchmarks where a page has a mark.

A mark is an HTML comment before a figure and one after it::

    <!-- figure: tcp throughput/reference ratio .2f -->0.94<!-- /figure -->

It names a file of `benchmarks/results`, a figure in it, its ``value`` or its ``ratio``, and how to
write it: as Python formats it (``.2f``, ``,.0f``), or with a number of significant digits
(``3sig``). ``python docs/tools/regenerate.py`` writes all of them.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks" / "results"

_MARK = re.compile(
    r"(<!--\s+figure:\s+(\S+)\s+(\S+)\s+(value|ratio)\s+(\S+)\s+-->)(.*?)(<!--\s+/figure\s+-->)",
    re.DOTALL,  # and any white space, since an editor may fill a paragraph
)


class UnknownFigureError(Exception):
    """A page names a figure that no benchmark has written."""


def with_figures(text: str) -> str:
    """Return a page with its figures as they were last measured.

    Raises:
        UnknownFigureError: a mark names a figure that does not exist.
    """

    def written(mark: re.Match[str]) -> str:
        before, benchmark, name, field, form, _, after = mark.groups()
        try:
            number = _figures(benchmark)[name][field]
        except (OSError, KeyError) as error:
            raise UnknownFigureError(
                f"{mark[1]}: not in benchmarks/results/{benchmark}.json; the benchmark writes it: "
                f"python benchmarks/{benchmark}.py --json benchmarks/results/{benchmark}.json"
            ) from error
        return f"{before}{shown(number, form)}{after}"

    return _MARK.sub(written, text)


def shown(number: float, form: str) -> str:
    """Return a number in the form that a mark asks for."""
    if form.endswith("sig"):
        number = float(f"{number:.{form.removesuffix('sig')}g}")
        form = ",.0f" if number == int(number) else ","
    return format(number, form)


@cache
def _figures(benchmark: str) -> dict[str, dict[str, Any]]:
    kept = json.loads((RESULTS / f"{benchmark}.json").read_text("utf-8"))
    return {figure["name"]: figure for figure in kept["figures"]}
