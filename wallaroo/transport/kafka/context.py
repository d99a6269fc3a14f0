"""The trace that a record belongs to, which stands in its headers, goes on to its outputs.

The headers are those of the W3C's Trace Context and Baggage, as OpenTelemetry writes them. They are
passed on as they came: what stands in an output must not depend on which records were followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from wallaroo.kafka_records import Header, Produced

Context: TypeAlias = tuple[Header, ...]
"""The headers of a record that say which trace it belongs to."""

_NAMES = frozenset({"traceparent", "tracestate", "baggage"})


class Contexts(NamedTuple):
    """The contexts of records that are processed one after the other.

    Args:
        by_offset: those of all that have one.
        first: the offset of the first record.
    """

    by_offset: Mapping[int, Context]
    first: int

    def of(self, index: int) -> Context:
        """Return the context of a record, counted from the first; empty: it has none."""
        return self.by_offset.get(self.first + index, ())

    def behind(self, count: int) -> Contexts:
        """Return what holds behind so many offsets."""
        return Contexts(self.by_offset, self.first + count)


def contexts_of(first: int, headers: Mapping[int, Iterable[Header] | None]) -> Contexts:
    """Return the contexts of records.

    Args:
        first: the offset of the first record.
        headers: of the records, by their offsets.
    """
    found = {offset: context_of(some) for offset, some in headers.items() if some}
    return Contexts({offset: some for offset, some in found.items() if some}, first)


def context_of(headers: Iterable[Header]) -> Context:
    """Return those headers that say which trace a record belongs to."""
    return tuple([header for header in headers if header[0] in _NAMES])


def carry_on(outputs: list[Any], contexts: Contexts, number: int) -> None:
    """Add to outputs the contexts of the records that caused them.

    Args:
        outputs: of one sink; of a TCP sink they are bytes, which have no headers.
        contexts: of records that were processed.
        number: the sequence number of the first of them.
    """
    for at, output in enumerate(outputs):
        if isinstance(output, Produced) and not context_of(output.headers):
            context = contexts.of(output.number - number)
            outputs[at] = output._replace(headers=(*output.headers, *context))
