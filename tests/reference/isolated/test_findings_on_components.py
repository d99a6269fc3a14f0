"""Findings about components that alter themselves."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import ClassVar

import pytest
from finding_parts import CountsCalls, Message, count
from small_steps import Seen

from wallaroo.findings import FindingKind


class AddsAttribute:
    def name(self):
        return "adds"

    def compute(self, data, state):
        self.last = data.text
        return data, False


class RoutesAndCounts:
    def __init__(self):
        self.seen = {}

    def partition(self, data):
        self.seen[data.text] = True
        return data.text[:1]


class EncodesAndCounts:
    def __init__(self):
        self.count = [0]

    def encode(self, message):
        self.count[0] += 1
        return message.text


class DecodesAndCounts:
    def __init__(self):
        self.count = 0

    def header_length(self):
        return 4

    def payload_length(self, header):
        return int.from_bytes(header, "big")

    def decode(self, payload):
        self.count += 1
        return Message(payload.decode())


class BuildsAndCounts:
    def __init__(self):
        self.count = 0

    def build(self):
        self.count += 1
        return Seen()


class CountsForItsClass:
    seen = 0
    words: ClassVar[list[str]] = []

    def __init__(self, by):
        self._by = by

    def name(self):
        return "counts for its class"

    def compute(self, message):
        if self._by == "number":
            CountsForItsClass.seen += 1
        else:
            self.words.append(message.text)
        return message


class Abstract(ABC):
    @abstractmethod
    def compute(self, message): ...


class CountsThoughAbstract(Abstract):
    lock = threading.Lock()  # neither this nor an abstract class's registry can be compared

    def __init__(self):
        self.count = 0

    def name(self):
        return "counts though abstract"

    def compute(self, message):
        self.count += 1
        return message


@pytest.mark.parametrize(
    ("steps", "options", "step"),
    [
        ([("to", CountsThoughAbstract())], {}, "counts though abstract"),
        ([("to", CountsForItsClass("number"))], {}, "counts for its class"),
        ([("to", CountsForItsClass("list"))], {}, "counts for its class"),
        ([("to", CountsCalls())], {}, "counts calls"),
        ([("to", CountsCalls)], {}, "counts calls"),
        ([("to_stateful", AddsAttribute(), Seen, "s")], {}, "adds"),
        ([("to_state_partition", count, Seen, "s", RoutesAndCounts())], {}, "count"),
        ([("to_state_partition", count, Seen, "s", RoutesAndCounts)], {}, "count"),
        ([("to_stateful", count, BuildsAndCounts(), "s")], {}, "count"),
        ([], {"encoder": EncodesAndCounts()}, "EncodesAndCounts"),
        ([], {"encoder": EncodesAndCounts}, "EncodesAndCounts"),
        ([], {"decoder": DecodesAndCounts()}, "DecodesAndCounts"),
        ([], {"decoder": DecodesAndCounts}, "DecodesAndCounts"),
    ],
)
def test_isolation_finds_a_component_that_alters_itself(found, steps, options, step):
    ((kind, where, _, lineage),) = found(*steps, **options)
    assert (kind, where, lineage) == (FindingKind.COMPONENT_ALTERED, step, (0,))
