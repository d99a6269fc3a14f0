"""What windows give in Spark's workers; no test here needs a JVM."""

from __future__ import annotations

from typing import Any

import pytest
from small_windows import Gather, built, encode_repr, events, initial, sink
from wallaroo_mutants.machinery import run_here
from wallaroo_reference.engine import ReferenceEngine

import wallaroo
from wallaroo import range_windows, seconds
from wallaroo.engine import Case


class Gives(Gather):
    """An aggregation whose windows give a value."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def output(self, key: Any, names: str, window: Any = None) -> Any:
        return self.value() if callable(self.value) else self.value


@wallaroo.computation(name="altered")
def altered(message: Any) -> Any:
    if isinstance(message, list):
        message.append("altered")
    return message


def unportable() -> Any:
    return (number for number in range(3))


@pytest.mark.parametrize(
    "value", ["text", None, list, unportable], ids=["text", "none", "list", "unportable"]
)
def test_state_6_each_branch_behind_a_window_has_a_message_of_its_own(value: Any) -> None:
    given = events().key_by(initial).to(range_windows(seconds(10)).over(Gives(value)))
    ways = [given.to(altered).to_sink(sink()), given.to_sink(sink(encode_repr))]
    case = Case(built(*ways), [("events", b"a 1"), ("events", b"b 20")], isolation="isolated")
    [trace] = run_here([case])
    assert trace.comparable() == ReferenceEngine().run(case).comparable()
