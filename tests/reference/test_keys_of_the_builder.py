"""Without a partition function, a step of the builder's form has one key (route-6, key-2)."""

from __future__ import annotations

from wallaroo_conformance.cases.operators.aggregations import Texts
from wallaroo_conformance.cases.operators.states import Notebook
from wallaroo_conformance.cases.operators.triples import ByLetter, Remember, triple, triple_line

import wallaroo
import wallaroo.testing


def test_to_stateful_behind_a_window_has_one_entity() -> None:
    application = (
        wallaroo.ApplicationBuilder("builder")
        .new_pipeline("first", wallaroo.TCPSourceConfig("127.0.0.1", 0, triple))
        .to_window(wallaroo.range_windows(10).over(Texts("texts")), ByLetter("by_letter"))
        .to_stateful(Remember("remember"), Notebook, "seen")
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, triple_line))
        .build()
    )
    result = wallaroo.testing.run(application, [("first", b"a 0 m"), ("first", b"b 0 m")])
    assert result.dead_letters == []
    assert list(result.entities["seen"]) == [()]
