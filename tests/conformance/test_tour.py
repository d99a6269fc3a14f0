"""The interpreter and the compiled path on the whole tour: each value that an operator gives.

A short search ends before the tour does, and the stored cases have few of its values.
"""

from __future__ import annotations

import pytest
from wallaroo_conformance.cases.operators import Tone
from wallaroo_conformance.cases.tour import tour
from wallaroo_conformance.report.showing import failure_text
from wallaroo_conformance.search.search import Search

from wallaroo.engine import load_engine


@pytest.mark.parametrize(("engine", "tone"), [("reference", "any"), ("compiled", "tame")])
def test_every_case_of_the_tour_is_right(engine: str, tone: Tone) -> None:
    search = Search(load_engine(engine))
    search.replay(tour(tone))
    search.explain()
    assert [failure_text(failure, engine) for failure in search.findings.failures] == []
