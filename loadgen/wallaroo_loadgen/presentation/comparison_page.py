"""The pages of a comparison and of a history: one file each, see `page`."""

from __future__ import annotations

from collections.abc import Sequence

from wallaroo_loadgen.comparison.comparing import Comparison, table
from wallaroo_loadgen.comparison.ratio import Verdict
from wallaroo_loadgen.comparison.series import Series
from wallaroo_loadgen.presentation import comparison_plots as plots
from wallaroo_loadgen.presentation.page import render

_STYLES = {Verdict.NOT_WORSE: "good", Verdict.WORSE: "bad", Verdict.INCONCLUSIVE: "poor"}


def comparison_html(comparison: Comparison, *, seed: int) -> str:
    """Return a comparison's page.

    Args:
        comparison: the comparison.
        seed: of the bootstraps that are only drawn.
    """
    return render(
        "comparison.html",
        comparison=comparison,
        rows=table(comparison),
        styles=_STYLES,
        figures=[plots.spectra(comparison), plots.ratios(comparison, seed=seed)],
        reading=plots.READING,
        machines=[
            (runs.name, runs.results[0].machine)
            for runs in (comparison.baseline, *[other.runs for other in comparison.others])
        ],
    )


def history_html(found: Sequence[Series]) -> str:
    """Return a page with every history that was found."""
    return render(
        "history.html",
        histories=[(one, plots.course(one)) for one in found],
        styles=_STYLES,
        reading=plots.READING["History"],
    )
