"""Pipelines and windows that must be refused, and some that must be built (graph-1)."""

from __future__ import annotations

from typing import Any

import wallaroo
from wallaroo_conformance.cases.operators import STEPS
from wallaroo_conformance.cases.operators.decoding import text
from wallaroo_conformance.cases.operators.encoding import line
from wallaroo_conformance.cases.operators.states import Notebook
from wallaroo_conformance.cases.timed.aggregations import Number
from wallaroo_conformance.cases.timed.operators import ByLetter, Same, component
from wallaroo_conformance.judge.law import Law
from wallaroo_conformance.language.refusal import Refusal

BUILT = Law(
    "graph-1",
    "built",
    "everything that leads to one of the given pipelines is built, and nothing else",
)
_NAMED = Law("graph-5", "named", "two steps of one name are refused")
_SIDES = Law("graph-3", "sides", "a merge of a side with a key and one without is refused")
_FORMS = Law("key-3", "forms", "a state computation of the other form of the API is refused")
_WINDOWS = Law("window-1", "refused", "impossible windows are refused")


def _begun(name: str = "orders") -> Any:
    return wallaroo.source(name, wallaroo.TCPSourceConfig("127.0.0.1", 0, text))


def _sink() -> Any:
    return wallaroo.TCPSinkConfig("127.0.0.1", 1, line)


def _range(size: Any = 10) -> Any:
    return wallaroo.range_windows(size)


PIPELINE_SLIPS: tuple[tuple[Law, tuple[Refusal, ...]], ...] = (
    (
        _NAMED,
        (
            Refusal(
                "two steps of one name",
                lambda: wallaroo.build_application(
                    "shop", _begun().to(Same("price")).to(Same("price")).done()
                ),
                ("'shop'", "'orders'", "'price'", "name="),
            ),
        ),
    ),
    (
        _SIDES,
        (
            Refusal(
                "one side with a key",
                lambda: _begun().key_by(ByLetter("by_letter")).merge(_begun("returns")),
                ("'returns'", "key_by"),
            ),
        ),
    ),
    (
        _FORMS,
        (
            Refusal(
                "a state computation of the builder in a pipeline",
                lambda: _begun().to(STEPS["count"]),
                ("'orders'", "count", "state="),
            ),
            Refusal(
                "a state computation of pipelines in the builder",
                lambda: (
                    wallaroo.ApplicationBuilder("shop")
                    .new_pipeline("orders", wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
                    .to_stateful(_own_state(), Notebook, "books")
                ),
                ("'orders'", "remember"),
            ),
        ),
    ),
    (
        _WINDOWS,
        (
            Refusal("a range of nothing", lambda: _range(0), ("range",)),
            Refusal("a negative duration", lambda: wallaroo.seconds(-1), ("-1",)),
            Refusal("a slide beyond the range", lambda: _range().with_slide(11), ("11", "10")),
            Refusal(
                "too many panes", lambda: _range(10_007).with_slide(10_006), ("panes", "10006")
            ),
            Refusal(
                "a delay given twice",
                lambda: _range().with_delay(1).with_delay(2),
                ("with_delay", "twice"),
            ),
            Refusal(
                "sliding windows without combine",
                lambda: _range().with_slide(5).over(Number("count")),
                ("combine",),
            ),
            Refusal("a count of nothing", lambda: wallaroo.count_windows(0), ("count", "0")),
            Refusal(
                "sessions with an oldest window",
                lambda: wallaroo.session_windows(5).with_late_data_policy("place-in-oldest-window"),
                ("oldest",),
            ),
            Refusal(
                "an aggregation without a window",
                lambda: _begun().to(Number("count")),
                ("'orders'", "over("),
            ),
        ),
    ),
)


def _own_state() -> Any:
    from wallaroo_conformance.cases.timed.operators import state_computation

    return state_computation("remember", "remember", "books", None)


def all_built() -> str | None:
    """Return what is wrong with the application built from two uses of a pipeline."""
    begun = _begun()
    one, other = begun.to(component("same", "one")), begun.to(component("same", "other"))
    begun.to(component("same", "third"))
    built = wallaroo.build_application("shop", one.to_sink(_sink()), other.to_sink(_sink()))
    names = [step.name for step in built.steps if not step.name.startswith("branch")]
    if names != ["one", "other"] or len(built.sinks) != len(names):
        return f"of two branches with a sink each, the steps {names} were built"
    return None
